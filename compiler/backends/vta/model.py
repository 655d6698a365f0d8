"""How long kernels keep the units and DRAM busy, before there are instructions.

Source: the rules of ``docs/timing.md``, summed up.
"""

from dataclasses import dataclass
from math import prod

from dovetail.isa.config import HardwareConfig
from dovetail.isa.memories import Unit

from ...tensor.ir import Kernel, LoopKind, Scope, Stage

__all__ = ["Traffic", "unit_cycles", "unit_of"]


def unit_cycles(kernel: Kernel) -> dict[Unit, int]:
    """Cycles in which GEMM and VECTOR issue: an iteration of all loops but the lanes takes one."""
    cycles = {Unit.GEMM: 0, Unit.VECTOR: 0}
    for stage in kernel.stages:
        count = prod(loop.extent for loop in stage.loops if loop.kind is not LoopKind.LANE)
        cycles[unit_of(stage)] += count
    return cycles


def unit_of(stage: Stage) -> Unit:
    """The unit that runs ``stage``."""
    matrix = any(ref.buffer.scope is Scope.WGT for ref in stage.refs)
    return Unit.GEMM if matrix else Unit.VECTOR


@dataclass(slots=True)
class Traffic:
    """What is moved between DRAM and the scratchpads, as bursts."""

    config: HardwareConfig
    read_cycles: float = 0
    read_bursts: float = 0
    written_cycles: float = 0
    written_bursts: float = 0

    def read(self, rows: float, row_bytes: int) -> None:
        """LOADs of ``rows`` rows."""
        cycles, bursts = self._row(row_bytes)
        self.read_cycles += rows * cycles
        self.read_bursts += rows * bursts

    def write(self, rows: float, row_bytes: int) -> None:
        """STOREs of ``rows`` rows."""
        cycles, bursts = self._row(row_bytes)
        self.written_cycles += rows * cycles
        self.written_bursts += rows * bursts

    @property
    def cycles(self) -> int:
        """Until the last beat, were nothing to wait for: the memory turns around between each read
        burst and a write burst.
        """
        turns = 2 * min(self.read_bursts, self.written_bursts)
        waits = turns * self.config.dram.turnaround_cycles
        return int(self.read_cycles + self.written_cycles + waits)

    def _row(self, size: int) -> tuple[float, float]:
        """Cycles and bursts of a row, which is cut at multiples of the longest burst."""
        config, dram = self.config, self.config.dram
        longest = config.burst_bytes
        bursts = size / longest if size % longest == 0 else size / longest + 1 - 1 / longest
        beats = size / bursts / config.bus_bytes
        latency = (dram.latency_cycles + beats) / dram.queue_bursts
        return bursts * max(beats * dram.beat_interval_cycles, latency, 2), bursts
