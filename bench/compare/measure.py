"""One row: the best setting of every system, checked, then all of them timed in turn."""

import math
import statistics
import time

import torch

from . import machine, reference, results, timing
from .systems.base import Runner

TRIAL_REPLAYS = 5
PLANS = 20
BUSY_US = 300_000  # while the clocks are read
# Far above what quantised queries cost; a wrong kernel is further off.
MAX_RMS_ERROR_PCT = 25


def _failure(error):
    return f'{type(error).__name__}: {error}'.strip().splitlines()[0][:200]


class Checker:
    """Errors of outputs against float64, for a sample of the row's requests and heads."""

    def __init__(self, problem, seed):
        self.problem = problem
        self.kv_set = problem.num_sets - 1
        self.pairs = reference.sample(problem, seed)
        self.expected = reference.attention(problem, self.kv_set, self.pairs)

    def errors(self, runner):
        runner.out.fill_(math.nan)
        runner.run_with_scales(self.kv_set)
        torch.cuda.synchronize()
        actual = reference.select(self.problem, runner.out, self.pairs)
        rms_pct, max_pct = reference.compare(actual, self.expected)
        return {'rms_error_pct': rms_pct, 'max_error_pct': max_pct,
                'checked_outputs': len(self.pairs) * self.problem.row.group,
                'outputs': self.problem.row.batch * self.problem.row.qo_heads}


def _graph(runner, call):
    """Of calls that take the KV sets in turn."""
    num_sets = runner.problem.num_sets
    return timing.Graph(lambda i: call(i % num_sets),
                        timing.num_calls(num_sets, runner.problem.kv_bytes))


def _try(system, problem, setting, checker):
    """(runner, us, errors). Raises ArithmeticError for wrong results, or what the system raises."""
    runner = system.bind(problem, setting)
    runner.plan()
    errors = checker.errors(runner)
    if not errors['rms_error_pct'] <= MAX_RMS_ERROR_PCT:
        raise ArithmeticError(f"wrong results, RMS error {errors['rms_error_pct']:.3g} %")
    return runner, _graph(runner, runner.run).median_us(TRIAL_REPLAYS), errors


def choose(system, problem, checker):
    """(runner of the fastest setting or None, what the results say of it and of the others)."""
    best = None
    tried = []
    for setting in system.settings(problem):
        try:
            runner, us, errors = _try(system, problem, setting, checker)
        except Exception as error:  # whatever a rival raises is a result
            tried.append({'setting': setting, 'failed': _failure(error)})
            torch.cuda.synchronize()  # raises if the GPU's context is lost
            continue
        tried.append({'setting': setting, 'us': us})
        if best is None or us < best[1]:
            best = runner, us, {'setting': setting, **errors}
    if best is None:
        return None, {'why_not': tried[0]['failed'], 'settings': tried}
    return best[0], best[2] | {'settings': tried}


def time_plans(runner):
    """Medians: until the call returns, and until the GPU has done its part; 0 without a plan."""
    if type(runner).plan is Runner.plan:
        return {'plan_host_us': 0.0, 'plan_us': 0.0}
    returned, done = [], []
    for _ in range(PLANS):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        runner.plan()
        returned.append(1e6 * (time.perf_counter() - begin))
        torch.cuda.synchronize()
        done.append(1e6 * (time.perf_counter() - begin))
    return {'plan_host_us': statistics.median(returned), 'plan_us': statistics.median(done)}


def _prepare(system, problem, checker, graphs):
    """What the results say of a system before it is timed. Adds its graphs, if it has any."""
    row = problem.row
    reason = system.why_not(row)
    if reason is not None:
        return {'why_not': reason}
    runner, result = choose(system, problem, checker)
    if runner is None:
        return result
    result |= {'extra_kernels': system.extra_kernels(row), **time_plans(runner)}
    graphs[system.name] = _graph(runner, runner.run)
    if result['extra_kernels']:
        graphs[system.name, 'scales'] = _graph(runner, runner.run_with_scales)
    return result


def measure(problem, systems, copier, *, seed, samples, peak_copy_gbps, starting):
    """The results of a row. `starting` is told the name of each system before it runs, then 'all'.

    Raises torch's error if a system takes the GPU's context with it.
    """
    starting('all')
    checker = Checker(problem, seed)
    copy, copy_way, copied_bytes = copier.graph(problem.kv_bytes)
    graphs = {'copy': copy}
    of_systems = {}
    for system in systems:
        starting(system.name)
        of_systems[system.name] = _prepare(system, problem, checker, graphs)
    starting('all')
    times = timing.interleave(graphs, samples)
    graphs['copy'].keep_busy(BUSY_US)
    clocks = machine.clocks()
    torch.cuda.synchronize()
    copy_us = statistics.median(times['copy']) * problem.kv_bytes / copied_bytes
    for name, system in of_systems.items():
        if name not in times:
            continue
        system |= timing.summarise(times[name])
        gbps = problem.kv_bytes / system['us'] / 1e3
        system |= {'calls_per_sample': graphs[name].count, 'gbps': gbps,
                   'pct_peak_copy': 100 * gbps / peak_copy_gbps,
                   'pct_matched_copy': 100 * copy_us / system['us'],
                   'us_with_plan': results.with_plan_us(system)}
        if (name, 'scales') in times:
            system['with_scales'] = timing.summarise(times[name, 'scales'])
    return {'bytes': problem.kv_bytes, 'kv_sets': problem.num_sets, 'copy_us': copy_us,
            'copy_way': copy_way, 'clocks': clocks, 'systems': of_systems}
