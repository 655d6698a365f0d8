"""Random contents of DRAM and scratchpads, and random memory timings."""

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.config import INSTRUCTION_BYTES, DramTiming, HardwareConfig
from dovetail.isa.memories import Memory
from dovetail.isa.state import MachineState

from .draw import DATA_BYTES, DRAM_BASE

__all__ = ["program_offset", "random_state", "random_timing"]

SPECIAL_SCALES = np.array(
    [0.0, 1e-45, 1.1754942e-38, 1.1754944e-38, 2.0**-31, 0.5, 1.0, 1.0 - 2.0**-24, 3.4028235e38],
    np.float32,
)
"""Zero, the smallest and largest subnormal, the smallest normal, ..., the largest."""


def program_offset(config: HardwareConfig) -> int:
    """Bytes from the start of DRAM to instruction 0: data, then parameters, then the program."""
    used = DATA_BYTES + config.word_bytes(Memory.PAR) * config.par_depth
    return -(-used // INSTRUCTION_BYTES) * INSTRUCTION_BYTES


def random_timing(config: HardwareConfig, rng: np.random.Generator) -> DramTiming:
    """From the fastest memory there can be to a slow one; a configuration's SDRAM is what it is."""
    if config.dram.sdram is not None:
        return config.dram

    def choice(*values: int) -> int:
        return int(rng.choice(values))

    return DramTiming(
        latency_cycles=choice(1, 2, 3, 7, 24, 24, 90, 300, 1023),
        beat_interval_cycles=choice(1, 1, 1, 2, 5, 15),
        queue_bursts=choice(1, 2, 3, 4, 8, 16, 64),
        turnaround_cycles=choice(0, 1, 4, 13, 63),
        response_cycles=choice(1, 2, 4, 20, 63),
    )


def _parameters(config: HardwareConfig, words: int, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Biases and scales of sensible and of extreme sizes; uint8[words, word bytes]."""
    shape = (words, config.block)
    bias = rng.integers(-(1 << 31), 1 << 31, shape, dtype=np.int64)
    bias = np.where(rng.random(shape) < 0.7, bias >> 16, bias).astype(np.int32)
    sensible = rng.random(shape) < 0.8
    exponents = np.where(sensible, rng.uniform(-24, 0, shape), rng.uniform(-126, 127, shape))
    scale = np.exp2(exponents).astype(np.float32)
    powers = rng.random(shape) < 0.2
    scale[powers] = np.exp2(np.floor(exponents[powers])).astype(np.float32)
    special = rng.random(shape) < 0.05
    scale[special] = rng.choice(SPECIAL_SCALES, int(special.sum()))
    return np.concatenate([bias.view(np.uint8), scale.view(np.uint8)], axis=1)


def random_state(config: HardwareConfig, rng: np.random.Generator, count: int) -> MachineState:
    """DRAM with room for ``count`` instructions, and scratchpads, all random."""
    parameters = _parameters(config, 2 * config.par_depth, rng)
    size = program_offset(config) + INSTRUCTION_BYTES * (count + 1)
    dram = rng.integers(0, 256, size, dtype=np.uint8)
    in_dram = parameters[config.par_depth :].reshape(-1)
    dram[DATA_BYTES : DATA_BYTES + len(in_dram)] = in_dram
    state = MachineState.zeros(config, dram, DRAM_BASE)
    for memory in Memory:
        shape = (config.depth(memory), config.word_bytes(memory))
        content = rng.integers(0, 256, shape, dtype=np.uint8)
        if memory is Memory.PAR:
            content = parameters[: config.par_depth]
        state.write_words(memory, np.arange(shape[0]), content)
    return state
