"""Builds and runs a consumer of headrace against an installed copy that has been moved.

Usage: run_consumer.py KIND BUILD_DIR MESON..., where KIND is pkg-config, cmake or meson, and MESON
is the command that runs Meson.
"""

import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile

SOURCE_DIR = pathlib.Path(__file__).resolve().parent / "project"


def run(*command, env=None):
    print("+", shlex.join(map(str, command)), flush=True)
    subprocess.run(command, check=True, env=env)


def output(*command, env=None):
    return subprocess.run(command, check=True, env=env, stdout=subprocess.PIPE, text=True).stdout


def install_and_move(meson, build_dir, scratch):
    """Returns the prefix of an installed copy that no longer lies where it was installed."""
    staging = scratch / "staging"
    run(*meson, "install", "-C", build_dir, "--no-rebuild", "--quiet", "--destdir", staging)
    (header,) = staging.rglob("headrace.h")
    installed = header.parent.parent.parent  # PREFIX/include/headrace/headrace.h
    moved = scratch / "moved" / "elsewhere"
    moved.parent.mkdir()
    installed.rename(moved)
    shutil.rmtree(staging)
    return moved


def build_with_pkg_config(libdir, build, static):
    env = dict(os.environ, PKG_CONFIG_PATH=str(libdir / "pkgconfig"))
    query = ["pkg-config", "--cflags", "--libs", *(["--static"] if static else []), "headrace"]
    flags = output(*query, env=env).split()
    program = build / "consumer"
    build.mkdir()
    run(os.environ.get("CC", "cc"), "-std=c11", SOURCE_DIR / "consumer.c", "-o", program, *flags,
        "-lm")
    return program


def build_with_cmake(prefix, build):
    run("cmake", "-S", SOURCE_DIR, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", build)
    return build / "consumer"


def build_with_meson(meson, libdir, build, static):
    run(*meson, "setup", build, SOURCE_DIR, f"-Dpkg_config_path={libdir / 'pkgconfig'}",
        f"-Dprefer_static={'true' if static else 'false'}")
    run(*meson, "compile", "-C", build)
    return build / "consumer"


def main():
    kind, build_dir, *meson = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="headrace-consumer-") as name:
        scratch = pathlib.Path(name)
        prefix = install_and_move(meson, build_dir, scratch)
        (pc_file,) = prefix.rglob("headrace.pc")
        libdir = pc_file.parent.parent
        static = not (libdir / "libheadrace.so").exists()
        build = scratch / "build"
        if kind == "pkg-config":
            program = build_with_pkg_config(libdir, build, static)
        elif kind == "cmake":
            program = build_with_cmake(prefix, build)
        else:
            program = build_with_meson(meson, libdir, build, static)
        run(program, env=dict(os.environ, LD_LIBRARY_PATH=str(libdir)))


if __name__ == "__main__":
    main()
