"""The interface of a system: which rows it runs, with which settings, and how a layer is run.

All systems of a row read the same tensors (see problem.py). A call is one layer of a decode step:
it is captured in a CUDA graph, so run() may launch kernels on the current stream and nothing else
that a graph cannot hold. What is computed from the lengths once per step belongs in plan().
"""

import abc

import torch

from .. import packages


class Runner(abc.ABC):
    """A system bound to a problem and one of its settings. `out` is [batch, qo_heads, head_dim]."""

    def __init__(self, problem):
        self.problem = problem
        self.out = torch.empty_like(problem.q)

    def plan(self):
        """Once per step, before graphs are captured; nothing for systems that plan nothing."""

    @abc.abstractmethod
    def run(self, kv_set):
        """Attention of problem.q over a KV set into `out`, without scale_inputs/scale_outputs."""

    def scale_inputs(self):
        """What has to be launched before run() for scales per KV head."""

    def scale_outputs(self):
        """What has to be launched after run() for scales per KV head."""

    def run_with_scales(self, kv_set):
        self.scale_inputs()
        self.run(kv_set)
        self.scale_outputs()


class System(abc.ABC):
    """`name` is short, for tables; `distribution` the package it comes from, or None."""

    name = title = ''
    distribution = None

    @abc.abstractmethod
    def why_not(self, row):
        """Why a row cannot be run, as a phrase for the table; None if it can."""

    def settings(self, problem):
        """The settings to try, as dictionaries for the results; the fastest is kept."""
        return [{}]

    def extra_kernels(self, row):
        """How many kernels scale_inputs() and scale_outputs() launch for a row."""
        return 0

    def libraries(self):
        """Paths of the package's libraries that are loaded, for the results."""
        return []

    def prepare(self, rows):
        """Compiles what these rows need, where the system compiles at run time."""

    @abc.abstractmethod
    def bind(self, problem, setting):
        """A Runner for one of settings()."""


class PackagedSystem(System):
    """A system that comes from one of the pinned packages."""

    @property
    def version(self):
        return packages.installed(self.distribution)

    @property
    @abc.abstractmethod
    def missing(self):
        """Why the package cannot be used, or None; loads it."""

    def unsupported(self, row):
        """As why_not(), with the package loaded."""

    def why_not(self, row):
        return self.missing or self.unsupported(row)


class ScaledRunner(Runner):
    """Scales per KV head for systems that have none: they go into q and out, by a kernel each.

    run() reads `q`: problem.q, or with scales a copy that scale_inputs() fills.
    """

    NUM_KERNELS = 2

    def __init__(self, problem):
        super().__init__(problem)
        self.q = problem.q
        if problem.k_scale is not None:
            self.q = torch.empty_like(problem.q)
            group = problem.row.group
            self.q_factor = problem.k_scale.repeat_interleave(group)[None, :, None]
            self.out_factor = problem.v_scale.repeat_interleave(group)[None, :, None]
            self.scale_inputs()

    def scale_inputs(self):
        if self.q is not self.problem.q:
            torch.mul(self.problem.q, self.q_factor, out=self.q)

    def scale_outputs(self):
        if self.q is not self.problem.q:
            self.out.mul_(self.out_factor)
