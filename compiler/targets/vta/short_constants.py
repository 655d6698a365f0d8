"""Constants in the shortest form that LOAD reads them in."""

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.config import SHORT_ROWS, HardwareConfig
from dovetail.isa.frozen import frozen
from dovetail.isa.memories import Memory
from dovetail.isa.nibbles import as_nibbles
from dovetail.isa.short_form import has_short_form, short_form

from .layers.definition import LoweredLayer

__all__ = ["ShortWords", "short_rows", "short_words", "shortest_bytes"]


@frozen
class ShortWords:
    """array: the words as they are in DRAM.  size: bytes of one.  same: whether each has one bias
    and one scale.
    """

    array: NDArray[np.generic]
    size: int
    same: bool = False


def short_words(
    memory: Memory, array: NDArray[np.generic], layer: LoweredLayer, config: HardwareConfig
) -> ShortWords | None:
    """Words of a constant in the shortest form that all have; None where it is the long one."""
    if memory not in config.short_memories:
        return None
    if memory is Memory.WGT:
        if not layer.nibbles:
            return None
        weights = array.reshape(-1, *array.shape[-2:]).astype(np.int8)
        return ShortWords(as_nibbles(weights, config), config.nibble_bytes)
    words = _words(array, memory, config)
    for same in (True, False) if memory is Memory.PAR else (False,):
        if has_short_form(words, memory, config, same=same).all():
            short = short_form(words, memory, config, same=same)
            return ShortWords(short, config.short_bytes(memory, same=same), same)
    return None


def short_rows(rows: range) -> range:
    """``rows`` of a table, with those that come in the same beats."""
    return range(rows.start // SHORT_ROWS * SHORT_ROWS, -(-rows.stop // SHORT_ROWS) * SHORT_ROWS)


def shortest_bytes(memory: Memory, array: NDArray[np.generic], config: HardwareConfig) -> int:
    """Bytes of words of PAR or TAB, if each has the shortest form that it may have."""
    words = _words(array, memory, config)
    sizes = np.full(len(words), config.word_bytes(memory))
    if memory in config.short_memories:
        for same in (False, True) if memory is Memory.PAR else (False,):
            fits = has_short_form(words, memory, config, same=same)
            sizes = np.where(fits, config.short_bytes(memory, same=same), sizes)
    return int(sizes.sum())


def _words(array: NDArray[np.generic], memory: Memory, config: HardwareConfig) -> NDArray[np.uint8]:
    return np.ascontiguousarray(array).view(np.uint8).reshape(-1, config.word_bytes(memory))
