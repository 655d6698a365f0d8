"""Time that kernels keep the units and DRAM busy, before there are instructions.

Source: the rules of ``docs/timing.md``, summed up.
"""

from dataclasses import dataclass

from dovetail.isa.config import HardwareConfig
from dovetail.isa.latency import issue_cycles
from dovetail.isa.memories import Unit

from .layers.tap_row import WINDOW
from .nest import Kernel, Nest, Product, Total

__all__ = [
    "SETUP_CYCLES",
    "RowCosts",
    "Traffic",
    "issue_counts",
    "row_cycles",
    "slides",
    "unit_cycles",
    "unit_of",
]


def issue_counts(kernel: Kernel, config: HardwareConfig) -> dict[Unit, int]:
    """Cycles in which GEMM and VECTOR issue the iterations of all loops but the lanes, at least.

    In windows (``sliding``) all taps of a row, or of a group of it, count as one iteration.
    """
    return _cycles(kernel, config, sums=PAIR)


def unit_cycles(kernel: Kernel, config: HardwareConfig) -> dict[Unit, int]:
    """As ``issue_counts``, for plans: what a sum of two tensors reads counts once.

    Estimate: most such sums are residual ones, which run while GEMM works on the next tile.
    """
    return _cycles(kernel, config, sums=1)


def _cycles(kernel: Kernel, config: HardwareConfig, sums: int) -> dict[Unit, int]:
    each = issue_cycles(config)
    cycles = {Unit.GEMM: 0, Unit.VECTOR: 0}
    for nest in kernel.nests:
        count, unit = nest.vectors, unit_of(nest)
        if isinstance(nest.value, Total):
            count *= sums
        if isinstance(nest.value, Product) and nest.value.is_pair:
            count *= PAIR
        cycles[unit] += each[unit] * min(count, _windowed(nest, count))
    return cycles


def slides(kernel: Kernel) -> bool:
    """True if VECTOR applies a row of taps in a cycle.  It then needs the fewest cycles where a
    tile has whole rows, since the first columns of each row give no result yet.
    """
    return any(_window(nest) for nest in kernel.nests)


def _windowed(nest: Nest, count: int) -> int:
    """``count`` iterations, with the innermost folded loop as windows where it can be."""
    width = _window(nest)
    if not width:
        return count
    x = nest.extents["x"]
    steps = [ref.indices[2].coefficient("x") for ref in nest.refs if len(ref.indices) == FOUR]
    stride = max(steps, default=1)
    columns = stride * (x + -(-width // stride) - 1)
    return count // (width * x) * columns


def _window(nest: Nest) -> int:
    """Taps of the innermost folded loop, where VECTOR may apply them together; else 0."""
    folded = [loop for loop in nest.loops if loop.name in nest.reduction]
    taps = isinstance(nest.value, Product) and unit_of(nest) is Unit.VECTOR
    if not taps or not folded or "x" not in nest.extents:
        return 0
    return folded[-1].extent if 1 < folded[-1].extent <= WINDOW else 0


def unit_of(nest: Nest) -> Unit:
    """The unit that runs ``nest`` of a layer."""
    return Unit.GEMM if nest.multiplies_tiles else Unit.VECTOR


SETUP_CYCLES = 4
"""Estimate: acceptance of a LOAD or STORE to its first address."""

PAIR = 2
"""Words that a sum or product of two tensors reads for each of its result, one a cycle."""

FOUR = 4
"""Indices of an activation: block, row, column, lane."""


class RowCosts:
    """``row_cycles`` of rows that begin anywhere; remembers them."""

    def __init__(self, config: HardwareConfig) -> None:
        self._config, self._known = config, dict[int, tuple[float, float]]()

    def of(self, row_bytes: int) -> tuple[float, float]:
        """Cycles and bursts of a row."""
        found = self._known.get(row_bytes)
        if found is None:
            found = self._known[row_bytes] = row_cycles(row_bytes, self._config)
        return found


@dataclass(slots=True)
class Traffic:
    """Transfer between DRAM and the scratchpads, as bursts.

    rows: shared by those of one layer.
    """

    config: HardwareConfig
    rows: RowCosts
    read_cycles: float = 0
    read_bursts: float = 0
    loads: float = 0
    written_cycles: float = 0
    written_bursts: float = 0
    stores: float = 0

    def read(self, rows: float, row_bytes: int, loads: float = 0) -> None:
        """``loads`` LOADs of together ``rows`` rows."""
        cycles, bursts = self.rows.of(row_bytes)
        self.read_cycles += rows * cycles
        self.read_bursts += rows * bursts
        self.loads += loads

    def write(self, rows: float, row_bytes: int, stores: float = 0) -> None:
        """``stores`` STOREs of together ``rows`` rows."""
        cycles, bursts = self.rows.of(row_bytes)
        self.written_cycles += rows * cycles
        self.written_bursts += rows * bursts
        self.stores += stores

    @property
    def dram_cycles(self) -> int:
        """In which the memory works, which turns around between each read and a write burst."""
        turns = 2 * min(self.read_bursts, self.written_bursts) * self.config.dram.turnaround_cycles
        return int(self.read_cycles + self.written_cycles + turns)

    @property
    def cycles(self) -> int:
        """Cycles of the busiest of LOAD, STORE and the memory.

        A unit waits for the memory's first beat, and STORE for its answer.
        """
        dram = self.config.dram
        first = dram.latency_cycles + SETUP_CYCLES
        loading = self.read_cycles + self.loads * first
        storing = self.written_cycles + self.stores * (first + dram.response_cycles)
        return int(max(self.dram_cycles, loading, storing))


def row_cycles(size: int, config: HardwareConfig, start: int | None = None) -> tuple[float, float]:
    """Cycles and bursts of a row of ``size`` bytes, cut at multiples of the longest burst.

    start: bytes from such a multiple to the row's first; None when rows begin anywhere.
    """
    dram, longest = config.dram, config.burst_bytes
    bursts = size / longest if size % longest == 0 else size / longest + 1 - 1 / longest
    if start is not None:
        bursts = -(-(start + size) // longest)
    beats = size / bursts / config.bus_bytes
    latency = (dram.latency_cycles + beats) / dram.queue_bursts
    return bursts * max(beats * dram.beat_interval_cycles, latency, 2), bursts
