"""The measurement of one candidate for a kernel, and of the default, in a worker's process."""

import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.frozen import frozen

from ..checking.kernels import compare
from ..errors import ScheduleError
from ..graph.operators.winograd import Winograd
from ..schedule.records import KernelRecord
from ..targets.cpu.llvm.compile import LlvmOptions, compile_functions
from ..targets.cpu.llvm.module import CompiledModule
from .kernel import Kernel, Setting
from .problem import Candidate, Measured

__all__ = ["Held", "KernelJob", "record_of"]

Array = NDArray[Any]

MOST_COLD_BYTES = 96 << 20
"""Bytes of copies of constants that take turns, so that they come from where a network's do."""
MOST_COPIES = 256
SECONDS = 0.03
"""Seconds of runs of a candidate, and as many of the default."""
LEAST_RUNS, MOST_RUNS = 8, 400
HOPELESS = 3.0
"""Times the default's cost after which a candidate is not run again."""
QUANTILE = 0.25
"""The quantile of run times that counts: other work on the machine only adds to them."""
LINE = 64
"""Bytes of a line of the cache, at which all tensors of a network begin."""
FLOAT_ERROR, WINOGRAD_ERROR = 1e-5, 5e-5
"""Largest difference from the default's results, over the largest result."""


@frozen
class KernelJob:
    """See Job; candidate: its text.  cache: folder of machine code; None for none."""

    kernel: Kernel
    setting: Setting
    candidate: str
    cache: Path | None = None

    def run(self) -> Measured:
        """Seconds of one run; the results are compared with the default's first."""
        bench = _bench(self.kernel.key, self.setting, self.cache, Held(self.kernel))
        return bench.measure(self._record)

    def compile(self) -> None:
        """Fill the cache with all code that a run needs."""
        options = _options(self.setting, self.cache)
        for record in (KernelRecord(), self._record):
            compile_functions([self.kernel.function(self.setting, record)], options)

    @property
    def _record(self) -> KernelRecord:
        return record_of(Candidate(self.candidate))


def record_of(candidate: Candidate) -> KernelRecord:
    """The candidate as compilation takes it."""
    steps = candidate.record.get("steps")
    if not isinstance(steps, list):
        raise ScheduleError(f"record {candidate.text}; required a list of steps")
    return KernelRecord(tuple(steps))


def _options(setting: Setting, cache: Path | None) -> LlvmOptions:
    return LlvmOptions(setting.level, setting.threads, jobs=1, cache=cache)


@frozen
class Held:
    """A kernel that is not compared: its key says which it is."""

    kernel: Kernel

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Held)

    def __hash__(self) -> int:
        return 0


@lru_cache(maxsize=2)
def _bench(key: str, setting: Setting, cache: Path | None, held: Held) -> "_Bench":
    return _Bench(held.kernel, setting, cache)


class _Bench:
    """A kernel's inputs, and its default as machine code with what that gives."""

    def __init__(self, kernel: Kernel, setting: Setting, cache: Path | None) -> None:
        self.kernel, self.setting = kernel, setting
        self.options = _options(setting, cache)
        rng = np.random.default_rng(0)
        function = kernel.function(setting, KernelRecord())
        order = kernel.ruled(setting).definition.inputs
        self.inputs = [_aligned(_random(b.shape, b.dtype.numpy, rng)) for b in function.inputs]
        cold = [name in kernel.cold for name in order]
        size = sum(array.nbytes for array, own in zip(self.inputs, cold, strict=True) if own)
        copies = (
            min(MOST_COPIES, 1 + min(setting.constant_bytes, MOST_COLD_BYTES) // size)
            if size
            else 1
        )
        self.sets = [
            [
                _aligned(array) if own else array
                for array, own in zip(self.inputs, cold, strict=True)
            ]
            for _ in range(copies)
        ]
        self.default = _Code(compile_functions([function], self.options), self.sets)
        self.expected = self.default.results()

    def measure(self, record: KernelRecord) -> Measured:
        """Both in turn."""
        function = self.kernel.function(self.setting, record)
        code = _Code(compile_functions([function], self.options), self.sets)
        wrong = self._wrong(code.results())
        if wrong:
            return Measured(None, error=wrong)
        first, other = code.time(0), self.default.time(0)
        first, other = min(first, code.time(1)), min(other, self.default.time(1))
        if first > HOPELESS * other:
            return Measured(first, other)
        runs = min(max(int(SECONDS / max(first, 1e-7)), LEAST_RUNS), MOST_RUNS)
        own, default = [], []
        for number in range(runs):
            own.append(code.time(2 * number))
            default.append(self.default.time(2 * number + 1))
        return Measured(float(np.quantile(own, QUANTILE)), float(np.quantile(default, QUANTILE)))

    def _wrong(self, found: Sequence[Array]) -> str:
        """How results differ from the default's; empty when they do not."""
        winograd = any(isinstance(node.operator, Winograd) for node in self.kernel.graph.nodes)
        for array, wanted in zip(found, self.expected, strict=True):
            difference = compare("result", (), array, wanted)
            exact = array.dtype.kind != "f"
            allowed = 0.0 if exact else WINOGRAD_ERROR if winograd else FLOAT_ERROR
            if not difference.relative <= allowed:
                return (
                    f"results differ from the default's by {difference.relative:.1e} of the "
                    f"largest; allowed are {allowed:.1e}"
                )
        return ""


class _Code:
    """Machine code of a kernel, called on one set of inputs after the other."""

    def __init__(self, module: CompiledModule, sets: Sequence[Sequence[Array]]) -> None:
        (name,) = module.signatures
        outputs = module.signatures[name].function.outputs
        self.outputs = [_aligned(np.full(b.shape, 77, b.dtype.numpy)) for b in outputs]
        self.calls: list[Callable[[], None]] = module.calls(name, sets, self.outputs)

    def results(self) -> list[Array]:
        """Results on the first set of operands."""
        self.calls[0]()
        return [array.copy() for array in self.outputs]

    def time(self, number: int) -> float:
        """Seconds of one run on a set."""
        call = self.calls[number % len(self.calls)]
        start = time.perf_counter()
        call()
        return time.perf_counter() - start


def _aligned(array: Array) -> Array:
    """A copy aligned like a network's tensors: a vector is never in two lines of the cache."""
    memory = np.empty(array.nbytes + LINE, np.uint8)
    start = -memory.ctypes.data % LINE
    found = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    found[...] = array
    return found


def _random(shape: tuple[int, ...], dtype: Any, rng: np.random.Generator) -> Array:
    """Normal numbers, or small integers."""
    kind = np.dtype(dtype).kind
    if kind == "f" or not np.issubdtype(dtype, np.integer):
        return rng.standard_normal(shape).astype(dtype)
    least = 0 if kind == "u" else -100
    return rng.integers(least, 100, shape).astype(dtype)
