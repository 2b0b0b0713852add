"""The yardstick: how long a copy takes that moves as many bytes, half read and half written."""

import torch

from . import problem, timing

MAX_HALF_BYTES = 2 << 30  # larger ones are no faster
PEAK_BYTES = (256 << 20, 512 << 20, 1 << 30, 4 << 30)
VECTOR_BYTES = 16
REPLAYS = 10


def _memcpy(source, target):
    target.copy_(source)


def _elementwise(source, target):
    """A kernel; the complement of the bits, since there is no plainer one."""
    torch.bitwise_not(source.view(torch.int32), out=target.view(torch.int32))


WAYS = {'memcpy': _memcpy, 'kernel': _elementwise}


class Copier:
    """Copies out of a pool into memory of its own, at another place each time."""

    def __init__(self, pool):
        self._pool = pool
        self._target = torch.empty(MAX_HALF_BYTES, dtype=torch.uint8, device='cuda')

    def graph(self, num_bytes):
        """(graph, way, bytes): copies that move `bytes`, num_bytes or the most, the best way."""
        half = min(num_bytes // 2, MAX_HALF_BYTES, self._pool.numel())
        half = max(half // VECTOR_BYTES, 1) * VECTOR_BYTES
        places = max(min(self._pool.numel(), MAX_HALF_BYTES) // half, 1)
        cold_places = min(places, problem.num_sets(2 * half, problem.cold_bytes()))
        count = timing.num_calls(cold_places, 2 * half)

        def copy(way):
            def call(i):
                part = slice(half * (i % places), half * (i % places + 1))
                WAYS[way](self._pool[part], self._target[part])
            return timing.Graph(call, count)

        graphs = {way: copy(way) for way in WAYS}
        best = min(graphs, key=lambda way: graphs[way].median_us(REPLAYS))
        return graphs[best], best, 2 * half

    def peak_gbps(self):
        """Of the fastest size: bytes read + bytes written over time."""
        rates = []
        for num_bytes in PEAK_BYTES:
            graph, _, copied = self.graph(num_bytes)
            rates.append(copied / graph.median_us(REPLAYS) / 1e3)
        return max(rates)
