"""Small programs in a small DRAM, for the simulator and its reference."""

from collections.abc import Sequence

import numpy as np

from dovetail.isa.config import DramTiming, HardwareConfig
from dovetail.isa.configs import find_config
from dovetail.isa.encoding import encode
from dovetail.isa.instructions import Gemm, Instruction, Vector
from dovetail.isa.memories import Memory
from dovetail.isa.state import MachineState
from dovetail.vta_sim.machine import SimResult, simulate

__all__ = ["PROGRAM", "TIMING", "TINY", "gemm", "prepare", "run", "vector"]

TINY = find_config("tiny")
TIMING = DramTiming(
    latency_cycles=12,
    beat_interval_cycles=1,
    queue_bursts=4,
    turnaround_cycles=4,
    response_cycles=4,
)
PROGRAM = 0x400
"""Where programs start; data lies before."""


def gemm(iterations: int, **fields: object) -> Gemm:
    """A GEMM of so many iterations over the first words."""
    settings: dict[str, object] = {
        "act_address": 0,
        "wgt_address": 0,
        "acc_address": 0,
        "extent": (iterations, 1, 1, 1, 1, 1),
        "act_stride": (0,) * 6,
        "wgt_stride": (0,) * 6,
        "acc_stride": (0,) * 6,
        "reduction": 1,
    }
    return Gemm(**(settings | fields))  # type: ignore[arg-type]


def vector(results: int, **fields: object) -> Vector:
    """A VECTOR that copies so many words of ACC to ACT."""
    settings: dict[str, object] = {
        "source": Memory.ACC,
        "destination": Memory.ACT,
        "source_address": 0,
        "destination_address": 0,
        "extent": (1, results, 1, 1, 1),
        "source_stride": (0, 1, 0, 0, 0),
        "destination_stride": (1, 0, 0, 0),
    }
    return Vector(**(settings | fields))  # type: ignore[arg-type]


def prepare(program: Sequence[Instruction | bytes], config: HardwareConfig = TINY) -> MachineState:
    """Random data, and the program (as instructions or words) at ``PROGRAM``."""
    words = [item if isinstance(item, bytes) else encode(item) for item in program]
    code = np.frombuffer(b"".join(words), np.uint8)
    rng = np.random.default_rng(0)
    state = MachineState.zeros(config, rng.integers(0, 256, PROGRAM + len(code), dtype=np.uint8))
    state.dram[PROGRAM:] = code
    for memory in (state.act, state.wgt, state.tap, state.tab):
        memory[...] = rng.integers(-128, 128, memory.shape)
    state.acc[...] = rng.integers(-1000, 1000, state.acc.shape)
    return state


def run(
    *program: Instruction | bytes,
    config: HardwareConfig = TINY,
    timing: DramTiming = TIMING,
    watchdog: int = 0,
    window: tuple[int, int] | None = None,
) -> SimResult:
    """Simulate ``program``; the window is all of DRAM unless another is given."""
    state = prepare(program, config)
    return simulate(
        state, PROGRAM, len(program), window or (0, len(state.dram) - 1), timing, watchdog
    )
