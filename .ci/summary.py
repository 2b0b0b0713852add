"""Adds up the test logs of several configurations and prints "N passed, N failed, N skipped".

Usage: summary.py STATUS:BUILD_DIRECTORY ...

STATUS is the exit status of the configuration, or "skipped" if it was not run. Exits with 1 if
anything failed or nothing passed.
"""

import json
import pathlib
import sys

PASSED = {'OK', 'EXPECTEDFAIL'}


def count(status, directory):
    """(passed, failed, skipped) of one configuration."""
    if status == 'skipped':
        return 0, 0, 1
    log = pathlib.Path(directory) / 'meson-logs' / 'testlog.json'
    if not log.exists():
        return 0, 1, 0
    results = [json.loads(line)['result'] for line in log.read_text().splitlines()]
    passed = sum(result in PASSED for result in results)
    skipped = results.count('SKIP')
    failed = len(results) - passed - skipped
    if status != '0' and failed == 0:
        failed = 1  # the run broke off
    return passed, failed, skipped


def main():
    counts = [count(*argument.split(':', 1)) for argument in sys.argv[1:]]
    passed, failed, skipped = (sum(column) for column in zip(*counts))
    print(f'{passed} passed, {failed} failed, {skipped} skipped')
    return 1 if failed > 0 or passed == 0 else 0


if __name__ == '__main__':
    sys.exit(main())
