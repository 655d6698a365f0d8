"""Requantisation, by parts: all before its product of two mantissas, and all behind it.

Of both roundings, which follow each other in any order.
"""

from types import ModuleType

from amaranth.hdl import Const, Mux, Signal, Value, signed

from dovetail.isa.config import HardwareConfig

from .bench import Bench, Opened

MANTISSA = 24
PRODUCT = MANTISSA + 31
MOST_LEFT = 7
WHOLE_BITS = (10, 20)
"""Bits of a magnitude that is not capped, and of wide results."""


def _bench(
    source: ModuleType, config: HardwareConfig, strengthen: bool
) -> tuple[Bench, Opened, Value]:
    """Also the number of the cycle, as far as it matters."""
    bench = Bench(strengthen)
    fixed_too = config.fixed_rounding
    wide = config.row_parameters
    unit = bench.add(source.Requantize(deep=config.deep_pipelines, fixed=fixed_too, wide=wide))
    number = Signal(5)
    bench.module.d.sync += number.eq(Mux(number == 31, 31, number + 1))
    return bench, unit, number


def _delayed(bench: Bench, value: Value, name: str, cycles: int) -> Value:
    for cycle in range(cycles):
        value = bench.before(value, f"{name}{cycle}")
    return value


def front(source: ModuleType, config: HardwareConfig, strengthen: bool) -> Bench:
    """The value is rounded to 24 bits, half to even, and the exponents are added; in fixed point
    its lowest 24 bits, doubled or not, are taken, or ones alone.
    """
    bench, unit, number = _bench(source, config, strengthen)
    m = bench.module
    cycles = 7 if config.deep_pipelines else 4
    value = _delayed(bench, unit.component.value.as_unsigned(), "value", cycles)
    scale = _delayed(bench, unit.component.scale, "scale", cycles)
    magnitude = Signal(32)
    m.d.comb += magnitude.eq(Mux(value[-1], -value, value))
    mantissa, exponent = Signal(MANTISSA + 1), Signal(signed(8))
    for length in range(1, 33):
        dropped = length - MANTISSA
        with m.If((magnitude >> (length - 1)) == 1):
            if dropped <= 0:
                m.d.comb += [mantissa.eq(magnitude << -dropped), exponent.eq(dropped)]
            else:
                rounded = _half_to_even(magnitude, dropped)
                over = rounded[MANTISSA]
                m.d.comb += mantissa.eq(Mux(over, 1 << (MANTISSA - 1), rounded))
                m.d.comb += exponent.eq(dropped + over)
    fixed = _delayed(bench, unit.component.fixed, "fixed_before", cycles)
    shift = _delayed(bench, unit.component.power_shift, "shift_before", cycles)
    known, left = number >= cycles, unit["left4"] + unit["carry"]
    real, whole = known & ~fixed, known & fixed
    bench.check(~real | (unit["mantissa"] == mantissa), "24 bits of the value")
    bench.check(~real | (unit["factor"] == (scale[:23] | 1 << 23)), "24 bits of the scale")
    expected = scale[23:31] + exponent - 102
    bench.check(~real | (value == 0) | (left == expected), "the exponents")
    bench.cover(real & unit["carry"] & (left == -3))
    # In fixed point: doubled as often as the power says, and no more than 24 bits.
    doubled = magnitude << Mux(shift < MOST_LEFT, MOST_LEFT - shift, 0)[:3]
    most = (1 << MANTISSA) - 1
    capped = Mux(doubled > most, most, doubled)
    bench.check(~whole | (unit["mantissa"] == capped), "the value, doubled, or ones alone")
    bench.check(~whole | (unit["factor"] == scale[:31]), "31 bits of the multiplier")
    right = Mux(shift > MOST_LEFT, shift - MOST_LEFT, 0)
    bench.check(~whole | (left == MANTISSA + 1 - right), "the power of two")
    bench.cover(whole & (unit["mantissa"] == most - 31) & (doubled == most - 31) & (shift == 2))
    return bench


def back(source: ModuleType, config: HardwareConfig, strengthen: bool) -> Bench:
    """The product is rounded to 24 bits, brought to its place, rounded to an integer, and given its
    sign and the zero point: from whatever product and exponent there are in the first cycle.  In
    fixed point 31 bits of the product are rounded off half up, then some of its magnitude's.
    """
    bench, unit, number = _bench(source, config, strengthen)
    cycles = 4 if config.deep_pipelines else 2
    left_now = unit["left_beside_3" if config.deep_pipelines else "left5"]
    begins = number == 0
    product_now: Value = unit["product"]
    fixed_now = unit["fixed"][len(unit["fixed"]) - 1 - cycles]
    two_mantissas = (product_now == 0) | ((product_now[46:] != 0) & (product_now[48:] == 0))
    largest = ((1 << MANTISSA) - 1) * ((1 << PRODUCT - MANTISSA) - 1)
    bench.assume(~begins | Mux(fixed_now, product_now <= largest, two_mantissas))
    places = Mux(fixed_now, (left_now >= 1) & (left_now <= 25), left_now >= -126)
    bench.assume(~begins | (places & (left_now <= 162)))
    fixed = _delayed(bench, fixed_now, "fixed_before", cycles)
    product = _delayed(bench, product_now, "product", cycles)
    left = _delayed(bench, left_now, "left", cycles)
    negative = _delayed(bench, unit["negative"][len(unit["negative"]) - 1 - cycles], "sign", cycles)
    whole_24 = Mux(
        product[47],
        _half_to_even(product, 24) << 24,
        _half_to_even(product, 23) << 23,
    )
    wide = config.row_parameters
    bits = WHOLE_BITS[wide]
    most = 1 << (bits - 1)
    inside = (left >= 0) & (left <= bits)
    placed = (whole_24 << Mux(inside, left[:5], 0))[: 50 + bits]
    near = _half_to_even(placed, 48)
    capped = Mux(near >= most, most, near)
    far = Mux((left < 0) | (product == 0), 0, most)
    # In fixed point: the product's 31 bits, half up with its sign, then its magnitude's bits.
    up = product[30] & (~negative | (product[:30] != 0))
    cut = product[31:] + up
    divided = ((cut << left[:5]) + (1 << MANTISSA)) >> (MANTISSA + 1)
    in_fixed = Mux(divided >= most, most, divided)
    magnitude = Mux(fixed, in_fixed, Mux(inside, capped, far))
    zero_point = unit.component.zero_point
    exact = Mux(negative, -magnitude, magnitude) + zero_point
    known = number == cycles
    result = unit.component.result
    bench.check(~known | (_clip(result) == _clip(exact)), "the result, clipped to int8")
    if wide:
        bench.check(~known | fixed | (result == exact), "a wide result")
    bench.cover(known & ~fixed & (result == -61) & (zero_point == 3) & (product[:46] == 5))
    bench.cover(known & fixed & (result == -61) & (zero_point == 3) & (product[:30] == 0))
    return bench


def _half_to_even(value: Value, dropped: int) -> Value:
    """``value / 2^dropped``, rounded; dropped > 0."""
    whole, rest = value >> dropped, value[:dropped]
    half = Const(1 << (dropped - 1), dropped)
    return whole + ((rest > half) | ((rest == half) & whole[0]))


def _clip(value: Value) -> Value:
    return Mux(value < -128, -128, Mux(value > 127, 127, value))
