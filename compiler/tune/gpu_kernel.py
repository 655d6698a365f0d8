"""A kernel for a GPU: what its rule may choose otherwise, and the measurement of one choice."""

import hashlib
import random
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.frozen import frozen
from dovetail.runtime.devices import open_device
from dovetail.runtime.gpu.run import ReadyPart

from ..checking.kernels import compare
from ..define.group import define_group
from ..errors import GraphError, ScheduleError
from ..loops.text import to_text
from ..schedule.rules.gpu.choice import DEFAULT, SPACE, Choice, choices_for
from ..schedule.rules.gpu.group import schedule_group
from ..schedule.steps.schedule import Schedule
from ..targets.gpu.compile import compile_function
from ..targets.gpu.kernels import kernels_of
from ..targets.gpu.target import Gpu
from ..targets.table import find_target
from .kernel import Kernel
from .kernel_job import Held
from .problem import Candidate, Features, Measured

__all__ = ["GpuKernelJob", "GpuKernelProblem", "choice_of", "schedule_of"]

SECONDS, ROUNDS = 0.02, 5
"""Seconds of runs of a candidate, and as many of the default; they take turns."""
HOPELESS = 4.0
"""Times the default's cost after which a candidate is not run again."""
MOST_RUNS = 1000
QUANTILE = 0.25
FLOAT_ERROR = 1e-4
"""Largest difference from the default's results, over the largest: sums have another order; ..."""
NEIGHBOURS = {"float16": 2.0**-10, "bfloat16": 2.0**-7}
"""... floats of 16 bits may besides be rounded to a neighbour."""


def schedule_of(kernel: Kernel, target: Gpu, choice: Choice) -> Schedule:
    """The kernel's loops in blocks and threads.

    Raises ScheduleError for a choice that does not suit, GraphError for what a GPU cannot run.
    """
    definition = define_group(kernel.graph, kernel.graph.nodes)
    schedule = schedule_group(definition, target.backend.intrinsics, choice)
    return replace(schedule, function=replace(schedule.function, name="kernel"))


def choice_of(candidate: Candidate) -> Choice:
    """The candidate as the rules take it."""
    values: dict[str, Any] = candidate.record
    return Choice(**values)


@dataclass(slots=True)
class GpuKernelProblem:
    """A kernel for a target and a device; see Problem.  A candidate is a choice of the rules."""

    kernel: Kernel
    target: Gpu
    device: str
    _schedules: dict[Candidate, Schedule | None] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The choices."""
        kind = define_group(self.kernel.graph, self.kernel.graph.nodes).kind
        return choices_for(kind, self.target.backend.intrinsics)

    @property
    def key(self) -> str:
        return self.kernel.key

    @property
    def title(self) -> str:
        return self.kernel.title

    def default(self) -> Candidate:
        return _candidate(DEFAULT)

    def sample(self, rng: random.Random) -> Candidate:
        return _candidate(Choice(**{name: rng.choice(SPACE[name]) for name in self.names}))

    def mutate(self, candidate: Candidate, rng: random.Random) -> Candidate:
        """With another value of one field."""
        choice = asdict(choice_of(candidate))
        name = rng.choice(self.names)
        others = [each for each in SPACE[name] if each != choice[name]]
        return _candidate(Choice(**{**choice, name: rng.choice(others)}))

    def cross(self, one: Candidate, other: Candidate, rng: random.Random) -> Candidate:
        first, second = asdict(choice_of(one)), asdict(choice_of(other))
        return _candidate(Choice(**{name: rng.choice((first, second))[name] for name in first}))

    def features(self, candidate: Candidate) -> Features | None:
        """Logarithms of the choice, and of blocks, threads and buffers of the kernels."""
        schedule = self.schedule(candidate)
        if schedule is None:
            return None
        kernels = kernels_of(schedule.function)
        largest = max(kernels, key=lambda each: each.geometry.blocks * each.geometry.threads)
        shape = largest.geometry
        numbers = [*asdict(choice_of(candidate)).values(), len(kernels), shape.blocks]
        return np.log2(1 + np.array([*numbers, shape.threads], np.float32))

    def program(self, candidate: Candidate) -> str:
        schedule = self.schedule(candidate)
        assert schedule is not None, "it has features"
        return hashlib.sha256(to_text(schedule.function).encode()).hexdigest()

    def job(self, candidate: Candidate) -> "GpuKernelJob":
        return GpuKernelJob(self.kernel, self.target.name, self.device, candidate.text)

    def schedule(self, candidate: Candidate) -> Schedule | None:
        """None when it is not legal."""
        if candidate not in self._schedules:
            try:
                found = schedule_of(self.kernel, self.target, choice_of(candidate))
                kernels_of(found.function)
            except (ScheduleError, GraphError):
                found = None
            self._schedules[candidate] = found
        return self._schedules[candidate]


def _candidate(choice: Choice) -> Candidate:
    return Candidate.of(asdict(choice))


@frozen
class GpuKernelJob:
    """See Job; target, device: their names; candidate: its text."""

    kernel: Kernel
    target: str
    device: str
    candidate: str

    def run(self) -> Measured:
        """Seconds of one run; the results are compared with the default's first."""
        bench = _bench(self.kernel.key, self.target, self.device, Held(self.kernel))
        return bench.measure(choice_of(Candidate(self.candidate)))


