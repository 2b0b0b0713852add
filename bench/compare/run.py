"""Measures rows and keeps the results, so that a run can be stopped, or lost, and go on."""

import pathlib
import signal
import sys

import torch

from . import copies, machine, measure, packages, problem, results, rows as grid
from .systems.flash_attention import FlashAttention2, FlashAttention3
from .systems.flashinfer import BatchDecode, Persistent, Xqa
from .systems.headrace import Headrace

# Workspaces, partial results and copies of every system need memory beside K and V.
OTHER_BYTES = 12 << 30


def all_rivals():
    return [FlashAttention3(), BatchDecode(use_tensor_cores=True), Persistent(), Xqa(),
            BatchDecode(use_tensor_cores=False), FlashAttention2()]


def choose_rivals(names):
    """The named rivals, all if None. Raises ValueError for a name that none has."""
    known = [rival.name for rival in all_rivals()]
    for name in names or []:
        if name not in known:
            raise ValueError(f"--systems: needs some of {', '.join(known)}; given {name}")
    return [rival for rival in all_rivals() if names is None or rival.name in names]


def require_gpu():
    """Raises RuntimeError without a Hopper GPU."""
    if not torch.cuda.is_available():
        raise RuntimeError('needs an NVIDIA GPU, given a machine on which PyTorch finds none')
    major, minor = torch.cuda.get_device_capability(0)
    if major != 9:
        raise RuntimeError(f'needs a Hopper GPU (compute capability 9.0), given {major}.{minor}')


def _describe_packages():
    """Of all rivals' packages, each once."""
    libraries = {}
    for rival in all_rivals():
        libraries.setdefault(rival.distribution, []).extend(rival.libraries())
    return [packages.describe(name, paths) for name, paths in libraries.items()]


class Run:
    """One call of the program, with headrace as the first system. `log` gets lines for people."""

    def __init__(self, systems, rows, *, seed, samples, path, log=sys.stderr):
        self.systems = systems
        self.seed = seed
        self.path = pathlib.Path(path)
        self.log = log
        self.rows = rows
        now = {'schema': results.SCHEMA, 'machine': machine.describe(), 'commit': machine.commit(),
               'seed': seed, 'samples': samples, 'packages': _describe_packages(),
               'peak_copy_gbps': 0.0, 'systems': [], 'running': None, 'crashes': [], 'rows': []}
        self.results = now
        if self.path.exists():
            self.results = results.read(self.path)
            results.require_same_origin(self.results, now, self.path)
            self._note_crash()
        self.results['systems'] = [{'name': system.name, 'title': system.title,
                                    'version': system.version}
                                   for system in [systems[0], *all_rivals()]]

    def _note_crash(self):
        """What an earlier run did not come back from is not tried again."""
        running = self.results['running']
        if running is not None:
            self._say(f"{running['system']} ended an earlier run on this row, and is left out: "
                      f"{running['row']}")
            self.results['crashes'].append(running)
            self.results['running'] = None

    def _say(self, text):
        print(text, file=self.log, flush=True)

    def _save(self):
        results.write(self.path, self.results)

    def _crashed(self, row):
        """Names of the systems that this row has ended a run of; 'all' if nobody knows which."""
        return {crash['system'] for crash in self.results['crashes'] if crash['row'] == row.key()}

    def measure(self):
        """Measures what the results lack, saves after every row, and returns the results."""
        signal.signal(signal.SIGTERM, lambda *_: sys.exit('stopped'))
        missing = [row for row in self.rows if self._is_missing(row)]
        self._say(f'{len(self.rows)} rows, {len(missing)} to measure')
        self._save()  # a file that cannot be written is better known now
        for system in self.systems:
            self._prepare(system, missing)
        missing = self._skip_large(missing)
        if missing:
            pools = problem.Pools(max(map(self._pool_bytes, missing)), self.seed)
            copier = copies.Copier(pools.k)
            if not self.results['peak_copy_gbps']:
                self.results['peak_copy_gbps'] = copier.peak_gbps()
            for number, row in enumerate(missing, 1):
                text = self._measure_row(row, pools, copier)
                self._say(f'[{number}/{len(missing)}] {row}: {text}')
                self._save()
        return self.results

    def _prepare(self, system, rows):
        """What cannot be compiled fails again when it is used, and the row says so."""
        try:
            system.prepare(rows)
        except Exception as error:  # whatever a rival raises
            self._say(f'{system.name}: {error}')

    def _is_missing(self, row):
        found = results.find(self.results, row.key())
        if found is None or 'skipped' in found:
            return True
        return any(system.name not in found['systems'] for system in self.systems)

    def _pool_bytes(self, row):
        set_bytes = row.set_bytes(self.seed)
        return problem.num_sets(set_bytes, problem.cold_bytes()) * set_bytes // 2

    def _skip_large(self, rows):
        """Those that fit; the results say why the others do not."""
        available = torch.cuda.mem_get_info()[0] - OTHER_BYTES
        left = []
        for row in rows:
            set_bytes = row.set_bytes(self.seed)
            needed = 2 * self._pool_bytes(row)
            reason = None
            if set_bytes > grid.MAX_SET_BYTES:
                reason = (f'K and V are {set_bytes / 1e9:.1f} GB, the grid has at most '
                          f'{grid.MAX_SET_BYTES / 1e9:.0f} GB')
            elif needed > available:
                reason = f'needs {needed >> 20} MiB of memory, {available >> 20} MiB are available'
            elif 'all' in self._crashed(row):
                reason = 'ended an earlier run'
            if reason is None:
                left.append(row)
            else:
                results.put(self.results, row.key() | {'bytes': row.kv_bytes(self.seed),
                                                       'skipped': reason})
        return left

    def _starting(self, row, name):
        self.results['running'] = {'row': row.key(), 'system': name}
        self._save()

    def _measure_row(self, row, pools, copier):
        """Puts a row into the results; returns its times as text."""
        crashed = self._crashed(row)
        try:
            measured = measure.measure(
                problem.Problem(row, pools, self.seed),
                [system for system in self.systems if system.name not in crashed], copier,
                seed=self.seed, samples=self.results['samples'],
                peak_copy_gbps=self.results['peak_copy_gbps'],
                starting=lambda name: self._starting(row, name))
        except (KeyboardInterrupt, SystemExit):
            self.results['running'] = None
            self._save()
            raise
        self.results['running'] = None
        for name in crashed:
            measured['systems'][name] = {'why_not': 'ended the program'}
        results.put(self.results, row.key() | measured)
        times = [f'{name} {system["us"]:.1f}' if 'us' in system else f'{name} -'
                 for name, system in measured['systems'].items()]
        return f"copy {measured['copy_us']:.1f} us; " + ', '.join(times)
