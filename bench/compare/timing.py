"""Times of calls in CUDA graphs."""

import statistics

import torch

MIN_CALLS = 8  # in a graph, so that launching it does not count
LONG_REPLAY_US = 5000  # graphs that take longer need no more calls than there are KV sets
GUESSED_GBPS = 4000
WARM_UPS = 3


def num_calls(num_sets, num_bytes):
    """Calls in a graph: each set as often, many, but not longer than it takes."""
    guessed_us = 5 + num_bytes / GUESSED_GBPS / 1e3
    rounds = -(-min(MIN_CALLS, LONG_REPLAY_US / guessed_us) // num_sets)
    return int(num_sets * max(rounds, 1))


class Graph:
    """`count` captured calls: call(0), call(1), ... on the current stream.

    Keeps `call` alive, and with it the memory that the captured kernels use. Raises what call()
    raises, or torch's error if a graph cannot hold what it does.
    """

    def __init__(self, call, count):
        self.count = count
        self._call = call
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            call(0)  # loads kernels, which a capture may not
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph, stream=stream):
            for i in range(count):
                call(i)
        self._begin, self._end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        for _ in range(WARM_UPS):
            self.replay_us()

    def replay_us(self):
        """Per call, of one replay."""
        self._begin.record()
        self._graph.replay()
        self._end.record()
        self._end.synchronize()
        return 1e3 * self._begin.elapsed_time(self._end) / self.count

    def keep_busy(self, us):
        """Queues replays for about so long, and returns before they have ended."""
        for _ in range(int(us / (self.replay_us() * self.count)) + 1):
            self._graph.replay()

    def median_us(self, replays):
        return statistics.median(self.replay_us() for _ in range(replays))


def interleave(graphs, samples):
    """Replays {name: graph} in turn, `samples` times each: {name: [us per call]}."""
    times = {name: [] for name in graphs}
    for _ in range(samples):
        for name, graph in graphs.items():
            times[name].append(graph.replay_us())
    return times


def summarise(times_us):
    """Median, and half of the distance between the 10th and the 90th percentile."""
    deciles = statistics.quantiles(times_us, n=10, method='inclusive')
    return {'us': statistics.median(times_us), 'spread_us': (deciles[8] - deciles[0]) / 2,
            'samples': len(times_us)}
