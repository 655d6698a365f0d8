"""Constants that are in DRAM in fewer bytes than in their scratchpad, and what LOAD makes of them.

WGT: weights as nibbles (``nibbles``).  PAR: the scales alone, where all biases are 0; or one bias
and one scale, where all lanes have the same (``same``).  TAB: some bytes, where what the lanes have
repeats after so many, as it does in a table that is one for all; a beat has four such words.
"""

import numpy as np
from numpy.typing import NDArray

from .config import HardwareConfig
from .memories import Memory
from .nibbles import from_nibbles

__all__ = ["from_short", "has_short_form", "short_form"]

Words = NDArray[np.uint8]

PARAMETER_BYTES = 4
"""Bytes of a bias or a scale."""


def from_short(
    words: Words, memory: Memory, config: HardwareConfig, *, same: bool = False
) -> Words:
    """Words that LOAD writes for ``words`` uint8[n, short_bytes]: uint8[n, word_bytes]."""
    if memory is Memory.WGT:
        return from_nibbles(words, config).reshape(len(words), -1).view(np.uint8)
    if memory is Memory.PAR and same:
        both = (words[:, :PARAMETER_BYTES], words[:, PARAMETER_BYTES : 2 * PARAMETER_BYTES])
        return np.concatenate([np.tile(each, (1, config.block)) for each in both], axis=1)
    if memory is Memory.PAR:
        return np.concatenate([np.zeros_like(words), words], axis=1)
    return np.tile(words, (1, config.block // config.short_bytes(memory)))


def has_short_form(
    words: Words, memory: Memory, config: HardwareConfig, *, same: bool = False
) -> NDArray[np.bool_]:
    """True for ``words`` uint8[n, word_bytes], of PAR or TAB, with a short form: bool[n]."""
    short = _cut(words, memory, config, same)
    made = from_short(short, memory, config, same=same)
    fits: NDArray[np.bool_] = (made == words).all(axis=1)
    return fits


def short_form(
    words: Words, memory: Memory, config: HardwareConfig, *, same: bool = False
) -> Words:
    """``words`` uint8[n, word_bytes], of PAR or TAB, which have a short form, as LOAD reads it."""
    assert has_short_form(words, memory, config, same=same).all()
    return np.ascontiguousarray(_cut(words, memory, config, same))


def _cut(words: Words, memory: Memory, config: HardwareConfig, same: bool) -> Words:
    """The bytes of words that their short form has."""
    size = config.short_bytes(memory, same=same)
    if not same:
        return words[:, -size:]
    short = np.zeros((len(words), size), np.uint8)
    biases, scales = words[:, : words.shape[1] // 2], words[:, words.shape[1] // 2 :]
    short[:, :PARAMETER_BYTES] = biases[:, :PARAMETER_BYTES]
    short[:, PARAMETER_BYTES : 2 * PARAMETER_BYTES] = scales[:, :PARAMETER_BYTES]
    return short
