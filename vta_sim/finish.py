"""Common steps of every VECTOR, compiled: its levels, its source, and how a result is finished.

Levels 1 to ``folded - 1`` are folded: a result begins where all of these are at their first index.
"""

from dovetail.isa.encoding import SIDES
from dovetail.isa.instructions import Finish, Rounding, Row, Vector
from dovetail.isa.memories import Memory
from dovetail.isa.requantize import FIXED_BIAS_BITS, FIXED_MOST_LEFT, WIDE_LIMIT

from .memories import Memories
from .native.language import (
    Lanes,
    Levels,
    largest,
    load_word,
    look_up,
    multiply_fixed,
    multiply_round_clip,
    smallest,
    splat,
    store_word,
)
from .rows import write_row

__all__ = [
    "begins",
    "ends",
    "level_step",
    "low_bits",
    "low_offset",
    "offset",
    "own_finish",
    "read_source",
    "write",
]

ACT, ACC = SIDES.index(Memory.ACT), SIDES.index(Memory.ACC)


def begins(folded: int, i1: int, i2: int, i3: int, i4: int) -> bool:
    """True if levels 1 to ``folded - 1`` are all at their first index."""
    if folded == 1:
        return True
    if folded == 2:
        return i1 == 0
    return i1 == 0 and i2 == 0 and (folded < 4 or i3 == 0) and (folded < 5 or i4 == 0)


def ends(row: Vector, folded: int, i1: int, i2: int, i3: int, i4: int) -> bool:
    """True if levels 1 to ``folded - 1`` are all at their last index."""
    if folded == 1:
        return True
    if i1 != row.extent[1] - 1:
        return False
    if folded > 2 and i2 != row.extent[2] - 1:
        return False
    if folded > 3 and i3 != row.extent[3] - 1:
        return False
    return folded < 5 or i4 == row.extent[4] - 1


def level_step(stride: Levels, folded: int, level: int) -> int:
    """Stride of a level of destination or PAR, whose strides begin with level 1; folded: 0."""
    return stride[level - 1] if level >= folded else 0


def offset(stride: Levels, folded: int, i2: int, i3: int, i4: int) -> int:
    """Offset that levels 2 and up add to an address of destination or PAR."""
    upper = i3 * level_step(stride, folded, 3) + i4 * level_step(stride, folded, 4)
    return i2 * level_step(stride, folded, 2) + upper


def read_source(row: Vector, m: Memories, address: int) -> Lanes:
    """A word of the memory that a VECTOR reads."""
    if row.source == ACT:
        return load_word(m.act, address & m.act_wrap)
    return load_word(m.acc, address & m.acc_wrap)


def low_bits(value: Lanes, bits: int) -> Lanes:
    """The low ``bits`` of each lane, as a signed number."""
    return value << (32 - bits) >> (32 - bits)


def low_offset(factor: int) -> int:
    """Offset added to taps, or elements of pairs: the low 9 bits of ``m0`` or ``m1``, signed."""
    return factor << 55 >> 55


def write(row: Vector, m: Memories, target: int, par: int, value: Lanes) -> None:
    """Finish a folded value and write it, or the parameters that are made of it."""
    if row.row != Row.NONE:
        write_row(row, m, target, par & m.par_wrap, value)
        return
    _write_word(row, m, target, _finish(row, m, value, par & m.par_wrap))


def _finish(row: Vector, m: Memories, value: Lanes, par: int) -> Lanes:
    if row.finish == Finish.REQUANTIZE:
        zero = row.zero_point
        if row.rounding == Rounding.FIXED:
            return _fixed(row, m, value, par) + zero
        total = value + load_word(m.bias, par)
        if row.rounding == Rounding.WIDE:
            return multiply_round_clip(total, m.scale, par, -WIDE_LIMIT, WIDE_LIMIT) + zero
        return multiply_round_clip(total, m.scale, par, row.low - zero, row.high - zero) + zero
    if row.finish == Finish.SHIFT and row.shift:
        # The bit below the last one kept rounds half up.
        return (value >> row.shift) + (value >> (row.shift - 1) & 1)
    if row.finish == Finish.CUSTOM:
        return own_finish(value, row.shift)
    return value


def own_finish(value: Lanes, shift: int) -> Lanes:
    """The configuration's own finish, whose native code stands in place of this function."""
    return value


def _fixed(row: Vector, m: Memories, value: Lanes, par: int) -> Lanes:
    """A requantised value in fixed point, before its zero point."""
    word, zero = load_word(m.bias, par), row.zero_point
    shift = word >> FIXED_BIAS_BITS & (1 << (32 - FIXED_BIAS_BITS)) - 1
    total = value + low_bits(word, FIXED_BIAS_BITS)
    power = splat(FIXED_MOST_LEFT) - shift
    multiplier = load_word(m.multiplier, par)
    return multiply_fixed(total, multiplier, power, row.low - zero, row.high - zero)


def _write_word(row: Vector, m: Memories, address: int, value: Lanes) -> None:
    if row.destination == ACC:
        store_word(m.acc, address & m.acc_wrap, value)
        return
    small = smallest(largest(value, splat(row.low)), splat(row.high))
    if row.lookup:
        small = look_up(m.tab, (row.tab_address & m.tab_wrap) + 128, small)
    store_word(m.act, address & m.act_wrap, small)
