"""The results file. Rows are named as those of headrace-bench; README.md describes the fields."""

import json
import os
import pathlib

SCHEMA = 'headrace-compare/1'
ORIGIN = ('machine', 'commit', 'seed', 'samples', 'packages')
REQUIRED = {'machine': dict, 'commit': str, 'seed': int, 'samples': int, 'peak_copy_gbps': float,
            'packages': list, 'systems': list, 'rows': list, 'running': (dict, type(None)),
            'crashes': list}
KEY = ('batch', 'profile', 'kv_heads', 'page_size', 'dtype', 'qo_heads', 'head_dim', 'layout',
       'head_scales')
LAYERS = 32  # of a step, over which a plan is amortised


class ResultsError(ValueError):
    """A file that cannot be read, or that holds something else."""


def read(path):
    """Raises ResultsError with the path and what is wrong."""
    try:
        results = json.loads(pathlib.Path(path).read_text())
    except (OSError, ValueError) as error:
        raise ResultsError(f"'{path}' cannot be read: {error}") from None
    schema = results.get('schema') if isinstance(results, dict) else None
    if schema != SCHEMA:
        raise ResultsError(f"'{path}': needs schema {SCHEMA}, given {schema}")
    for name, kind in REQUIRED.items():
        if not isinstance(results.get(name), kind):
            raise ResultsError(f"'{path}': {name} is missing or of another type")
    for row in results['rows']:
        missing = [name for name in KEY if name not in row]
        if missing:
            raise ResultsError(f"'{path}': a row has no {', '.join(missing)}")
    return results


def write(path, results):
    """Replaces the file at once, so that whoever stops the program finds it whole."""
    path = pathlib.Path(path)
    unfinished = path.with_name(path.name + '.tmp')
    unfinished.write_text(json.dumps(results, indent=1) + '\n')
    os.replace(unfinished, path)


def key_of(row):
    return tuple(row[name] for name in KEY)


def find(results, key):
    """The row with these names and values of KEY, or None."""
    return next((row for row in results['rows'] if key_of(row) == key_of(key)), None)


def put(results, row):
    """Takes the place of the row with the same key."""
    results['rows'] = [other for other in results['rows'] if key_of(other) != key_of(row)] + [row]


def require_same_origin(kept, now, path):
    """Raises ResultsError unless results of `now` may be added to `kept`, read from `path`."""
    for name in ORIGIN:
        if kept[name] != now[name]:
            raise ResultsError(f"'{path}' holds results of another {name}: needs "
                               f'{json.dumps(kept[name])}, given {json.dumps(now[name])}. Name '
                               'another file, or remove this one to start anew')


def measured(row):
    """{name: measurement} of the systems that ran a row."""
    return {name: system for name, system in row.get('systems', {}).items() if 'us' in system}


def with_plan_us(system):
    """A call with its share of the plan."""
    return system['us'] + system['plan_us'] / LAYERS
