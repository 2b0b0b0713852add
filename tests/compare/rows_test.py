"""The rows and lengths of compare are those of headrace-bench.

Usage: rows_test.py path/to/headrace-bench
"""

import json
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / 'bench'))
from compare import profiles, rows  # noqa: E402

BENCH = sys.argv.pop(1)
SEED = 7


def bench_rows(*options):
    text = subprocess.run([BENCH, *options, '--device', 'cpu', '--workers', '1', '--seed',
                           str(SEED), '--json', '-'],
                          check=True, capture_output=True, text=True, timeout=300).stdout
    return json.loads(text)['rows']


class Rows(unittest.TestCase):
    def test_lengths_are_those_of_headrace_bench(self):
        texts = ['uniform:77', 'lognormal:60,1', 'lognormal:60,2,10,200', 'one-long:300,4,5',
                 'bimodal:20,200,0.3', 'zipf:300,1.3,2', 'uniform:0.0625k']
        measured = bench_rows('--profile', *texts, '--batch', '9', '--dtype', 'bf16', '--min-time',
                              '0', '--repetitions', '1', '--working-set', '1')
        self.assertEqual(len(measured), len(texts))
        for row in measured:
            own = rows.Row(row['batch'], row['profile'], row['kv_heads'], row['page_size'], 'bf16')
            self.assertEqual(own.kv_bytes(SEED), row['bytes'], row['profile'])
            self.assertEqual(own.key(), {name: row[name] for name in own.key()})
            self.assertEqual(len(own.seq_lens(SEED)), row['batch'])

    def test_grid_is_that_of_headrace_bench(self):
        # Sets above 80 GB are reported without being measured.
        listed = bench_rows('grid', '--min-mb', '80001')
        own = rows.select(rows.grid(), SEED, min_mb=80001)
        self.assertEqual([row.key() | {'bytes': row.kv_bytes(SEED)} for row in own],
                         [{name: row[name] for name in [*own[0].key(), 'bytes']}
                          for row in listed])

    def test_quick_rows_are_rows_of_the_grid(self):
        quick = rows.quick()
        self.assertEqual(len(set(quick)), 30)
        self.assertLessEqual(set(quick), set(rows.grid()))
        self.assertLessEqual(max(row.kv_bytes(1) for row in quick), 5e9)

    def test_sizes(self):
        row = rows.Row(3, 'uniform:100', 8, 16, 'fp8')
        self.assertEqual(row.kv_bytes(1), 2 * 3 * 100 * 8 * 128)
        self.assertEqual(row.set_pages(1), 3 * 7)
        self.assertEqual(row.group, 4)
        self.assertTrue(row.head_scales)

    def test_select(self):
        chosen = rows.select(rows.grid(), SEED, batches=[1], kv_heads=[4], page_sizes=[16],
                             dtypes=['fp8'], min_mb=2, max_mb=5)
        self.assertEqual([str(row) for row in chosen],
                         [f'1 x uniform:{tokens}, fp8, 4 KV heads, page 16'
                          for tokens in (2048, 4096)])
        with self.assertRaisesRegex(ValueError, '--kv-heads: the rows have 32, 8, 4; given 5'):
            rows.select(rows.grid(), SEED, kv_heads=[8, 5])
        with self.assertRaisesRegex(ValueError, 'none of 648 rows .*--max-mb 0.5'):
            rows.select(rows.grid(), SEED, max_mb=0.5)

    def test_the_generator_is_the_standard_s(self):
        random = profiles.Random(5489)
        for _ in range(9999):
            random.bits()
        self.assertEqual(random.bits(), 9981545732273789042)  # given by the C++ standard

    def test_wrong_profiles(self):
        for text, message in [('normal:3', 'needs one of uniform:len'),
                              ('uniform', "needs numbers from 0 to 2147483647, given ''"),
                              ('uniform:-1', "given '-1'"),
                              ('zipf:3', 'needs zipf:longest,exponent.*, given 1 values')]:
            with self.assertRaisesRegex(ValueError, message):
                profiles.lengths(text, 2, 1)


if __name__ == '__main__':
    unittest.main()
