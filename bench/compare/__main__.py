"""The command line: measure (the default), table, plot."""

import argparse
import pathlib
import sys

from . import results, rows, table

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARY = ROOT / 'build' / 'default' / 'runtime' / 'libheadrace.so'


def _numbers(text):
    return [int(word) for word in text.split(',')]


def _words(text):
    return text.split(',')


def _samples(text):
    if int(text) < 2:
        raise argparse.ArgumentTypeError(f'needs at least 2, given {text}')
    return int(text)


def _parser():
    parser = argparse.ArgumentParser(
        prog='compare', description='headrace beside FlashInfer and FlashAttention on one GPU.')
    commands = parser.add_subparsers(dest='command', required=True, metavar='COMMAND')

    run = commands.add_parser('measure', help='measures rows; the same command goes on after an '
                              'interruption')
    which = run.add_mutually_exclusive_group()
    which.add_argument('--quick', action='store_const', dest='rows', const=rows.quick,
                       default=rows.grid, help='30 rows instead of the whole grid')
    which.add_argument('--skew', action='store_const', dest='rows', const=rows.skew,
                       help='mixes of lengths instead of the whole grid')
    run.add_argument('--batch', type=_numbers, metavar='N[,N]', help='only these batches')
    run.add_argument('--kv-heads', type=_numbers, metavar='N[,N]')
    run.add_argument('--page-size', type=_numbers, metavar='N[,N]', help='tokens')
    run.add_argument('--dtype', type=_words, metavar='NAME[,NAME]', help='of the cache: bf16, fp8')
    run.add_argument('--min-mb', type=float, default=0, metavar='MB', help='10^6 bytes of K and V')
    run.add_argument('--max-mb', type=float, default=float('inf'), metavar='MB')
    run.add_argument('--systems', type=_words, metavar='NAME[,NAME]',
                     help='only these rivals; rows that lack one of them are measured anew')
    run.add_argument('--samples', type=_samples, default=100, metavar='N',
                     help='replays of each graph (%(default)s); the results are medians')
    run.add_argument('--seed', type=int, default=1, metavar='N',
                     help='for lengths, page order and values (%(default)s)')
    run.add_argument('--library', type=pathlib.Path, default=LIBRARY, metavar='PATH',
                     help='libheadrace.so; build/default by default')
    run.add_argument('--json', type=pathlib.Path, default=pathlib.Path('compare.json'),
                     metavar='PATH', help='the results (%(default)s)')

    show = commands.add_parser('table', help='prints results as Markdown')
    show.add_argument('file', type=pathlib.Path)
    plot = commands.add_parser('plot', help='writes pictures of results as SVG')
    plot.add_argument('file', type=pathlib.Path)
    plot.add_argument('--out', type=pathlib.Path, default=pathlib.Path('.'), metavar='FOLDER')
    plot.add_argument('--kv-heads', type=int, metavar='N',
                      help='of the rows to show; by default what most rows have')
    plot.add_argument('--page-size', type=int, metavar='N')
    return parser


def _measure(options, parser):
    try:
        chosen = rows.select(options.rows(), options.seed, batches=options.batch,
                             kv_heads=options.kv_heads, page_sizes=options.page_size,
                             dtypes=options.dtype, min_mb=options.min_mb, max_mb=options.max_mb)
        from . import run  # needs PyTorch, which the other commands do not
        rivals = run.choose_rivals(options.systems)
    except ValueError as error:
        parser.error(str(error))
    run.require_gpu()
    systems = [run.Headrace(options.library), *rivals]
    run.Run(systems, chosen, seed=options.seed, samples=options.samples,
            path=options.json).measure()
    report = results.read(options.json)
    print(table.markdown(report))
    failed = sum('systems' in row and 'headrace' not in results.measured(row)
                 for row in report['rows'])
    if failed:
        raise RuntimeError(f"headrace has no time in {failed} of {len(report['rows'])} rows")


def main():
    parser = _parser()
    options = parser.parse_args()
    try:
        if options.command == 'measure':
            _measure(options, parser)
        elif options.command == 'table':
            print(table.markdown(results.read(options.file)))
        else:
            from . import plots  # needs matplotlib
            for path in plots.write(results.read(options.file), options.out, options.kv_heads,
                                    options.page_size):
                print(path)
    except (ValueError, OSError, RuntimeError, ImportError) as error:
        sys.exit(f'compare: {error}')


if __name__ == '__main__':
    main()
