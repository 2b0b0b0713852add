"""Results as Markdown: what a reader should see first comes first."""

from . import results

REQUESTS = '{batch} x {profile}'
CACHE = '{dtype}, {kv_heads} KV heads, page {page_size}'


def _distinct(values):
    return list(dict.fromkeys(values))


def _table(header, lines):
    """Columns whose header ends with a colon are right-aligned."""
    names = [name.removesuffix(':') for name in header]
    rules = ['---:' if name.endswith(':') else '---' for name in header]
    return '\n'.join('| ' + ' | '.join(cells) + ' |' for cells in [names, rules, *lines])


def _times(row):
    return {name: system['us'] for name, system in results.measured(row).items()}


def _row_name(row):
    return REQUESTS.format(**row) + ', ' + CACHE.format(**row)


def _setting(setting):
    return ' '.join(f'{name}={value}' for name, value in setting.items()) or 'default'


def lost(report):
    """(headrace's time over the rival's, row, rival) where a rival was faster, worst first."""
    found = []
    for row in report['rows']:
        times = _times(row)
        own = times.pop('headrace', None)
        if own is None or not times:
            continue
        rival = min(times, key=times.get)
        if times[rival] < own:
            found.append((own / times[rival], row, rival))
    return sorted(found, key=lambda entry: entry[0], reverse=True)


def _origin(report):
    machine = report['machine']
    versions = [f"{system['title']} {system['version']} ({system['name']})"
                for system in report['systems'] if system['version'] is not None]
    clocks = [row.get('clocks', {}).get('clocks.sm', '') for row in report['rows']]
    clocks = sorted(int(clock) for clock in clocks if clock.isdigit())
    text = (f"{machine['device']}, driver {machine.get('driver_version', 'unknown')}, CUDA "
            f"{machine['cuda']}, PyTorch {machine['torch']}; commit {report['commit']}; peak copy "
            f"{report['peak_copy_gbps']:.0f} GB/s; medians of {report['samples']} replays")
    if clocks:
        text += f'; SM clock {clocks[0]} to {clocks[-1]} MHz'
    return text + '.\n\n' + '; '.join(versions) + '.'


def _lost_section(report):
    compared = [row for row in report['rows']
                if 'headrace' in _times(row) and len(_times(row)) > 1]
    entries = lost(report)
    text = f'## Rows where a rival is faster: {len(entries)} of {len(compared)}\n'
    failed = [row for row in report['rows'] if 'systems' in row and 'headrace' not in _times(row)]
    if failed:
        text += f"\nNot counted, since headrace has no time: {'; '.join(map(_row_name, failed))}\n"
    if not entries:
        return text
    lines = []
    for ratio, row, rival in entries:
        own, other = row['systems']['headrace'], row['systems'][rival]
        lines.append([_row_name(row), f"{own['us']:.1f}", rival, f"{other['us']:.1f}",
                      f'{ratio:.2f}', f"{own['rms_error_pct']:.2f}",
                      f"{other['rms_error_pct']:.2f}"])
    return text + '\n' + _table(['row', 'headrace us:', 'rival', 'its us:', 'ratio:',
                                 'headrace RMS error %:', "rival's:"], lines) + '\n'


def _cell(system, is_best):
    if system is None:
        return ''
    if 'us' not in system:
        return system['why_not']
    text = f"{system['us']:.1f} ({system['pct_peak_copy']:.0f})"
    return f'**{text}**' if is_best else text


def _times_section(report, names):
    text = ('## Times\n\nMicroseconds per call (per cent of the peak copy rate). Plans are not in '
            'them, merges are.\n')
    for cache in _distinct(CACHE.format(**row) for row in report['rows']):
        lines = []
        for row in report['rows']:
            if CACHE.format(**row) != cache:
                continue
            line = [REQUESTS.format(**row), f"{row['bytes'] / 1e6:.1f}"]
            if 'skipped' in row:
                lines.append(line + [row['skipped']] + [''] * len(names))
                continue
            times = _times(row)
            best = min(times, key=times.get, default=None)
            lines.append(line + [f"{row['copy_us']:.1f}"] +
                         [_cell(row['systems'].get(name), name == best) for name in names])
        header = ['batch', 'MB:', 'copy:'] + [name + ':' for name in names]
        text += f'\n### {cache}\n\n{_table(header, lines)}\n'
    return text


