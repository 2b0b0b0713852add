"""Runs of headrace-bench, whose path is the test's first argument."""

import json
import subprocess
import sys

BENCH = sys.argv.pop(1)
CPU = ['--device', 'cpu', '--working-set', '1', '--workers', '2']
TINY = [*CPU, '--min-time', '0', '--repetitions', '2']


def run(*options):
    return subprocess.run([BENCH, *options], capture_output=True, text=True, timeout=300)


def read_json(path):
    with open(path) as file:
        return json.load(file)
