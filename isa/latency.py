"""How many cycles the compute units' pipelines take, in each configuration.

Gateware, simulator and documentation have these numbers from here.
"""

from .config import HardwareConfig
from .memories import Unit

__all__ = ["compute_latency"]


def compute_latency(config: HardwareConfig) -> dict[Unit, int]:
    """Of GEMM and VECTOR: cycles from an instruction's last issue to its last write."""
    return {Unit.GEMM: 5, Unit.VECTOR: 14}
