"""How headrace-bench takes, keeps and shows the ways to launch a step; on the CPU.

Usage: launch_test.py path/to/headrace-bench
"""

import copy
import json
import os
import pathlib
import tempfile
import unittest

from bench_program import TINY, read_json, run

FIXTURE = pathlib.Path(__file__).with_name('results_fixture.json')


class Launch(unittest.TestCase):
    def test_rows_of_a_cpu_are_plain(self):
        for command in [['--profile', 'uniform:50', '--batch', '1'],
                        ['grid', '--batch', '1', '--kv-heads', '4', '--max-mb', '1.5']]:
            result = run(*command, *TINY, '--dtype', 'fp8', '--json', '-')
            self.assertEqual(result.returncode, 0, result.stderr)
            for row in json.loads(result.stdout)['rows']:
                self.assertIs(row['dependent_launch'], False)
                self.assertNotIn('fresh_tokens', row)

    def test_what_a_cpu_cannot_do(self):
        for options, message in [
                (['--launch', 'dependent'], '--launch: dependent needs a GPU, given a CPU'),
                (['--launch', 'plain,dependent', '--fresh-tokens', '-1'],
                 '--launch: dependent needs a GPU, given a CPU'),
                (['--launch', 'early'], "needs one of dependent, plain; given 'early'"),
                (['--fresh-tokens', '-2'], "needs a number from -1 to 2147483647, given '-2'"),
                (['--fresh-tokens', '4'],
                 '--fresh-tokens: needs dependent launches, given plain ones alone')]:
            for command in [], ['grid']:
                with self.subTest(command=command, options=options):
                    result = run(*command, *TINY, *options)
                    self.assertEqual(result.returncode, 2)
                    self.assertIn(message, result.stderr)
                    self.assertEqual(result.stdout, '')

    def test_table_shows_every_launch_by_itself(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'both.json')
            report = read_json(FIXTURE)
            plain = report['rows'][1]
            report['rows'] = [plain, plain | {'dependent_launch': True, 'us': 60.5},
                              plain | {'dependent_launch': True, 'fresh_tokens': 4, 'us': 61.5}]
            with open(path, 'w') as file:
                json.dump(report, file)
            text = run('table', path).stdout
            headings = ['Plain launches:', 'Dependent launches, fresh tokens 1:',
                        'Dependent launches, fresh tokens 4:']
            self.assertEqual([line for line in text.splitlines() if 'launches' in line], headings)
            for heading, us in zip(headings, ['68.0', '60.5', '61.5']):
                table, summary = text.split(heading + '\n\n')[1].split('\n\n')[:2]
                self.assertIn(f'| 8 | uniform:8192 | 268 | {us} (98.7) |', table)
                self.assertIn('| 256 to 512 MB | bf16 | 1 | 98.7 |', summary)

    def test_dependent_rows_do_not_stand_for_plain_ones(self):
        grid = ['grid', *TINY, '--batch', '1', '--kv-heads', '4', '--dtype', 'fp8',
                '--page-size', '16', '--max-mb', '1.5']
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'grid.json')
            self.assertEqual(run(*grid, '--json', path).returncode, 0)
            report = read_json(path)
            dependent = copy.deepcopy(report)
            dependent['rows'][0] |= {'dependent_launch': True, 'fresh_tokens': 1}
            with open(path, 'w') as file:
                json.dump(dependent, file)
            result = run(*grid, '--json', path)
            self.assertEqual(result.returncode, 0, result.stderr)
            rows = read_json(path)['rows']
            self.assertEqual([row['dependent_launch'] for row in rows], [True, False])
            self.assertEqual(rows[0], dependent['rows'][0])


if __name__ == '__main__':
    unittest.main()
