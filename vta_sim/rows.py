"""The parameters of rows that VECTOR writes to PAR: as ``dovetail.isa.rows``, compiled."""

from dovetail.isa.instructions import Row, Vector

from .memories import Memories
from .native.language import Lanes, splat, store_word

__all__ = ["write_row"]


def write_row(row: Vector, m: Memories, target: int, par: int, value: Lanes) -> None:
    """Make the parameters of a row of a folded word, and write them to PAR."""
    store_word(m.folded, 0, value)
    start = row.m1
    scale = 127 << 23
    if row.row == Row.LARGEST:
        start -= _largest_byte(m)
    else:
        scale = _over_sum(m, par * m.lanes)
    place = target & m.par_wrap
    store_word(m.bias, place, splat(start))
    store_word(m.multiplier, place, splat(scale))


def _largest_byte(m: Memories) -> int:
    most = -128
    for lane in range(m.lanes):
        most = max(most, m.folded[lane] << 56 >> 56)
    return most


def _over_sum(m: Memories, first: int) -> int:
    """Bits of the quotient; ``first``: lane 0 of the parameters it is made of."""
    total = m.bias[first]
    for lane in range(m.lanes):
        total += m.folded[lane]
    total = max(total << 32 >> 32, 1)
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
    bits = m.multiplier[first] & 0x7FFFFFFF
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
