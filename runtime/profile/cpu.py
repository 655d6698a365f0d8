"""One model on this CPU, explained: how long each kernel takes, and what it finds in the cache."""

import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.frozen import frozen

from ..errors import DeviceError
from ..native.content import array_type, load_program
from ..native.part import CpuPart

__all__ = ["LINE", "CpuProfile", "KernelProfile", "cache_misses", "cache_sizes", "measure_calls"]

WARMUP = 3
SHORTEST = 0.05
"""Seconds over which the clock's steps are counted."""
LINE = 64
"""Bytes of a line of a cache."""
PAGE = 1024
"""Bytes that come and go together in the model of the cache."""
CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
USUAL_CACHES = {0: 32 << 10, 2: 1 << 20}
"""By the number that Linux has for it: bytes, where the system does not tell."""


@frozen
class KernelProfile:
    """A call of a program.

    kernel: its name.  nodes: the model's that it computes.  seconds: the median of all runs; low,
    high: a quarter of them took less, a quarter more.  touched: bytes of its operands.  misses:
    lines that each cache is estimated not to hold.
    """

    kernel: str
    nodes: tuple[str, ...]
    seconds: float
    low: float
    high: float
    touched: int
    misses: tuple[int, ...]


@frozen
class CpuProfile:
    """Runs of a model on this CPU.

    seconds: of all kernels, each by its median.  caches: bytes of a core's first and second.
    """

    model: str
    cpu: str
    threads: int
    runs: int
    seconds: float
    caches: tuple[int, ...]
    kernels: tuple[KernelProfile, ...]


def measure_calls(
    part: CpuPart, inputs: Mapping[str, NDArray[Any]], calls: int, runs: int
) -> NDArray[np.float64]:
    """Seconds of each of ``calls`` in each of ``runs``: float64[runs, calls].

    part: of a timed program.  The clock's steps are counted against the system's clock.
    Raises DeviceError when this CPU cannot run it, or its clock stands still.
    """
    program = load_program(part)
    given = [np.asarray(inputs[tensor.name], order="C") for tensor in part.inputs]
    results = [np.empty(tensor.shape, array_type(tensor.dtype)) for tensor in part.outputs]
    clocks = program.last_words(calls + 1)
    for _ in range(WARMUP):
        program.run(given, results)
    found: list[NDArray[np.int64]] = []
    first = time.perf_counter()
    now = first
    while len(found) < max(runs, 2) or now - first < SHORTEST:
        now = time.perf_counter()
        program.run(given, results)
        found.append(clocks.copy())
    steps = int(found[-1][0] - found[0][0])
    if steps <= 0:
        raise DeviceError(f"the clock of this CPU ({part.cpu}) stands still for programs")
    taken = np.diff(np.array(found[-runs:]), axis=1).astype(np.float64)
    return taken * ((now - first) / steps)


def cache_sizes() -> tuple[int, ...]:
    """Bytes of a core's first cache of data, and of its second one."""
    found = []
    for number, usual in USUAL_CACHES.items():
        try:
            size = (CACHES / f"index{number}" / "size").read_text().strip()
            found.append(int(size.removesuffix("K")) << 10)
        except (ValueError, OSError):
            found.append(usual)
    return tuple(found)


def cache_misses(calls: Sequence[Iterable[tuple[str, int, int]]], size: int) -> list[int]:
    """Lines that each call of a run finds missing in a cache of ``size`` bytes.

    calls: the bytes that each touches: whose memory, first and after the last.  An estimate: every
    call touches all of its operands once and in order, what was touched longest ago makes room,
    and the run before left the cache as this one does.  Working sets within a call are left out.
    """
    held: OrderedDict[tuple[str, int], None] = OrderedDict()
    places = size // PAGE
    missed: list[int] = []
    for _ in range(2):
        missed = []
        for touched in calls:
            lines = 0
            for whose, begin, end in touched:
                for page in range(begin // PAGE, -(-end // PAGE)):
                    key = whose, page
                    if key in held:
                        held.move_to_end(key)
                        continue
                    low, high = max(begin, page * PAGE), min(end, (page + 1) * PAGE)
                    lines += -(-high // LINE) - low // LINE
                    held[key] = None
                    if len(held) > places:
                        held.popitem(last=False)
            missed.append(lines)
    return missed
