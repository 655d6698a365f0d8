"""Plain loops over Python integers, which instructions are compared with."""

import numpy as np
from hypothesis import strategies as st

from dovetail.isa.config import HardwareConfig
from dovetail.isa.configs import find_config
from dovetail.isa.memories import Memory
from dovetail.isa.state import MachineState

__all__ = ["TINY", "at", "nest", "random_state", "signed", "steps", "wrap"]

TINY = find_config("tiny")
steps = st.integers(-5, 5)
"""Strides of loop levels."""


def random_state(seed: int, config: HardwareConfig = TINY) -> MachineState:
    """Random words in every memory, scales and biases that make sense, and 4 KiB of DRAM."""
    rng = np.random.default_rng(seed)
    state = MachineState.zeros(config, rng.integers(0, 256, 1 << 12, dtype=np.uint8))
    for memory in Memory:
        shape = (config.depth(memory), config.word_bytes(memory))
        words = rng.integers(0, 256, shape, dtype=np.uint8)
        state.write_words(memory, np.arange(shape[0]), words)
    state.par.scale[:] = np.exp2(rng.uniform(-20, 0, state.par.scale.shape))
    state.par.bias[:] = rng.integers(-1000, 1000, state.par.bias.shape)
    return state


def wrap(value: int) -> int:
    """Its low 32 bits, signed."""
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


def signed(value: int, bits: int) -> int:
    """Its low bits, signed."""
    return (value + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


def nest(extent: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Every index, level 0 fastest."""
    indices: list[tuple[int, ...]] = [()]
    for count in reversed(extent):
        indices = [(i, *rest) for rest in indices for i in range(count)]
    return sorted(indices, key=lambda index: tuple(reversed(index)))


def at(base: int, index: tuple[int, ...], stride: tuple[int, ...], depth: int) -> int:
    """The address of an index of a nest."""
    return (base + sum(i * s for i, s in zip(index, stride, strict=True))) % depth
