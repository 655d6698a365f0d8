"""A scale divided by the root of a sum."""

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from dovetail.isa.rows import (
    ROOT_BITS,
    ROOT_FRACTION_BITS,
    ROOT_GUARD_BITS,
    ROOT_INDEX_BITS,
    ROOT_TABLE,
)

from .pipeline import delayed, delays

__all__ = ["MANTISSA_BITS", "ROOT_LATENCY", "RootScale"]

MANTISSA_BITS = 24
MOST_EXPONENT = 254
"""The exponent of the largest float32."""
ROOT_LATENCY = 4
"""Cycles from the sum to the scale."""


class RootScale(wiring.Component):
    """``scale * 2^shift / sqrt(sum)``: ``over_root`` of ``dovetail.isa.rows``.

    Operands in cycle ``t``, the result ``ROOT_LATENCY`` later, one a cycle.  By cycle: 0 looks up;
    1 multiplies the step by the fraction (12x10); 2 takes it away; 3 multiplies by the scale
    (24x17); the product is cut behind the last registers.

    Members
    -------
    normal : In(32), places : In(5)
        The sum, shifted left by ``places`` until its top bit is set.
    scale : In(31), shift : In(5)
        float32 bits, without the sign.
    result : Out(31)
    """

    normal: In(32)
    places: In(5)
    scale: In(31)
    shift: In(5)
    result: Out(31)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # The sum is normal / 2^31 * 2^(31 - places): its exponent is even where places is odd.
        fraction = self.normal[31 - ROOT_INDEX_BITS - ROOT_FRACTION_BITS : 31]
        index = Cat(fraction[ROOT_FRACTION_BITS:], ~self.places[0])

        # 0: look up.
        first, step = (_looked_up(m, column, index) for column in (0, 1))
        rest = delayed(m, fraction[:ROOT_FRACTION_BITS], "rest")
        # 1, 2: the inverse root.
        less = delayed(m, step * rest, "less")
        first = delayed(m, first, "first1")
        root = Signal(ROOT_BITS, reset_less=True)
        m.d.sync += root.eq((first - less[ROOT_FRACTION_BITS:])[ROOT_GUARD_BITS:])
        # 3: the product.
        scale = delays(m, self.scale, "scale", 3)[-1]
        product = delayed(m, Cat(scale[:23], Const(1, 1)) * root, "product")

        halved = (31 - self.places)[1:5]
        exponent = delayed(m, (self.scale[23:] + self.shift - halved).as_signed(), "exponent")
        exponent = delays(m, exponent, "exponent_beside", ROOT_LATENCY - 1)[-1].as_signed()
        some = delays(m, self.scale[23:].any(), "some", ROOT_LATENCY)[-1]
        less_one = ~product[-1]
        significand = Mux(less_one, product[ROOT_BITS - 1 :], product[ROOT_BITS:])
        power = Signal(signed(11))
        m.d.comb += power.eq(exponent - less_one)
        capped = Mux(power > MOST_EXPONENT, MOST_EXPONENT, power)[:8]
        found = Cat(significand[: MANTISSA_BITS - 1], capped)
        m.d.comb += self.result.eq(Mux(some & (power > 0), found, 0))
        return m


def _looked_up(m: Module, column: int, index: Value) -> Value:
    """The entry of a column of ``ROOT_TABLE``, a cycle later."""
    values = ROOT_TABLE[:, column].tolist()
    bits = max(values).bit_length()
    return delayed(m, Array(Const(value, bits) for value in values)[index], f"column{column}")
