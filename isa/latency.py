"""Latencies of the compute units in each configuration.

Gateware, simulator and documentation have these numbers from here.
"""

from .config import HardwareConfig
from .frozen import frozen
from .memories import Unit

__all__ = ["Stages", "compute_latency", "issue_cycles", "pipeline_stages"]


@frozen
class Stages:
    """Cycles that a deep pipeline adds (docs/timing.md); all 0 without one.

    dispatch: to the time from an instruction's arrival, or from the dispatch before, to its
    dispatch.  accept: from when an instruction may start to when it does.  setup: from the start of
    a LOAD or STORE to its first burst or cell.  cut: from a burst to the next of the same
    instruction, and to the first.  check: from a burst offered to the port to when it is taken.
    receive: of the beats of FETCH and LOAD.  read: of
    STORE's words.  write: of LOAD's words and cells.
    """

    dispatch: int = 0
    accept: int = 0
    setup: int = 0
    cut: int = 0
    check: int = 0
    receive: int = 0
    read: int = 0
    write: int = 0


def pipeline_stages(config: HardwareConfig) -> Stages:
    """The pipeline stages of a configuration."""
    return DEEP if config.deep_pipelines else Stages()


DEEP = Stages(dispatch=3, accept=2, setup=3, cut=2, check=3, receive=1, read=1, write=2)


def issue_cycles(config: HardwareConfig) -> dict[Unit, int]:
    """Cycles in which GEMM and VECTOR issue one iteration."""
    return {Unit.GEMM: config.tile_cycles, Unit.VECTOR: config.vector_cycles}


def compute_latency(config: HardwareConfig) -> dict[Unit, int]:
    """Cycles from the last issue of GEMM and VECTOR instructions to their last write."""
    gemm = 11 if config.deep_pipelines else 5
    if config.core_clock_ratio > 1:
        gemm = 10
    vector = 32 if config.deep_pipelines else 14
    return {Unit.GEMM: gemm + config.lane_groups - 1, Unit.VECTOR: vector}
