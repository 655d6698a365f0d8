"""Constants that lie in DRAM in fewer bytes than in their scratchpad, and what LOAD makes of them.

WGT: weights as nibbles (``nibbles``).  PAR: the scales alone, where all biases are 0.  TAB: a beat,
where what the lanes have repeats beat by beat, as it does in a table that is one for all.
"""

import numpy as np
from numpy.typing import NDArray

from .config import HardwareConfig
from .memories import Memory
from .nibbles import from_nibbles

__all__ = ["from_short", "has_short_form", "short_form"]

Words = NDArray[np.uint8]


def from_short(words: Words, memory: Memory, config: HardwareConfig) -> Words:
    """What LOAD writes for ``words`` uint8[n, short_bytes]: uint8[n, word_bytes]."""
    if memory is Memory.WGT:
        return from_nibbles(words, config).reshape(len(words), -1).view(np.uint8)
    if memory is Memory.PAR:
        return np.concatenate([np.zeros_like(words), words], axis=1)
    return np.tile(words, (1, config.block // config.bus_bytes))


def has_short_form(words: Words, memory: Memory, config: HardwareConfig) -> NDArray[np.bool_]:
    """Which of ``words`` uint8[n, word_bytes], of PAR or TAB, have a short form: bool[n]."""
    short = words[:, -config.short_bytes(memory) :]
    fits: NDArray[np.bool_] = (from_short(short, memory, config) == words).all(axis=1)
    return fits


def short_form(words: Words, memory: Memory, config: HardwareConfig) -> Words:
    """``words`` uint8[n, word_bytes], of PAR or TAB, which have a short form, as LOAD reads it."""
    assert has_short_form(words, memory, config).all()
    return np.ascontiguousarray(words[:, -config.short_bytes(memory) :])
