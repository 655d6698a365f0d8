"""Effect of VECTOR on the data: as ``dovetail.isa.semantics.vector``, compiled."""

from dovetail.isa.instructions import Fold, Multiplier, Row, Vector

from .finish import begins, ends, level_step, low_bits, low_offset, offset, read_source, write
from .memories import Memories
from .native.language import Lanes, largest, load_word, smallest, splat
from .window import windows

__all__ = ["vector"]


def vector(row: Vector, m: Memories) -> None:
    """Run a VECTOR: result after result is folded, finished and written.

    A column is all elements of level 0; a result is one column for each iteration of the other
    levels that are folded.
    """
    if row.fold == Fold.MAC and row.multiplier == Multiplier.WINDOW:
        windows(row, m)
        return
    folded = row.reduction_levels
    source_step, tap_step = row.source_stride[1], row.tap_stride[1]
    target_step = level_step(row.destination_stride, folded, 1)
    par_step = level_step(row.par_stride, folded, 1)
    columns, first_tap = row.extent[1], row.tap_address
    if row.fold == Fold.MAC and row.multiplier == Multiplier.PAIR:
        # The second elements of pairs are where the walk of the taps is.
        first_tap = row.source_address + row.source_stride[0]
    total = splat(0)
    for i4 in range(row.extent[4]):
        for i3 in range(row.extent[3]):
            for i2 in range(row.extent[2]):
                source = row.source_address + i2 * row.source_stride[2]
                source += i3 * row.source_stride[3] + i4 * row.source_stride[4]
                tap = first_tap + i2 * row.tap_stride[2]
                tap += i3 * row.tap_stride[3] + i4 * row.tap_stride[4]
                target = row.destination_address
                target += offset(row.destination_stride, folded, i2, i3, i4)
                par = row.par_address + offset(row.par_stride, folded, i2, i3, i4)
                for i1 in range(columns):
                    first = begins(folded, i1, i2, i3, i4)
                    total = _column(row, m, source, tap, first, total)
                    if ends(row, folded, i1, i2, i3, i4):
                        write(row, m, target, par, total)
                    source += source_step
                    tap += tap_step
                    target += target_step
                    par += par_step


def _column(row: Vector, m: Memories, at: int, tap: int, first: bool, total: Lanes) -> Lanes:
    """``total`` with the elements of one column folded in; of the first one, without ``total``."""
    fold = row.fold
    if fold == Fold.MAC:
        return _multiply(row, m, at, tap, splat(0) if first else total)
    for _element in range(row.extent[0]):
        value = read_source(row, m, at)
        if first:
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
    return total


def _multiply(row: Vector, m: Memories, at: int, tap: int, total: Lanes) -> Lanes:
    """``total`` plus the elements of one column, each times its multiplier."""
    if row.multiplier == Multiplier.PAIR:
        return _pairs(row, m, at, tap, total)
    raised = _raised(row, m)
    for i0 in range(row.extent[0]):
        total += low_bits(read_source(row, m, at) + raised, 16) * _factor(row, m, i0, tap)
        at += row.source_stride[0]
        tap += row.tap_stride[0]
    return total


def _raised(row: Vector, m: Memories) -> int:
    """Offset that is added to elements before they are multiplied."""
    if row.multiplier == Multiplier.TAP and row.row == Row.NONE and m.raises > 0:
        return low_offset(row.m1)
    return 0


def _factor(row: Vector, m: Memories, i0: int, tap: int) -> Lanes:
    """The multiplier of one element, where it is no other element."""
    if row.multiplier == Multiplier.TAP:
        return load_word(m.tap, tap & m.tap_wrap) + low_offset(row.m0)
    return splat(row.m0 if i0 == 0 else row.m1)


def _pairs(row: Vector, m: Memories, at: int, second: int, total: Lanes) -> Lanes:
    """``total`` plus the products of each two elements of one column."""
    added = row.m1 if row.row == Row.NONE else row.m0
    for _pair in range(row.extent[0] >> 1):
        second += row.tap_stride[0]
        left = read_source(row, m, at) + low_offset(row.m0)
        right = read_source(row, m, second) + low_offset(added)
        total += low_bits(right, 16) * low_bits(left, 24)
        at += 2 * row.source_stride[0]
        second += row.tap_stride[0]
    return total
