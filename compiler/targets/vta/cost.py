"""Estimates of how long one instruction takes."""

from math import prod

from dovetail.isa.config import HardwareConfig
from dovetail.isa.footprint import row_span
from dovetail.isa.frozen import frozen
from dovetail.isa.instructions import Gemm, Instruction, Load, Store, Vector
from dovetail.isa.latency import compute_latency, issue_cycles
from dovetail.isa.memories import Unit

from .model import SETUP_CYCLES, row_cycles

__all__ = ["Cost", "cost_of"]


@frozen
class Cost:
    """Cycles from acceptance until the unit can accept again, and until the result is there.

    moved, bursts: cycles in which DRAM works for it alone, and its bursts.
    """

    occupied: int
    total: int
    moved: int = 0
    bursts: float = 0


def cost_of(instruction: Instruction, config: HardwareConfig) -> Cost:
    """Cost of an instruction that waits for nothing."""
    match instruction:
        case Gemm(extent=extent):
            return _compute(Unit.GEMM, prod(extent), config)
        case Vector(extent=extent):
            return _compute(Unit.VECTOR, prod(extent), config)
        case Load():
            cells = instruction.count_z * instruction.rows * instruction.columns
            if not instruction.words:
                return Cost(SETUP_CYCLES + cells, SETUP_CYCLES + cells)
            return _transfer(instruction, 0, config)
        case Store():
            return _transfer(instruction, config.dram.response_cycles, config)


def _compute(unit: Unit, iterations: int, config: HardwareConfig) -> Cost:
    cycles = iterations * issue_cycles(config)[unit]
    return Cost(cycles, cycles + compute_latency(config)[unit] + 1)


def _transfer(instruction: Load | Store, after: int, config: HardwareConfig) -> Cost:
    """``after``: cycles from the last beat to the end."""
    before, size = row_span(instruction, config)
    rows, longest = instruction.count_z * instruction.count_y, config.burst_bytes
    apart = [
        stride
        for count, stride in (
            (instruction.count_y, instruction.dram_stride_y),
            (instruction.count_z, instruction.dram_stride_z),
        )
        if count > 1
    ]
    start = None
    if not any(stride % longest for stride in apart):
        start = (instruction.dram_address - before) % longest
    cycles, bursts = row_cycles(size, config, start)
    moved = round(rows * cycles)
    total = SETUP_CYCLES + config.dram.latency_cycles + moved + after
    return Cost(total, total, moved, rows * bursts)
