"""The parameters of rows that VECTOR writes to PAR: as ``dovetail.isa.rows``, compiled."""

from dovetail.isa.instructions import Fold, Row, Vector
from dovetail.isa.rows import ROOT_BITS, ROOT_FRACTION_BITS, ROOT_GUARD_BITS, ROOT_INDEX_BITS

from .memories import Memories
from .native.language import Lanes, splat, store_word

__all__ = ["write_row"]

ROOT_STEP_BITS = ROOT_INDEX_BITS + ROOT_FRACTION_BITS
REST = (1 << ROOT_FRACTION_BITS) - 1


def write_row(row: Vector, m: Memories, target: int, par: int, value: Lanes) -> None:
    """Make the parameters of a row of a folded word, and write them to PAR."""
    store_word(m.folded, 0, value)
    first = par * m.lanes
    start = row.m1
    scale = m.multiplier[first] & 0x7FFFFFFF
    if row.row == Row.LESS:
        if row.fold == Fold.MAX:
            start -= _largest_byte(m)
            scale = 127 << 23
        else:
            start -= _sum(m, 0)
    elif row.row == Row.OVER:
        scale = _over(scale, max(_sum(m, m.bias[first]), 1))
    else:
        scale = _over_root(m, scale, max(_sum(m, start), 1), row.shift)
        start = m.bias[first]
    place = target & m.par_wrap
    store_word(m.bias, place, splat(start))
    store_word(m.multiplier, place, splat(scale))


def _largest_byte(m: Memories) -> int:
    most = -128
    for lane in range(m.lanes):
        most = max(most, m.folded[lane] << 56 >> 56)
    return most


def _sum(m: Memories, start: int) -> int:
    """All lanes and ``start``, as an int32."""
    total = start
    for lane in range(m.lanes):
        total += m.folded[lane]
    return total << 32 >> 32


def _over_root(m: Memories, bits: int, total: int, shift: int) -> int:
    """Bits of ``scale * 2^shift / sqrt(total)``; ``bits``: of the scale."""
    exponent = 0
    while total >> exponent > 1:
        exponent += 1
    fraction = (total - (1 << exponent) << ROOT_STEP_BITS) >> exponent
    index = (exponent & 1) << ROOT_INDEX_BITS | fraction >> ROOT_FRACTION_BITS
    less = m.roots[2 * index + 1] * (fraction & REST)
    root = (m.roots[2 * index] - (less >> ROOT_FRACTION_BITS)) >> ROOT_GUARD_BITS
    product = (bits & 0x7FFFFF | 0x800000) * root
    power = (bits >> 23) + shift - (exponent >> 1)
    cut = ROOT_BITS
    if product >> (23 + ROOT_BITS) == 0:
        cut -= 1
        power -= 1
    if bits >> 23 == 0 or power <= 0:
        return 0
    return (min(power, 254) << 23) + (product >> cut) - 0x800000


def _over(bits: int, total: int) -> int:
    """Bits of the quotient; ``bits``: of what is divided."""
    # Round to 24 bits, half to even.
    power = 0
    while total >> power >= 1 << 24:
        power += 1
    divisor = total >> power
    rest = total - (divisor << power)
    half = 1 << power >> 1
    if power and (rest > half or (rest == half and divisor & 1)):
        divisor += 1
    while divisor < 1 << 23:
        divisor <<= 1
        power -= 1
    if divisor == 1 << 24:
        divisor >>= 1
        power += 1
    dividend = bits & 0x7FFFFF | 0x800000
    exponent = (bits >> 23) - power - 23
    shift = 24
    if dividend < divisor:
        shift = 25
        exponent -= 1
    if bits >> 23 == 0 or exponent <= 0:
        return 0
    rounded = ((dividend << shift) // divisor + 1) >> 1
    return (exponent << 23) + rounded - 0x800000
