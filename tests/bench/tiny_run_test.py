"""Tiny runs of headrace-bench on the CPU: tables, JSON, resuming, and what wrong options get.

Usage: tiny_run_test.py path/to/headrace-bench
"""

import itertools
import json
import os
import pathlib
import tempfile
import unittest

from bench_program import CPU, TINY, read_json, run

# Up to 4.5 MB: contexts of 1k, 2k and 4k, each with two page sizes.
GRID = ['grid', *TINY, '--batch', '1', '--kv-heads', '4', '--dtype', 'fp8']
FIXTURE = pathlib.Path(__file__).with_name('results_fixture.json')

KEY_TYPES = {
    'batch': int, 'profile': str, 'kv_heads': int, 'qo_heads': int, 'head_dim': int,
    'page_size': int, 'dtype': str, 'layout': str, 'head_scales': bool, 'dependent_launch': bool,
    'bytes': int,
}
ROW_TYPES = KEY_TYPES | {
    'kv_sets': int, 'repetitions': int, 'us': float, 'spread_us': float, 'gbps': float,
    'pct_peak_copy': float, 'pct_matched_copy': float, 'rms_error_pct': float,
    'max_error_pct': float, 'checked_outputs': int, 'outputs': int,
}
REPORT_TYPES = {'version': str, 'machine': dict, 'commit': str, 'seed': int,
                'peak_copy_gbps': float, 'rows': list}
MACHINE_TYPES = {'device': str, 'executor': str, 'workers': int, 'threads': int,
                 'last_level_cache_bytes': int}


