"""What VECTOR does to the data: as ``dovetail.isa.semantics.vector``, compiled."""

from dovetail.isa.instructions import Finish, Fold, Multiplier, Vector
from dovetail.isa.memories import Memory
from dovetail.isa.table import SIDES

from .memories import Memories
from .native.language import (
    Lanes,
    largest,
    load_word,
    look_up,
    multiply_round_clip,
    smallest,
    splat,
    store_word,
)
from .window import clear_window, low_bits, read_source, tap_offset, window_sum

__all__ = ["vector"]

ACC = SIDES.index(Memory.ACC)


def vector(row: Vector, m: Memories) -> None:
    """Run a VECTOR: result after result is folded, finished and written."""
    folded = row.reduction_levels
    window = row.fold == Fold.MAC and row.multiplier == Multiplier.WINDOW
    for i4 in range(1 if folded > 4 else row.extent[4]):
        for i3 in range(1 if folded > 3 else row.extent[3]):
            for i2 in range(1 if folded > 2 else row.extent[2]):
                for i1 in range(1 if folded > 1 else row.extent[1]):
                    source = row.source_address + i1 * row.source_stride[1]
                    source += i2 * row.source_stride[2] + i3 * row.source_stride[3]
                    source += i4 * row.source_stride[4]
                    tap = row.tap_address + i1 * row.tap_stride[1] + i2 * row.tap_stride[2]
                    tap += i3 * row.tap_stride[3] + i4 * row.tap_stride[4]
                    par = row.par_address + i1 * row.par_stride[0] + i2 * row.par_stride[1]
                    par += i3 * row.par_stride[2] + i4 * row.par_stride[3]
                    target = row.destination_address + i1 * row.destination_stride[0]
                    target += i2 * row.destination_stride[1] + i3 * row.destination_stride[2]
                    target += i4 * row.destination_stride[3]
                    if window:
                        group = _group(folded, i1, i2, i3, i4)
                        if group == 0:
                            clear_window(m)
                        value = window_sum(row, m, source, tap)
                        if group < row.window_skip:
                            continue
                    else:
                        value = _fold(row, m, source, tap)
                    _write(row, m, target, _finish(row, m, value, par & m.par_wrap))


def _group(folded: int, i1: int, i2: int, i3: int, i4: int) -> int:
    """Number of a result in its run: the index of the first level that is not folded."""
    if folded == 1:
        return i1
    if folded == 2:
        return i2
    if folded == 3:
        return i3
    return i4 if folded == 4 else 0


def _fold(row: Vector, m: Memories, source: int, tap: int) -> Lanes:
    """The elements of one result, folded; ``source`` and ``tap`` are the first addresses."""
    folded, fold = row.reduction_levels, row.fold
    total = splat(0)
    before = splat(0)
    first = True
    for i4 in range(row.extent[4] if folded > 4 else 1):
        for i3 in range(row.extent[3] if folded > 3 else 1):
            for i2 in range(row.extent[2] if folded > 2 else 1):
                for i1 in range(row.extent[1] if folded > 1 else 1):
                    at = source + i1 * row.source_stride[1] + i2 * row.source_stride[2]
                    at += i3 * row.source_stride[3] + i4 * row.source_stride[4]
                    weight = tap + i1 * row.tap_stride[1] + i2 * row.tap_stride[2]
                    weight += i3 * row.tap_stride[3] + i4 * row.tap_stride[4]
                    for i0 in range(row.extent[0]):
                        value = read_source(row, m, at)
                        if fold == Fold.MAC:
                            total += low_bits(value, 16) * _factor(row, m, i0, weight, before)
                            before = value
                        elif first:
                            total = value
                        elif fold == Fold.ADD:
                            total += value
                        elif fold == Fold.SUB:
                            total -= value
                        elif fold == Fold.MAX:
                            total = largest(total, value)
                        else:
                            total = smallest(total, value)
                        first = False
                        at += row.source_stride[0]
                        weight += row.tap_stride[0]
    return total


def _factor(row: Vector, m: Memories, i0: int, tap: int, before: Lanes) -> Lanes:
    """The multiplier of MAC for one element; ``before`` is the element before it."""
    if row.multiplier == Multiplier.TAP:
        return load_word(m.tap, tap & m.tap_wrap) + tap_offset(row)
    if row.multiplier == Multiplier.IMMEDIATE:
        return splat(row.m0 if i0 == 0 else row.m1)
    return low_bits(before, 24) if i0 & 1 else splat(0)


def _finish(row: Vector, m: Memories, value: Lanes, par: int) -> Lanes:
    if row.finish == Finish.REQUANTIZE:
        zero = row.zero_point
        total = value + load_word(m.bias, par)
        return multiply_round_clip(total, m.scale, par, row.low - zero, row.high - zero) + zero
    if row.finish == Finish.SHIFT and row.shift:
        # The bit below the last one kept rounds half up.
        return (value >> row.shift) + (value >> (row.shift - 1) & 1)
    return value


def _write(row: Vector, m: Memories, address: int, value: Lanes) -> None:
    if row.destination == ACC:
        store_word(m.acc, address & m.acc_wrap, value)
        return
    small = smallest(largest(value, splat(row.low)), splat(row.high))
    if row.lookup:
        small = look_up(m.tab, (row.tab_address & m.tab_wrap) + 128, small)
    store_word(m.act, address & m.act_wrap, small)