def _scales_section(report, names):
    """Systems that need more kernels than their own for scales per KV head."""
    rows = [row for row in report['rows']
            if any('with_scales' in system for system in results.measured(row).values())]
    if not rows:
        return ''
    lines = []
    for row in rows:
        cells = []
        for name in names:
            system = results.measured(row).get(name)
            timed = None if system is None else system.get('with_scales', system)
            cells.append('' if timed is None else f"{timed['us']:.1f}")
        lines.append([_row_name(row), *cells])
    return ('## Scales per KV head included\n\nMicroseconds per call with the kernels that a '
            'system without such scales needs: one before and one after it for FlashInfer, one '
            'that quantises the query for FlashAttention-3.\n\n' +
            _table(['row'] + [name + ':' for name in names], lines) + '\n')


def _ranges(report, names, dtypes, value):
    """Per system and dtype: 'lowest to highest' of value(system) over the rows."""
    lines = []
    for name in names:
        line = [name]
        for dtype in dtypes:
            values = [value(results.measured(row)[name]) for row in report['rows']
                      if row['dtype'] == dtype and name in results.measured(row)]
            line.append(f'{min(values):.2f} to {max(values):.2f}' if values else '')
        lines.append(line)
    return lines


def _error_ratio(report):
    """headrace's largest error over the smallest of any system, in the worst row; or None."""
    ratios = []
    for row in report['rows']:
        errors = {name: system['max_error_pct'] for name, system in results.measured(row).items()}
        if 'headrace' in errors:
            ratios.append(errors['headrace'] / min(errors.values()))
    return max(ratios, default=None)


def _summary_sections(report, names):
    dtypes = _distinct(row['dtype'] for row in report['rows'])
    columns = ['system'] + [dtype + ':' for dtype in dtypes]
    plans = _ranges(report, names, dtypes, lambda system: system['plan_us'])
    shares = _ranges(report, names, dtypes, lambda system: system['plan_us'] / results.LAYERS)
    rms = _ranges(report, names, dtypes, lambda system: system['rms_error_pct'])
    largest = _ranges(report, names, dtypes, lambda system: system['max_error_pct'])
    ratio = _error_ratio(report)
    note = ''
    if ratio is not None:
        note = (f"\nIn no row is headrace's largest error more than {ratio:.2f} times that of the "
                'most exact system.\n')
    return [f'## Plans and metadata\n\nMicroseconds per step, until the GPU has them.\n\n'
            f'{_table(columns, plans)}\n\nPer layer of {results.LAYERS}:\n\n'
            f'{_table(columns, shares)}\n',
            '## Accuracy\n\nAgainst float64 on the same dequantised data. RMS error in per cent of '
            f'the RMS of the exact outputs:\n\n{_table(columns, rms)}\n\nLargest error in per cent '
            f'of the largest exact output:\n\n{_table(columns, largest)}\n{note}']


def _settings_section(report, names):
    lines = []
    for name in names:
        systems = [row['systems'][name] for row in report['rows']
                   if 'settings' in row.get('systems', {}).get(name, {})]
        tried = _distinct(_setting(entry['setting']) for system in systems
                          for entry in system['settings'])
        for setting in tried:
            chosen = sum(_setting(system['setting']) == setting for system in systems
                         if 'setting' in system)
            failed = _distinct(entry['failed'] for system in systems
                               for entry in system['settings']
                               if _setting(entry['setting']) == setting and 'failed' in entry)
            lines.append([name, setting, str(chosen), '; '.join(failed)])
    return ('## Settings tried\n\n' +
            _table(['system', 'setting', 'fastest in rows:', 'failed with'], lines) + '\n')


def markdown(report):
    """The report as text; rows in the order in which they were measured."""
    names = _distinct(name for row in report['rows'] for name in row.get('systems', {}))
    sections = [_origin(report), _lost_section(report), _times_section(report, names),
                _scales_section(report, names), *_summary_sections(report, names),
                _settings_section(report, names)]
    return '\n'.join(filter(None, (section.rstrip() + '\n' for section in sections if section)))
