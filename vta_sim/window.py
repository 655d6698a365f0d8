"""Sums over windows of three columns, as VECTOR's ``Multiplier.WINDOW`` makes them, compiled."""

from dovetail.isa.instructions import Vector

from .finish import begins, ends, level_step, low_bits, low_offset, offset, read_source, write
from .memories import Memories
from .native.language import load_word, splat

__all__ = ["windows"]


def windows(row: Vector, m: Memories) -> None:
    """Run a VECTOR with windows, column after column.

    A column's products go into three sums: with the last tap for the window that ends with it, with
    the second for the next window, and with the first for the one after that. A run is all columns
    of the folded levels and of the one after them; nothing is before its first column.
    """
    folded, elements, taps_offset = row.reduction_levels, row.extent[0], low_offset(row.m0)
    wide = row.wide_window and folded > 1
    source_step, tap_step = row.source_stride[1], row.tap_stride[1]
    target_step = level_step(row.destination_stride, folded, 1)
    par_step = level_step(row.par_stride, folded, 1)
    # Of columns before: sums with the second tap, with the first, and with the first one earlier.
    second_before, first_before, first_earlier = splat(0), splat(0), splat(0)
    first, second, third = splat(0), splat(0), splat(0)
    for i4 in range(row.extent[4]):
        for i3 in range(row.extent[3]):
            for i2 in range(row.extent[2]):
                source = row.source_address + i2 * row.source_stride[2]
                source += i3 * row.source_stride[3] + i4 * row.source_stride[4]
                tap = row.tap_address + i2 * row.tap_stride[2]
                tap += i3 * row.tap_stride[3] + i4 * row.tap_stride[4]
                target = row.destination_address
                target += offset(row.destination_stride, folded, i2, i3, i4)
                par = row.par_address + offset(row.par_stride, folded, i2, i3, i4)
                for i1 in range(row.extent[1]):
                    if begins(folded + 1, i1, i2, i3, i4):
                        second_before, first_before, first_earlier = splat(0), splat(0), splat(0)
                    if i1 == 0 or not wide:
                        first, second, third = splat(0), splat(0), splat(0)
                    at, weight = source, tap
                    for _element in range(elements):
                        value = low_bits(read_source(row, m, at), 8)
                        words = weight & m.tap_wrap & ~3
                        first += value * (load_word(m.tap, words) + taps_offset)
                        second += value * (load_word(m.tap, words + 1) + taps_offset)
                        third += value * (load_word(m.tap, words + 2) + taps_offset)
                        at += row.source_stride[0]
                        weight += row.tap_stride[0]
                    total = third + second_before + first_earlier
                    if i1 == row.extent[1] - 1 or not wide:
                        second_before, first_before, first_earlier = second, first, first_before
                    written = _group(folded, i1, i2, i3, i4) >= row.window_skip
                    if written and ends(row, folded, i1, i2, i3, i4):
                        write(row, m, target, par, total)
                    source += source_step
                    tap += tap_step
                    target += target_step
                    par += par_step


def _group(folded: int, i1: int, i2: int, i3: int, i4: int) -> int:
    """Number of a result in its run: the index of the first level that is not folded."""
    if folded == 1:
        return i1
    if folded == 2:
        return i2
    if folded == 3:
        return i3
    return i4 if folded == 4 else 0
