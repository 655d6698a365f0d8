"""Weights of 4 bits: how a word of WGT is in DRAM as nibbles, and what LOAD makes of it.

A weight is a nibble times a factor that it shares with the other weights of its output lane in the
word: ``weight = nibble * (1 + multiplier)``, nibble -8 to 7, multiplier 0 to 15.  With one scale a
channel, these are scales of groups of ``block`` weights along the sum, in two levels.
Source of the form: Dai et al., VS-Quant (MLSys 2021).
"""

import numpy as np
from numpy.typing import NDArray

from .config import HardwareConfig

__all__ = ["as_nibbles", "fits_nibbles", "from_nibbles"]

LARGEST = 16
"""Largest factor."""


def from_nibbles(words: NDArray[np.uint8], config: HardwareConfig) -> NDArray[np.int8]:
    """The weights that LOAD writes for ``words`` uint8[n, nibble_bytes]: int8[n, block, block]."""
    block, head = config.block, config.nibble_head_bytes
    factors = _low_first(words[:, :head])[:, :block].astype(np.int16) + 1
    bits = _low_first(words[:, head:]).reshape(-1, block, block).astype(np.int16)
    return (((bits ^ 8) - 8) * factors[:, :, None]).astype(np.int8)


def as_nibbles(words: NDArray[np.int8], config: HardwareConfig) -> NDArray[np.uint8]:
    """``words`` int8[n, block, block], which fit, as LOAD reads them: uint8[n, nibble_bytes]."""
    factors = _factors(words)
    assert factors.all(), "weights have no form of nibbles"
    bits = words.astype(np.int16) // factors[:, :, None] & 15
    multipliers = np.zeros((len(words), 2 * config.nibble_head_bytes), np.int16)
    multipliers[:, : config.block] = factors - 1
    rows = np.concatenate([multipliers, bits.reshape(len(words), -1)], axis=1)
    return (rows[:, ::2] | rows[:, 1::2] << 4).astype(np.uint8)


def fits_nibbles(words: NDArray[np.int8]) -> bool:
    """True if all of ``words`` int8[n, lanes, lanes] have a form of nibbles."""
    # One word tells it of most weights that do not.
    return all(bool(_factors(part).all()) for part in (words[:1], words))


def _low_first(octets: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The nibbles of each row, the lower one of each byte first."""
    return np.stack([octets & 15, octets >> 4], axis=2).reshape(len(octets), -1)


def _factors(words: NDArray[np.int8]) -> NDArray[np.int16]:
    """The least factor of each output lane that its weights have; 0 for none: int16[n, lanes]."""
    wide = words.astype(np.int16)
    low, high = wide.min(axis=2), wide.max(axis=2)
    least = np.maximum(-(low // 8), -(-high // 7))
    common = np.gcd.reduce(wide, axis=2)
    found = np.zeros(low.shape, np.int16)
    for factor in range(LARGEST, 0, -1):
        found[(least <= factor) & (common % factor == 0)] = factor
    return found