class TinyRun(unittest.TestCase):
    def assert_types(self, value, types):
        self.assertEqual({key: type(item) for key, item in value.items()}, types)

    def tiny_json(self, *options):
        result = run(*TINY, '--json', '-', *options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def test_json_schema(self):
        report = self.tiny_json('--profile', 'uniform:100', 'one-long:300,2,20', '--batch', '1,3',
                                '--dtype', 'bf16,fp8')
        self.assert_types(report, REPORT_TYPES)
        self.assert_types(report['machine'], MACHINE_TYPES)
        self.assertEqual(report['machine']['workers'], 2)
        for row in report['rows']:
            self.assert_types(row, ROW_TYPES)
            self.assertGreaterEqual(row['repetitions'], 2)
            self.assertGreater(row['us'], 0)
            self.assertGreaterEqual(row['spread_us'], 0)
            self.assertAlmostEqual(row['gbps'], row['bytes'] / row['us'] / 1e3)
            self.assertAlmostEqual(row['pct_peak_copy'],
                                   100 * row['gbps'] / report['peak_copy_gbps'])
            self.assertGreater(row['pct_matched_copy'], 0)
            self.assertLess(row['rms_error_pct'], 0.25)
            self.assertLess(row['max_error_pct'], 0.5)
            self.assertEqual(row['checked_outputs'], row['outputs'])
        self.assertEqual([(row['profile'], row['batch'], row['dtype']) for row in report['rows']],
                         [('uniform:100', 1, 'bf16'), ('uniform:100', 3, 'bf16'),
                          ('one-long:300,2,20', 3, 'bf16'), ('uniform:100', 1, 'fp8'),
                          ('uniform:100', 3, 'fp8'), ('one-long:300,2,20', 3, 'fp8')])
        # K and V of 100 tokens, 8 heads of 128 elements, two bytes each.
        self.assertEqual(report['rows'][0]['bytes'], 2 * 100 * 8 * 128 * 2)

    def test_every_dtype_layout_and_head_count_is_right(self):
        report = self.tiny_json('--profile', 'lognormal:60,1', '--batch', '4', '--dtype',
                                'bf16,fp16,f32,fp8', '--layout', 'nhd,hnd', '--page-size', '7,16',
                                '--kv-heads', '2,6', '--query-heads', '6', '--head-dim', '64')
        self.assertEqual([(row['dtype'], row['layout'], row['kv_heads'], row['page_size'])
                          for row in report['rows']],
                         list(itertools.product(['bf16', 'fp16', 'f32', 'fp8'], ['nhd', 'hnd'],
                                                [2, 6], [7, 16])))
        self.assertEqual([row['head_scales'] for row in report['rows']],
                         [False] * 24 + [True] * 8)

    def test_a_large_row_is_checked_in_part(self):
        report = self.tiny_json('--profile', 'uniform:2k', '--batch', '3', '--dtype', 'f32')
        self.assertEqual(report['rows'][0]['outputs'], 3 * 32)
        self.assertEqual(report['rows'][0]['checked_outputs'], 2**17 // 2048)

    def test_empty_requests(self):
        report = self.tiny_json('--profile', 'uniform:0', '--batch', '2', '--dtype', 'f32')
        self.assertEqual(report['rows'][0]['rms_error_pct'], 0)

    def test_table_is_aligned(self):
        result = run(*TINY, '--profile', 'uniform:100', 'zipf:200,1', '--batch', '2')
        self.assertEqual(result.returncode, 0, result.stderr)
        machine, header, *rows = result.stdout.splitlines()
        self.assertTrue(machine.startswith('headrace '), machine)
        self.assertEqual(header.split()[:3], ['batch', 'profile', 'cache'])
        self.assertEqual([row.split()[1:3] for row in rows],
                         [['uniform:100', 'bf16'], ['zipf:200,1', 'bf16'],
                          ['uniform:100', 'fp8'], ['zipf:200,1', 'fp8']])
        self.assertEqual({len(line) for line in rows}, {len(header)}, result.stdout)
        self.assertEqual(result.stderr, '')

    def test_json_file_beside_the_table(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'report.json')
            result = run(*TINY, '--profile', 'uniform:50', '--batch', '1', '--json', path)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn('uniform:50', result.stdout)
            self.assertEqual(len(read_json(path)['rows']), 2)

    def grid(self, path, *options):
        result = run(*GRID, '--json', path, *options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout, read_json(path)

    def test_grid_goes_on_where_it_was_stopped(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'grid.json')
            text, report = self.grid(path, '--max-mb', '4.5', '--page-size', '16')
            self.assert_types(report, REPORT_TYPES)
            self.assertEqual([row['profile'] for row in report['rows']],
                             ['uniform:1024', 'uniform:2048', 'uniform:4096'])
            self.assertRegex(text, r'\| below 64 MB \| fp8 \| 3 \|')
            # Times show whether a row is measured again.
            for row in report['rows']:
                row['us'] = row['gbps'] = 12345.0
            with open(path, 'w') as file:
                json.dump(report, file)
            text, resumed = self.grid(path, '--max-mb', '2.5')
            self.assertRegex(text, r'\| below 64 MB \| fp8 \| 4 \|')
            self.assertEqual([row['us'] == 12345 for row in resumed['rows']],
                             [True, True, True, False, False])
            self.assertEqual([row['page_size'] for row in resumed['rows']], [16, 16, 16, 64, 64])
            self.assertEqual(self.grid(path, '--max-mb', '4.5')[1]['rows'][:5], resumed['rows'])
            self.assertEqual(os.listdir(folder), ['grid.json'])

    def test_grid_refuses_results_of_another_origin(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'grid.json')
            self.grid(path, '--max-mb', '1.5')
            report = read_json(path)
            for name, value, message in [
                    ('seed', 2, 'another seed: needs 2, given 1'),
                    ('commit', 'x', 'another commit: needs "x", given '),
                    ('machine', {'device': 'x'}, 'another machine: needs {"device":"x"}, given {')]:
                with open(path, 'w') as file:
                    json.dump(report | {name: value}, file)
                result = run(*GRID, '--json', path)
                self.assertEqual(result.returncode, 1)
                self.assertIn(message, result.stderr)
                self.assertIn('remove this one to start anew', result.stderr)
            with open(path, 'w') as file:
                file.write('[]')
            result = run(*GRID, '--json', path)
            self.assertEqual(result.returncode, 1)
            self.assertIn('needs results of headrace-bench, given something else', result.stderr)

    def test_grid_says_what_it_skips(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'grid.json')
            result = run('grid', *TINY, '--batch', '256', '--kv-heads', '32', '--min-mb', '100000',
                         '--json', path)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn('skipped: 256 x uniform:131072, bf16, 32 KV heads, page 16, nhd: '
                          'K and V are 549.8 GB, the grid has at most 80 GB', result.stdout)
            rows = read_json(path)['rows']
            self.assertEqual(len(rows), 10)
            for row in rows:
                self.assert_types(row, KEY_TYPES | {'skipped': str})

    def test_roof(self):
        result = run('roof', *CPU, '--max-mb', '3')
        self.assertEqual(result.returncode, 0, result.stderr)
        header, *lines = result.stdout.splitlines()
        self.assertEqual(header.split()[:3], ['MB', 'copy', 'read'])
        self.assertEqual([line.split()[0] for line in lines], ['1.0', '2.1'])
        report = json.loads(run('roof', *CPU, '--max-mb', '2', '--json', '-').stdout)
        self.assert_types(report, {'version': str, 'machine': dict, 'commit': str, 'rows': list})
        self.assert_types(report['rows'][0], {'bytes': int, 'copy_us': float, 'copy_gbps': float,
                                              'read_us': float, 'read_gbps': float})

    def test_table(self):
        result = run('table', str(FIXTURE))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout, """\
headrace 0.1.0 (abc1234) on Some GPU, driver 1.2.3; peak copy 4000.0 GB/s

Plain launches:

| batch | profile | MB bf16 | bf16 p16 | bf16 p64 | MB fp8 | fp8 p16 | fp8 p64 |
| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |
| **8 KV heads** | | | | | | | |
| 8 | uniform:8192 | 268 | 70.0 (95.9) | 68.0 (98.7) | 134 | 40.0 (83.9) | - |
| 256 | uniform:131072 | 137439 | skipped | - | - | - | - |

| K and V | cache | rows | lowest % of peak copy | median | lowest row |
| --- | --- | ---: | ---: | ---: | --- |
| 256 to 512 MB | bf16 | 2 | 95.9 | 97.3 | 8 x uniform:8192, 8 KV heads, page 16, nhd |
| 64 to 256 MB | fp8 | 1 | 83.9 | 83.9 | 8 x uniform:8192, 8 KV heads, page 16, nhd |
""")
        brief = run('table', '--brief', str(FIXTURE)).stdout
        origin, heading, _, summary = result.stdout.split('\n\n')
        self.assertEqual(brief, '\n\n'.join([origin, heading, summary]))

    def test_help_teaches(self):
        for command, parts in [([], ['--launch', 'one-long:long,n,short', 'Examples:', 'grid']),
                               (['grid'], ['--max-mb', 'goes on where it', 'Examples:']),
                               (['roof'], ['--working-set', 'Example:']),
                               (['table'], ['--brief', 'Examples:'])]:
            result = run(*command, '--help')
            self.assertEqual(result.returncode, 0)
            for part in parts:
                self.assertIn(part, result.stdout)

    def test_wrong_options_exit_with_2_and_say_what_is_needed(self):
        for options, message in [
                (['--profile', 'uniform'], "len needs a whole number"),
                (['--profile', 'file:/nowhere'], "cannot be read"),
                (['--dtype', 'int8'], "needs one of bf16, f32, fp16, fp8; given 'int8'"),
                (['--batch', '0'], "needs a number from 1 to 65536, given '0'"),
                (['--batch', '4,x'], "given 'x'"),
                (['--kv-heads', '8', '--query-heads', '12'],
                 'needs a multiple of the 8 KV heads, given 12'),
                (['--no-such-option'], '--no-such-option'),
                (['grid', '--kv-heads', '8,5'], '--kv-heads: the grid has 32, 8, 4; given 5'),
                (['grid', '--dtype', 'f32'], '--dtype: the grid has bf16, fp8; given f32'),
                (['grid', '--max-mb', '0.5'], '--max-mb 0.5 leave nothing of the grid'),
                (['--seed', '2', 'grid'], '--seed: options of a command follow its name'),
                (['table'], 'FILE')]:
            with self.subTest(options=options):
                result = run(*options)
                self.assertEqual(result.returncode, 2)
                self.assertIn(message, result.stderr)
                self.assertEqual(result.stdout, '')

    def test_what_the_library_refuses_exits_with_1(self):
        result = run(*TINY, '--profile', 'uniform:10', '--head-dim', '72')
        self.assertEqual(result.returncode, 1)
        self.assertIn('72', result.stderr)

    def test_a_missing_file_is_named(self):
        result = run('table', '/nowhere.json')
        self.assertEqual(result.returncode, 1)
        self.assertIn("'/nowhere.json' cannot be read", result.stderr)

    def test_a_file_that_cannot_be_written_is_named(self):
        result = run(*TINY, '--profile', 'uniform:10', '--json', '/nowhere/report.json')
        self.assertEqual(result.returncode, 1)
        self.assertIn("'/nowhere/report.json' cannot be written", result.stderr)

    def test_too_little_memory_is_said_before_it_is_used(self):
        result = run(*TINY, '--profile', 'uniform:2000000000', '--batch', '1')
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r'needs \d+ MiB of memory, \d+ MiB are available')


if __name__ == '__main__':
    unittest.main()
