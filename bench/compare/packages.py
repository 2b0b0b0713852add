"""The rivals' packages: which versions are pinned, and what is installed."""

import functools
import hashlib
import importlib
import importlib.metadata
import pathlib
import re

REQUIREMENTS = pathlib.Path(__file__).with_name('requirements.txt')


@functools.cache
def pins():
    """{name: (version, [sha256 of its wheels])} of requirements.txt."""
    text = REQUIREMENTS.read_text().replace('\\\n', ' ')
    found = {}
    for line in text.splitlines():
        match = re.match(r'([\w.-]+)==(\S+)', line)
        if match:
            found[match[1]] = (match[2], re.findall(r'--hash=sha256:(\w+)', line))
    return found


def installed(name):
    """The installed version, or None."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def why_not(name):
    """Why the package cannot be used: it is missing, or not the pinned version; else None."""
    version = installed(name)
    needed = pins()[name][0]
    if version == needed:
        return None
    return f'needs {name} {needed}, {"not" if version is None else version} installed'


def why_not_imported(module):
    """Why a module cannot be imported, or None; imports it."""
    try:
        importlib.import_module(module)
    except Exception as error:  # whatever it raises
        return f'{module} cannot be imported: {error}'
    return None


def file_of(name, relative_path):
    """The path of one of an installed package's files."""
    return pathlib.Path(importlib.metadata.distribution(name).locate_file(relative_path))


def describe(name, libraries=()):
    """What results say of a package: version, pinned wheels, and the libraries that are loaded."""
    version, hashes = pins()[name]
    return {'name': name, 'version': installed(name), 'pinned_version': version,
            'wheel_sha256': hashes,
            'libraries': {path.name: hashlib.sha256(path.read_bytes()).hexdigest()
                          for path in libraries if path.exists()}}