@lru_cache(maxsize=2)
def _bench(key: str, target: str, device: str, held: Held) -> "_Bench":
    return _Bench(held.kernel, target, device)


class _Bench:
    """A kernel's inputs, and its default on the device with what that gives."""

    def __init__(self, kernel: Kernel, target: str, device: str) -> None:
        found = find_target(target)
        assert isinstance(found, Gpu)
        self.kernel, self.target, self.device = kernel, found, open_device(device)
        rng = np.random.default_rng(0)
        self.default = self.ready(DEFAULT)
        inputs = schedule_of(kernel, found, DEFAULT).function.inputs
        self.inputs = {each.name: _random(each.shape, each.dtype.numpy, rng) for each in inputs}
        self.expected = self.default.run(self.inputs).outputs

    def ready(self, choice: Choice) -> ReadyPart:
        """The kernel on the device."""
        function = schedule_of(self.kernel, self.target, choice).function
        part = compile_function(function, self.target.name, self.target.backend)
        ready = self.device.prepare(part)
        assert isinstance(ready, ReadyPart)
        return ready

    def measure(self, choice: Choice) -> Measured:
        """Both in turn."""
        own = self.ready(choice)
        wrong = self._wrong(own.run(self.inputs).outputs)
        if wrong:
            return Measured(None, error=wrong)
        first, other = own.time(1), self.default.time(1)
        if first > HOPELESS * other:
            return Measured(first, other)
        runs = min(max(int(SECONDS / ROUNDS / max(other, 1e-7)), 1), MOST_RUNS)
        times = [(own.time(runs), self.default.time(runs)) for _ in range(ROUNDS)]
        cost, baseline = np.quantile(np.array(times), QUANTILE, axis=0)
        return Measured(float(cost), float(baseline))

    def _wrong(self, found: Mapping[str, NDArray[Any]]) -> str:
        """How results differ from the default's; empty when they do not."""
        for name, wanted in self.expected.items():
            difference = compare(name, (), found[name], wanted)
            allowed = 0.0
            if wanted.dtype.kind not in "iub":
                allowed = FLOAT_ERROR + NEIGHBOURS.get(wanted.dtype.name, 0.0)
            if not difference.relative <= allowed:
                return (
                    f"results differ from the default's by {difference.relative:.1e} of the "
                    f"largest; allowed are {allowed:.1e}"
                )
        return ""


def _random(shape: tuple[int, ...], dtype: Any, rng: np.random.Generator) -> NDArray[Any]:
    """Normal numbers, or small integers."""
    if np.dtype(dtype).kind not in "iub":
        return rng.standard_normal(shape).astype(dtype)
    return rng.integers(0, 2 if np.dtype(dtype).kind == "b" else 50, shape).astype(dtype)
