"""Tiny runs of headrace-bench: the table, the JSON, and what it says to wrong options.

Usage: tiny_run_test.py path/to/headrace-bench
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

BENCH = sys.argv.pop(1)
TINY = ['--min-time', '0', '--repetitions', '2', '--working-set', '1', '--workers', '2']

ROW_TYPES = {
    'batch': int, 'profile': str, 'kv_heads': int, 'query_heads': int, 'head_dim': int,
    'page_size': int, 'dtype': str, 'layout': str, 'head_scales': bool, 'bytes': int,
    'kv_sets': int, 'repetitions': int, 'us': float, 'us_p10': float, 'us_p90': float,
    'gbps': float, 'copy_gbps': float,
    'memcpy_gbps': float, 'read_gbps': float, 'pct_copy': float, 'rms_error_pct': float,
}
MACHINE_TYPES = {'cpu': str, 'threads': int, 'last_level_cache_bytes': int, 'device': str,
                 'workers': int}


def run(*options):
    return subprocess.run([BENCH, *options], capture_output=True, text=True, timeout=300)


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
        self.assert_types(report, {'version': str, 'commit': str, 'machine': dict,
                                   'copy_gbps': float, 'rows': list})
        self.assert_types(report['machine'], MACHINE_TYPES)
        self.assertEqual(report['machine']['workers'], 2)
        for row in report['rows']:
            self.assert_types(row, ROW_TYPES)
            self.assertGreaterEqual(row['repetitions'], 2)
            self.assertGreater(row['us'], 0)
            self.assertLessEqual(row['us_p10'], row['us'])
            self.assertLessEqual(row['us'], row['us_p90'])
            self.assertAlmostEqual(row['gbps'], row['bytes'] / row['us'] / 1e3)
            self.assertAlmostEqual(row['pct_copy'], 100 * row['gbps'] / row['copy_gbps'])
            self.assertGreaterEqual(row['copy_gbps'], row['memcpy_gbps'])
            self.assertGreater(row['read_gbps'], 0)
            self.assertLess(row['rms_error_pct'], 0.25)
        self.assertEqual([(row['profile'], row['batch'], row['dtype']) for row in report['rows']],
                         [('uniform:100', 1, 'bf16'), ('uniform:100', 1, 'fp8'),
                          ('uniform:100', 3, 'bf16'), ('uniform:100', 3, 'fp8'),
                          ('one-long:300,2,20', 3, 'bf16'), ('one-long:300,2,20', 3, 'fp8')])
        # K and V of 100 tokens, 8 heads of 128 elements, two bytes each.
        self.assertEqual(report['rows'][0]['bytes'], 2 * 100 * 8 * 128 * 2)

    def test_every_dtype_layout_and_head_count_is_right(self):
        for layout in 'nhd', 'hnd':
            report = self.tiny_json('--profile', 'lognormal:60,1', '--batch', '4', '--dtype',
                                    'bf16,fp16,f32,fp8', '--layout', layout, '--page-size', '7',
                                    '--kv-heads', '2', '--query-heads', '6', '--head-dim', '64')
            self.assertEqual([row['dtype'] for row in report['rows']],
                             ['bf16', 'fp16', 'f32', 'fp8'])
            self.assertEqual([row['layout'] for row in report['rows']], [layout] * 4)
            self.assertEqual([row['head_scales'] for row in report['rows']],
                             [False, False, False, True])

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
                         [['uniform:100', 'bf16'], ['uniform:100', 'fp8'],
                          ['zipf:200,1', 'bf16'], ['zipf:200,1', 'fp8']])
        self.assertEqual({len(line) for line in rows}, {len(header)}, result.stdout)
        self.assertEqual(result.stderr, '')

    def test_json_file_beside_the_table(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'report.json')
            result = run(*TINY, '--profile', 'uniform:50', '--batch', '1', '--json', path)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn('uniform:50', result.stdout)
            with open(path) as file:
                self.assertEqual(len(json.load(file)['rows']), 2)

    def test_help_teaches(self):
        result = run('--help')
        self.assertEqual(result.returncode, 0)
        for part in '--kv-heads', 'one-long:long,n,short', 'Examples:':
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
                (['--no-such-option'], '--no-such-option')]:
            with self.subTest(options=options):
                result = run(*options)
                self.assertEqual(result.returncode, 2)
                self.assertIn(message, result.stderr)
                self.assertEqual(result.stdout, '')

    def test_what_the_library_refuses_exits_with_1(self):
        result = run(*TINY, '--profile', 'uniform:10', '--head-dim', '72')
        self.assertEqual(result.returncode, 1)
        self.assertIn('72', result.stderr)

    def test_too_little_memory_is_said_before_it_is_used(self):
        result = run(*TINY, '--profile', 'uniform:2000000000', '--batch', '1')
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r'needs \d+ MiB of memory, \d+ MiB are available')


if __name__ == '__main__':
    unittest.main()
