"""Results, table, pictures and command line of compare, without a GPU."""

import copy
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / 'bench'))
from compare import packages, plots, results, table  # noqa: E402

FIXTURE = pathlib.Path(__file__).with_name('results_fixture.json')


def compare(*arguments):
    return subprocess.run([sys.executable, '-m', 'compare', *map(str, arguments)], text=True,
                          capture_output=True, env=os.environ | {'PYTHONPATH': str(ROOT / 'bench')},
                          timeout=300)


class Results(unittest.TestCase):
    def setUp(self):
        self.report = results.read(FIXTURE)

    def test_rows_are_found_and_replaced_by_key(self):
        row = self.report['rows'][1]
        self.assertIs(results.find(self.report, row), row)
        changed = copy.deepcopy(row) | {'bytes': 1}
        results.put(self.report, changed)
        self.assertEqual(len(self.report['rows']), 4)
        self.assertEqual(results.find(self.report, row)['bytes'], 1)
        self.assertIsNone(results.find(self.report, row | {'page_size': 64}))

    def test_a_written_file_is_read_back(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / 'results.json'
            results.write(path, self.report)
            self.assertEqual(results.read(path), self.report)
            self.assertEqual(os.listdir(folder), ['results.json'])

    def test_other_files_are_refused(self):
        def without(name):
            return {key: value for key, value in self.report.items() if key != name}
        keyless = copy.deepcopy(self.report)
        del keyless['rows'][0]['layout']
        for value, message in [('[]', 'needs schema headrace-compare/1, given None'),
                               ('{', 'cannot be read'),
                               ('{"schema": "x"}', 'needs schema headrace-compare/1, given x'),
                               (json.dumps(without('rows')), 'rows is missing'),
                               (json.dumps(keyless), 'a row has no layout')]:
            with tempfile.NamedTemporaryFile('w', suffix='.json') as file:
                file.write(value)
                file.flush()
                with self.assertRaisesRegex(results.ResultsError, message):
                    results.read(file.name)
        with self.assertRaisesRegex(results.ResultsError, "'/nowhere.json' cannot be read"):
            results.read('/nowhere.json')

    def test_results_of_another_origin_are_refused(self):
        results.require_same_origin(self.report, copy.deepcopy(self.report), 'x.json')
        with self.assertRaisesRegex(results.ResultsError, "'x.json' holds results of another seed: "
                                    'needs 1, given 2'):
            results.require_same_origin(self.report, self.report | {'seed': 2}, 'x.json')


class Table(unittest.TestCase):
    def setUp(self):
        self.report = results.read(FIXTURE)
        self.text = table.markdown(self.report)

    def test_rows_that_a_rival_wins_come_first(self):
        headings = re.findall(r'^## (.*)$', self.text, re.MULTILINE)
        self.assertEqual(headings, ['Rows where a rival is faster: 1 of 3', 'Times',
                                    'Scales per KV head included', 'Plans and metadata',
                                    'Accuracy', 'Settings tried'])
        self.assertIn('| 8 x uniform:128, bf16, 8 KV heads, page 16 | 8.0 | fa3 | 6.4 | 1.25 | '
                      '0.17 | 0.20 |', self.text)
        self.report['rows'][0]['systems']['fa3']['us'] = 35.0
        ratios = [ratio for ratio, *_ in table.lost(self.report)]
        self.assertEqual(ratios, [2.0, 1.25])

    def test_reasons_stand_in_the_place_of_numbers(self):
        self.assertIn('| 8 x uniform:8192 | 268.4 | 67.0 | **70.0 (96)** | 75.0 (90) | '
                      'needs a smaller page |', self.text)
        self.assertIn('| 256 x uniform:131072 | 137439.0 | K and V are 137.4 GB', self.text)

    def test_a_row_that_headrace_cannot_run_is_named(self):
        self.report['rows'][0]['systems']['headrace'] = {'why_not': 'HeadraceError: no'}
        text = table.markdown(self.report)
        self.assertIn('Rows where a rival is faster: 1 of 2', text)
        self.assertIn('headrace has no time: 8 x uniform:8192, bf16', text)

    def test_kernels_for_scales_are_shown_apart(self):
        self.assertIn('page 16 | 124.0 | 178.0 |', self.text)

    def test_plans_accuracy_and_settings(self):
        self.assertIn('| headrace | 8.00 to 16.00 | 16.00 to 16.00 |', self.text)
        self.assertIn('| headrace | 0.25 to 0.50 | 0.50 to 0.50 |', self.text)
        self.assertIn('| fa3 | 0.40 to 0.40 | 13.00 to 13.00 |', self.text)
        self.assertIn("headrace's largest error more than 1.00 times", self.text)
        self.assertIn('| headrace | launch=dependent | 1 |  |', self.text)
        self.assertIn('| fa3 | causal=True num_splits=0 | 2 | RuntimeError: no |', self.text)

    def test_lines_of_a_table_are_as_wide_as_its_header(self):
        width = None
        for line in self.text.splitlines():
            cells = line.count('|')
            width = (width or cells) if cells else None
            self.assertEqual(cells or None, width, line)

    def test_command(self):
        result = compare('table', FIXTURE)
        self.assertEqual((result.returncode, result.stderr), (0, ''))
        self.assertEqual(result.stdout, self.text + '\n')


class Plots(unittest.TestCase):
    def write(self, folder, report=None, **options):
        return plots.write(report or results.read(FIXTURE), folder, **options)

    def test_pictures_are_the_same_every_time(self):
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
            first, second = self.write(one), self.write(two)
            self.assertEqual([path.name for path in first],
                             ['heatmap.svg', 'skew.svg', 'bytes.svg'])
            for path, again in zip(first, second):
                self.assertEqual(path.read_bytes(), again.read_bytes())
                root = xml.etree.ElementTree.parse(path).getroot()
                self.assertTrue(root.tag.endswith('svg'))

    def test_pictures_show_what_was_measured(self):
        with tempfile.TemporaryDirectory() as folder:
            texts = [path.read_text() for path in self.write(folder)]
        for text in texts:
            self.assertIn('headrace', text)
            self.assertIn('fa3', text)
            self.assertNotIn('fi-xqa', text)  # has no time
            self.assertIn('8 KV heads, pages of 16', text)
        for value in ('>96<', '>90<', '>13<', '>16<', '>128<', '>8k<'):
            self.assertIn(value, texts[0])
        self.assertIn('one-long', texts[1])
        self.assertIn('copy of as many bytes', texts[2])

    def test_pictures_without_rows_are_left_out(self):
        report = results.read(FIXTURE)
        report['rows'] = report['rows'][2:]
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual([path.name for path in self.write(folder, report)],
                             ['skew.svg', 'bytes.svg'])
            with self.assertRaisesRegex(ValueError, r'in \[\(8, 16\)\], given \(4, None\)'):
                self.write(folder, kv_heads=4)

    def test_command(self):
        with tempfile.TemporaryDirectory() as folder:
            result = compare('plot', FIXTURE, '--out', pathlib.Path(folder) / 'new')
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(len(result.stdout.splitlines()), 3)
            self.assertEqual(len(os.listdir(pathlib.Path(folder) / 'new')), 3)


class CommandLine(unittest.TestCase):
    def test_wrong_options_exit_with_2_and_say_what_is_needed(self):
        for options, message in [
                (['measure', '--kv-heads', '5'], '--kv-heads: the rows have 32, 8, 4; given 5'),
                (['measure', '--quick', '--max-mb', '0.5'], 'leave none of 30 rows'),
                (['measure', '--quick', '--skew'], 'not allowed with'),
                (['measure', '--samples', '1'], 'needs at least 2, given 1'),
                ([], 'COMMAND')]:
            with self.subTest(options=options):
                result = compare(*options)
                self.assertEqual(result.returncode, 2)
                self.assertIn(message, result.stderr)
                self.assertEqual(result.stdout, '')

    def test_a_wrong_file_exits_with_1(self):
        result = compare('table', '/nowhere.json')
        self.assertEqual(result.returncode, 1)
        self.assertIn("compare: '/nowhere.json' cannot be read", result.stderr)


class Packages(unittest.TestCase):
    def test_every_pin_has_a_hash(self):
        pins = packages.pins()
        for name in ('flashinfer-python', 'vllm', 'torch', 'numpy'):
            self.assertIn(name, pins)
        for name, (version, hashes) in pins.items():
            self.assertRegex(version, r'^\d', name)
            self.assertTrue(hashes, name)
            for sha256 in hashes:
                self.assertRegex(sha256, r'^[0-9a-f]{64}$', name)

    def test_what_is_missing_is_named(self):
        known = packages.pins()['vllm'][0]
        for version, reason in [(None, f'needs vllm {known}, not installed'),
                                ('0.1', f'needs vllm {known}, 0.1 installed'), (known, None)]:
            with unittest.mock.patch.object(packages, 'installed', lambda name: version):
                self.assertEqual(packages.why_not('vllm'), reason)
        self.assertIn('no_such_module cannot be imported',
                      packages.why_not_imported('no_such_module'))

    def test_libraries_are_described_by_their_hash(self):
        with tempfile.NamedTemporaryFile() as file:
            file.write(b'abc')
            file.flush()
            path = pathlib.Path(file.name)
            described = packages.describe('vllm', [path, pathlib.Path('/nowhere.so')])
        self.assertEqual(described['libraries'], {path.name: (
            'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad')})


if __name__ == '__main__':
    unittest.main()
