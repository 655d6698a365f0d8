"""Random contents of DRAM and scratchpads, and random memory timings."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.config import INSTRUCTION_BYTES, DramTiming, HardwareConfig
from dovetail.isa.instructions import Rounding
from dovetail.isa.memories import Memory
from dovetail.isa.requantize import fixed_parameters
from dovetail.isa.state import MachineState

from .draw import DATA_BYTES, DRAM_BASE

__all__ = ["program_offset", "random_state", "random_timing"]

SPECIAL_SCALES = np.array(
    [0.0, 1e-45, 1.1754942e-38, 1.1754944e-38, 2.0**-31, 0.5, 1.0, 1.0 - 2.0**-24, 3.4028235e38],
    np.float32,
)
"""Zero, the smallest and largest subnormal, the smallest normal, ..., the largest."""
LARGEST = SPECIAL_SCALES[-1]


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


def _fixed_parameters(
    shape: tuple[int, int], rng: np.random.Generator, largest: int
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Biases of all sizes, multipliers from 2^30 to ``largest`` (some any), powers of two."""
    bias = rng.integers(-(1 << 26), 1 << 26, shape) >> rng.integers(0, 24, shape)
    multiplier = np.minimum(rng.integers(1 << 30, 1 << 31, shape), largest)
    any_other = rng.random(shape) < 0.1
    multiplier = np.where(any_other, rng.choice([0, 1, 1 << 30, largest], shape), multiplier)
    return fixed_parameters(bias, multiplier, rng.integers(-24, 8, shape))


def _parameters(
    config: HardwareConfig, words: int, rng: np.random.Generator, roundings: Sequence[Rounding]
) -> NDArray[np.uint8]:
    """Biases and scales of sensible and of extreme sizes; uint8[words, word bytes]."""
    shape = (words, config.block)
    if Rounding.FLOAT not in roundings:
        bias, scale = _fixed_parameters(shape, rng, (1 << 31) - 1)
        return np.concatenate([bias.view(np.uint8), scale.view(np.uint8)], axis=1)
    bias = rng.integers(-(1 << 31), 1 << 31, shape, dtype=np.int64)
    bias = np.where(rng.random(shape) < 0.7, bias >> 16, bias).astype(np.int32)
    sensible = rng.random(shape) < 0.8
    exponents = np.where(sensible, rng.uniform(-24, 0, shape), rng.uniform(-126, 127, shape))
    scale = np.exp2(exponents).astype(np.float32)
    powers = rng.random(shape) < 0.2
    scale[powers] = np.exp2(np.floor(exponents[powers])).astype(np.float32)
    special = rng.random(shape) < 0.05
    scale[special] = rng.choice(SPECIAL_SCALES, int(special.sum()))
    if config.row_parameters:
        scale = np.where(rng.random(shape) < 0.3, -scale, scale)
    if Rounding.FIXED in roundings:
        # Finite as a float32 too.
        fixed = rng.random(shape) < 0.5
        biases, scales = _fixed_parameters(shape, rng, int(LARGEST.view(np.int32)))
        bias, scale = np.where(fixed, biases, bias), np.where(fixed, scales, scale)
    return np.concatenate([bias.view(np.uint8), scale.view(np.uint8)], axis=1)


def random_state(
    config: HardwareConfig,
    rng: np.random.Generator,
    count: int,
    roundings: Sequence[Rounding] = (Rounding.FLOAT,),
) -> MachineState:
    """DRAM with room for ``count`` instructions, and scratchpads, all random.

    roundings: for which PAR holds parameters.
    """
    parameters = _parameters(config, 2 * config.par_depth, rng, roundings)
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
