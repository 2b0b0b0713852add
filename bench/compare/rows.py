"""Which batches are compared: the published problem of `headrace-bench grid` and parts of it."""

import dataclasses
import functools

from . import profiles

DTYPES = ('bf16', 'fp8')  # of the cache; queries and outputs are bf16
KV_HEADS = (32, 8, 4)
PAGE_SIZES = (16, 64)
ELEMENT_BYTES = {'bf16': 2, 'fp8': 1}
MAX_SET_BYTES = 80e9  # K and V of a batch, in whole pages


@dataclasses.dataclass(frozen=True)
class Row:
    """One batch in one kind of cache; fields are named as in the results of headrace-bench."""

    batch: int
    profile: str
    kv_heads: int
    page_size: int  # tokens
    dtype: str
    qo_heads: int = 32
    head_dim: int = 128
    layout: str = 'nhd'

    @property
    def head_scales(self):
        """fp8 caches have a scale per KV head, one for K and one for V."""
        return self.dtype == 'fp8'

    @property
    def group(self):
        """Query heads per KV head."""
        return self.qo_heads // self.kv_heads

    @property
    def token_bytes(self):
        """Of K and V of one token, all heads."""
        return 2 * self.kv_heads * self.head_dim * ELEMENT_BYTES[self.dtype]

    def seq_lens(self, seed):
        return list(_lengths(self.profile, self.batch, seed))

    def kv_bytes(self, seed):
        """K and V of all valid tokens: what one call has to read."""
        return sum(self.seq_lens(seed)) * self.token_bytes

    def set_pages(self, seed):
        """Pages of the batch, in each of the two pools."""
        return sum(-(-length // self.page_size) for length in self.seq_lens(seed))

    def set_bytes(self, seed):
        """K and V of the batch, in whole pages."""
        return self.set_pages(seed) * self.page_size * self.token_bytes

    def key(self):
        return dataclasses.asdict(self) | {'head_scales': self.head_scales}

    def __str__(self):
        return (f'{self.batch} x {self.profile}, {self.dtype}, {self.kv_heads} KV heads, '
                f'page {self.page_size}')


@functools.lru_cache(maxsize=256)
def _lengths(profile, batch, seed):
    return tuple(profiles.lengths(profile, batch, seed))


SKEWED = [(8, 'lognormal:2048,1.2'), (32, 'lognormal:2048,1.2'), (128, 'lognormal:2048,1.2'),
          (256, 'lognormal:2048,1.2'), (256, 'lognormal:2048,1.8'),
          (32, 'one-long:131072,31,4096'), (128, 'one-long:131072,127,2048'),
          (32, 'one-long:131072,31,512')]
# Beside those of the published problem.
MORE_SKEWED = [(64, 'bimodal:512,32768,0.1'), (64, 'zipf:131072,1')]


def _grid_requests():
    powers = [2**i for i in range(10, 18)]
    requests = [(batch, f'uniform:{tokens}') for batch in (1, 8, 32, 128, 256)
                for tokens in powers]
    requests += [(batch, 'uniform:8192') for batch in (9, 17, 18, 20, 34)]
    return requests + SKEWED + [(1, 'uniform:524288')]


def _rows(requests):
    return [Row(batch, profile, kv_heads, page_size, dtype) for dtype in DTYPES
            for kv_heads in KV_HEADS for page_size in PAGE_SIZES for batch, profile in requests]


def grid():
    """The published problem, in the order of `headrace-bench grid`."""
    return _rows(_grid_requests())


def skew():
    """Mixes of lengths, in every kind of cache."""
    return _rows(SKEWED + MORE_SKEWED)


def quick():
    """Thirty rows of the grid that show every kind of batch."""
    requests = [(1, 'uniform:1024'), (1, 'uniform:8192'), (1, 'uniform:131072'),
                (8, 'uniform:1024'), (8, 'uniform:8192'), (32, 'uniform:1024'),
                (32, 'uniform:8192'), (128, 'uniform:4096'), (256, 'uniform:1024'),
                (17, 'uniform:8192'), (32, 'lognormal:2048,1.2'), (128, 'lognormal:2048,1.2'),
                (32, 'one-long:131072,31,4096')]
    rows = [Row(batch, profile, 8, 16, dtype) for dtype in DTYPES for batch, profile in requests]
    return rows + [Row(8, 'uniform:8192', 8, 64, 'fp8'), Row(128, 'uniform:4096', 8, 64, 'fp8'),
                   Row(32, 'uniform:4096', 4, 16, 'fp8'), Row(8, 'uniform:4096', 32, 16, 'bf16')]


def select(rows, seed, *, batches=None, kv_heads=None, page_sizes=None, dtypes=None, min_mb=0,
           max_mb=float('inf')):
    """Those rows that have one of the given values each; None is any, MB are 10^6 bytes.

    Raises ValueError for a value that no row has, or if nothing is left.
    """
    chosen = {'batch': batches, 'kv_heads': kv_heads, 'page_size': page_sizes, 'dtype': dtypes}
    for name, values in chosen.items():
        present = dict.fromkeys(getattr(row, name) for row in rows)
        for value in values or []:
            if value not in present:
                option = '--' + name.replace('_', '-')
                raise ValueError(f"{option}: the rows have {', '.join(map(str, present))}; "
                                 f'given {value}')
    left = [row for row in rows
            if all(values is None or getattr(row, name) in values
                   for name, values in chosen.items())
            and min_mb <= row.kv_bytes(seed) / 1e6 <= max_mb]
    if not left:
        raise ValueError(f'these options leave none of {len(rows)} rows '
                         f'(--min-mb {min_mb:g}, --max-mb {max_mb:g})')
    return left
