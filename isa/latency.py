"""How many cycles the compute units take, in each configuration.

Gateware, simulator and documentation have these numbers from here.
"""

from .config import HardwareConfig
from .memories import Unit

__all__ = ["compute_latency", "issue_cycles"]


def issue_cycles(config: HardwareConfig) -> dict[Unit, int]:
    """Of GEMM and VECTOR: cycles in which each iteration is issued."""
    return {Unit.GEMM: config.tile_cycles, Unit.VECTOR: config.vector_cycles}


def compute_latency(config: HardwareConfig) -> dict[Unit, int]:
    """Of GEMM and VECTOR: cycles from an instruction's last issue to its last write."""
    gemm = 9 if config.deep_pipelines else 5
    vector = 32 if config.deep_pipelines else 14
    return {Unit.GEMM: gemm + config.lane_groups - 1, Unit.VECTOR: vector}
