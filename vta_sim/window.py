"""Sums over windows of three columns, as VECTOR's ``Multiplier.WINDOW`` makes them, compiled.

A column's products go into three sums: with the last tap for the window that ends with it, with the
tap before for the next window, and with the first tap for the one after that.
"""

from dovetail.isa.instructions import Vector
from dovetail.isa.memories import Memory
from dovetail.isa.table import SIDES

from .memories import WINDOW_WORDS, Memories
from .native.language import Lanes, load_word, splat, store_word

__all__ = ["clear_window", "low_bits", "read_source", "tap_offset", "window_sum"]

ACT = SIDES.index(Memory.ACT)
FIRST, BEFORE_FIRST, SECOND = range(WINDOW_WORDS)
"""Words of ``Memories.window``: sums with the first tap of the last column and of the one before
it, and with the second tap of the last column."""


def read_source(row: Vector, m: Memories, address: int) -> Lanes:
    """A word of the memory that a VECTOR reads."""
    if row.source == ACT:
        return load_word(m.act, address & m.act_wrap)
    return load_word(m.acc, address & m.acc_wrap)


def low_bits(value: Lanes, bits: int) -> Lanes:
    """The low ``bits`` of each lane, as a signed number."""
    return value << (32 - bits) >> (32 - bits)


def tap_offset(row: Vector) -> int:
    """What is added to every tap: the low 9 bits of ``m0``, as a signed number."""
    return row.m0 << 55 >> 55


def clear_window(m: Memories) -> None:
    """Before the first column of a run there is nothing."""
    for word in range(WINDOW_WORDS):
        store_word(m.window, word, splat(0))


def window_sum(row: Vector, m: Memories, source: int, tap: int) -> Lanes:
    """The sum of the window that ends with the last column of one result.

    source, tap: addresses of its first element.
    """
    folded = row.reduction_levels
    total = splat(0)
    for i4 in range(row.extent[4] if folded > 4 else 1):
        for i3 in range(row.extent[3] if folded > 3 else 1):
            for i2 in range(row.extent[2] if folded > 2 else 1):
                for i1 in range(row.extent[1] if folded > 1 else 1):
                    at = source + i1 * row.source_stride[1] + i2 * row.source_stride[2]
                    at += i3 * row.source_stride[3] + i4 * row.source_stride[4]
                    weight = tap + i1 * row.tap_stride[1] + i2 * row.tap_stride[2]
                    weight += i3 * row.tap_stride[3] + i4 * row.tap_stride[4]
                    total = _add_column(row, m, at, weight)
    return total


def _add_column(row: Vector, m: Memories, at: int, weight: int) -> Lanes:
    """Take in one column; return the sum of the window that ends with it."""
    first = splat(0)
    second = splat(0)
    third = splat(0)
    offset = tap_offset(row)
    for _element in range(row.extent[0]):
        value = low_bits(read_source(row, m, at), 8)
        taps = weight & m.tap_wrap & ~3
        first += value * (load_word(m.tap, taps) + offset)
        second += value * (load_word(m.tap, taps + 1) + offset)
        third += value * (load_word(m.tap, taps + 2) + offset)
        at += row.source_stride[0]
        weight += row.tap_stride[0]
    total = third + load_word(m.window, SECOND) + load_word(m.window, BEFORE_FIRST)
    store_word(m.window, BEFORE_FIRST, load_word(m.window, FIRST))
    store_word(m.window, FIRST, first)
    store_word(m.window, SECOND, second)
    return total
