"""Pictures of results, as SVG whose bytes depend on the results and matplotlib alone."""

import collections
import pathlib

import matplotlib

matplotlib.use('svg')
matplotlib.rcParams.update({'svg.hashsalt': 'headrace', 'svg.fonttype': 'none', 'font.size': 9})

from matplotlib import pyplot  # noqa: E402  (after the backend is chosen)

from . import results  # noqa: E402

FULL = 110  # per cent of the peak copy rate: what reading alone can reach
COLORS = dict(zip(('headrace', 'fa3', 'fi-tc', 'fi-ba', 'fi-xqa', 'fi-cc', 'fa2'),
                  ('#d62728', '#1f77b4', '#2ca02c', '#9467bd', '#ff7f0e', '#8c564b', '#7f7f7f')))


def _names(rows):
    """Systems with a time, in the order of COLORS."""
    present = {name for row in rows for name in results.measured(row)}
    return [name for name in COLORS if name in present] + sorted(present - set(COLORS))


def _dtypes(rows):
    return sorted({row['dtype'] for row in rows})


def _uniform_tokens(row):
    kind, _, tokens = row['profile'].partition(':')
    return int(tokens) if kind == 'uniform' else None


def _thousands(tokens):
    return f'{tokens // 1024}k' if tokens % 1024 == 0 else str(tokens)


def _heat_map(axes, rows, name):
    """Batch x context: per cent of the peak copy rate of a system, in colour and as a number."""
    cells = {(row['batch'], _uniform_tokens(row)): results.measured(row)[name]['pct_peak_copy']
             for row in rows if name in results.measured(row)}
    batches = sorted({row['batch'] for row in rows})
    contexts = sorted({_uniform_tokens(row) for row in rows})
    grid = [[cells.get((batch, tokens), float('nan')) for tokens in contexts] for batch in batches]
    image = axes.imshow(grid, cmap='RdYlGn', vmin=0, vmax=FULL, aspect='auto', origin='lower')
    for y, line in enumerate(grid):
        for x, value in enumerate(line):
            if value == value:
                axes.text(x, y, f'{value:.0f}', ha='center', va='center', fontsize=7)
    axes.set_xticks(range(len(contexts)), [_thousands(tokens) for tokens in contexts],
                    rotation='vertical')
    axes.set_yticks(range(len(batches)), batches)
    return image


def _title(rows):
    return f"{rows[0]['kv_heads']} KV heads, pages of {rows[0]['page_size']}"


def heat_maps(rows):
    """Figure of the batches with several uniform lengths: a map per system and dtype, or None."""
    rows = [row for row in rows if _uniform_tokens(row) is not None and results.measured(row)]
    lengths = {(row['batch'], row['profile']) for row in rows}
    several = collections.Counter(batch for batch, _ in lengths)
    rows = [row for row in rows if several[row['batch']] > 1]
    if not rows:
        return None
    names, dtypes = _names(rows), _dtypes(rows)
    figure, grid = pyplot.subplots(len(dtypes), len(names), squeeze=False, layout='constrained',
                                   figsize=(2.3 * len(names) + 1, 2.1 * len(dtypes) + 0.8))
    for dtype, line in zip(dtypes, grid):
        of_dtype = [row for row in rows if row['dtype'] == dtype]
        for name, axes in zip(names, line):
            image = _heat_map(axes, of_dtype, name)
            axes.set_title(f'{name}, {dtype}')
    for axes in grid[:, 0]:
        axes.set_ylabel('requests')
    for axes in grid[-1]:
        axes.set_xlabel('tokens each')
    figure.colorbar(image, ax=grid, label='% of peak copy')
    figure.suptitle(_title(rows))
    return figure


def skew_bars(rows):
    """Figure of the mixes of lengths: bars per system; None if there are none."""
    rows = [row for row in rows if _uniform_tokens(row) is None and results.measured(row)]
    if not rows:
        return None
    names, dtypes = _names(rows), _dtypes(rows)
    figure, lines = pyplot.subplots(len(dtypes), 1, squeeze=False, layout='constrained',
                                    figsize=(9, 2.8 * len(dtypes)))
    for dtype, axes in zip(dtypes, lines[:, 0]):
        of_dtype = [row for row in rows if row['dtype'] == dtype]
        width = 0.8 / len(names)
        for number, name in enumerate(names):
            bars = [(place + (number - (len(names) - 1) / 2) * width,
                     results.measured(row)[name]['pct_peak_copy'])
                    for place, row in enumerate(of_dtype) if name in results.measured(row)]
            axes.bar([x for x, _ in bars], [height for _, height in bars], width, label=name,
                     color=COLORS.get(name))
        axes.axhline(100, color='black', linewidth=0.8)
        axes.set_xticks(range(len(of_dtype)),
                        [f"{row['batch']} x\n{row['profile'].replace(':', ':' + chr(10))}"
                         for row in of_dtype], fontsize=7)
        axes.set_ylabel(f'{dtype}: % of peak copy')
    lines[0, 0].legend(loc='lower center', bbox_to_anchor=(0.5, 1), ncols=len(names))
    figure.suptitle(_title(rows))
    return figure


def time_against_bytes(rows):
    """Figure of all rows: time of a call against K and V, both logarithmic, and the copy's line."""
    rows = sorted((row for row in rows if results.measured(row)), key=lambda row: row['bytes'])
    if not rows:
        return None
    dtypes = _dtypes(rows)
    figure, lines = pyplot.subplots(1, len(dtypes), squeeze=False, sharey=True,
                                    layout='constrained', figsize=(5 * len(dtypes), 4.4))
    for dtype, axes in zip(dtypes, lines[0]):
        of_dtype = [row for row in rows if row['dtype'] == dtype]
        axes.plot([row['bytes'] / 1e6 for row in of_dtype], [row['copy_us'] for row in of_dtype],
                  color='black', linewidth=1, label='copy of as many bytes')
        for name in _names(of_dtype):
            points = [(row['bytes'] / 1e6, results.measured(row)[name]['us']) for row in of_dtype
                      if name in results.measured(row)]
            axes.scatter([x for x, _ in points], [y for _, y in points], s=12, label=name,
                         color=COLORS.get(name))
        axes.set(xscale='log', yscale='log', title=dtype, xlabel='MB of K and V')
    lines[0, 0].set_ylabel('us per call')
    lines[0, 0].legend(fontsize=8)
    figure.suptitle(_title(rows))
    return figure


PICTURES = {'heatmap': heat_maps, 'skew': skew_bars, 'bytes': time_against_bytes}


def write(report, folder, kv_heads=None, page_size=None):
    """Writes the pictures of the rows with these KV heads and page size; returns their paths.

    None stands for those that most rows have. Raises ValueError if no measured row has them.
    """
    kinds = collections.Counter((row['kv_heads'], row['page_size']) for row in report['rows']
                                if results.measured(row))
    kind = next((kind for kind, _ in kinds.most_common()
                 if kv_heads in (None, kind[0]) and page_size in (None, kind[1])), None)
    if kind is None:
        raise ValueError(f'needs one of (KV heads, page size) in {sorted(kinds)}, given '
                         f'{(kv_heads, page_size)}')
    rows = [row for row in report['rows'] if (row['kv_heads'], row['page_size']) == kind]
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, draw in PICTURES.items():
        figure = draw(rows)
        if figure is None:
            continue
        path = folder / f'{name}.svg'
        figure.savefig(path, metadata={'Date': None, 'Creator': None})
        pyplot.close(figure)
        paths.append(path)
    return paths
