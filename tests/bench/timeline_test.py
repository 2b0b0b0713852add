"""Timelines that headrace-bench writes, on the CPU.

Usage: timeline_test.py path/to/headrace-bench
"""

import collections
import itertools
import json
import os
import tempfile
import unittest

from bench_program import TINY, read_json, run

# Lengths of several splits, of one and of none.
LENGTHS = ['--profile', 'one-long:5000,3,0', '--dtype', 'bf16']


class Timeline(unittest.TestCase):
    def trace(self, *options):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'trace.json')
            result = run(*TINY, '--timeline', path, *options)
            self.assertEqual(result.returncode, 0, result.stderr)
            return result.stdout, read_json(path)['traceEvents']

    def test_every_item_appears_once_per_step(self):
        _, events = self.trace(*LENGTHS)
        slices = [event for event in events if event['ph'] == 'X']
        for step, kind in itertools.product([1, 2], ['queue', 'stream', 'finish']):
            items = [event for event in slices if (event['pid'], event['cat']) == (step, kind)]
            by_head = collections.defaultdict(list)
            for item in items:
                args = item['args']
                self.assertEqual(item['name'],  # an item of a CPU has all 8 heads here
                                 f"r{args['request']} h{args['kv_head']}-7 {args['split']}")
                by_head[args['request'], args['kv_head']].append(args)
            self.assertEqual({request for request, _ in by_head}, {0, 1, 2, 3})
            for (request, _), of_head in by_head.items():
                splits = sorted(int(args['split'].split('/')[0]) for args in of_head)
                self.assertEqual(splits, list(range(1, len(of_head) + 1)))
                self.assertEqual({args['split'].split('/')[1] for args in of_head},
                                 {str(len(of_head))})
                self.assertEqual(sum(args['tokens'] for args in of_head),
                                 5000 if request == 0 else 0)
            phases = collections.Counter(event['name'] for event in slices
                                         if (event['pid'], event['cat']) == (step, 'phase'))
            for name in ['wait', 'table', 'first byte', 'stream', 'tail']:
                self.assertEqual(phases[name], len(items))
            self.assertEqual(phases['write'] + phases['merge'], len(items))
            self.assertEqual(phases['merge'],
                             sum(len(of_head) > 1 for of_head in by_head.values()))

    def test_items_of_several_heads_are_named_by_heads_not_by_their_place(self):
        for options, heads in [(['--query-heads', '128'], {'h0-3', 'h4-7'}),
                               (['--layout', 'hnd', '--kv-heads', '2'], {'h0', 'h1'})]:
            _, events = self.trace('--profile', 'uniform:600', '--batch', '1', '--dtype', 'bf16',
                                   *options)
            items = [event for event in events if event.get('cat') == 'stream']
            self.assertEqual({event['name'].split()[1] for event in items}, heads)
            self.assertEqual({f"h{event['args']['kv_head']}" for event in items},
                             {name.split('-')[0] for name in heads})

    def test_slices_of_a_lane_nest_or_lie_apart(self):
        _, events = self.trace(*LENGTHS)
        names = {}
        lanes = collections.defaultdict(list)
        for event in events:
            if event['ph'] == 'M':
                names[event['name'], event['pid'], event['tid']] = event['args']['name']
                continue
            begin = round(event['ts'] * 1000)
            self.assertGreaterEqual(begin, 0)
            self.assertGreaterEqual(event['dur'], 0)
            lanes[event['pid'], event['tid']].append((begin, begin + round(event['dur'] * 1000)))
        self.assertEqual(min(begin for lane in lanes.values() for begin, _ in lane), 0)
        for (pid, tid), lane in lanes.items():
            self.assertEqual(names['process_name', pid, 0], f'step {pid}')
            self.assertRegex(names['thread_name', pid, tid], r'^worker [01] (queue|stream|finish)')
            for (begin, end), (other_begin, other_end) in itertools.permutations(lane, 2):
                self.assertFalse(begin < other_begin < end < other_end)

    def test_summary_follows_the_table(self):
        text, _ = self.trace(*LENGTHS)
        table, steps, phases = text.split('\n\n')
        self.assertEqual(len(table.splitlines()), 3)
        self.assertIn('first dry us', steps)
        self.assertEqual([line.split()[0] for line in steps.splitlines()], ['step', '1', '2'])
        for line in steps.splitlines()[1:]:
            _, _, lasts, workers, busy, first_dry, last_dry = line.split()
            self.assertIn(workers, ['1/2', '2/2'])
            self.assertTrue(0 < float(busy) <= 100, line)
            self.assertTrue(float(first_dry) <= float(last_dry) <= float(lasts), line)
        self.assertIn('median us', phases)
        self.assertIn('first byte', phases)

    def test_json_on_stdout_stays_json(self):
        text, _ = self.trace(*LENGTHS, '--json', '-')
        self.assertEqual(len(json.loads(text)['rows']), 1)

    def test_a_path_that_cannot_be_written_is_refused_before_the_measurement(self):
        result = run(*TINY, '--timeline', '/nowhere/trace.json', *LENGTHS)
        self.assertEqual(result.returncode, 1)
        self.assertIn("'/nowhere/trace.json' cannot be written", result.stderr)
        self.assertEqual(result.stdout, '')

    def test_several_rows_have_no_timeline(self):
        for options, num_rows in [([], 6), (['--dtype', 'fp8'], 3),
                                  ([*LENGTHS, '--page-size', '16,64'], 2)]:
            result = run(*TINY, '--timeline', '/nowhere/trace.json', *options)
            self.assertEqual(result.returncode, 2)
            self.assertIn(f'--timeline: needs options that select one row, given {num_rows} rows',
                          result.stderr)
            self.assertEqual(result.stdout, '')


if __name__ == '__main__':
    unittest.main()
