"""The float32 requantisation of one lane, in integers."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .pipeline import delayed, delays

__all__ = ["RESULT_BITS", "Requantize"]

WHOLE_BITS = 10
"""Magnitudes are capped at 512: with any zero point that is beyond every int8 limit."""
RESULT_BITS = WHOLE_BITS + 2
"""Bits of a capped result with its sign and zero point."""
MANTISSA_BITS = 24


class Requantize(wiring.Component):
    """``rint(float32(value) * scale) + zero_point``; see ``dovetail.isa.semantics.requantize``.

    Operands in cycle ``t``, the result in ``t + LATENCY``, one a cycle.  By cycle: 0 magnitude; 1
    and 2 shift it left until the top bit is set; 3 round to 24 bits; 4 multiply the mantissas
    (24x24); 5 round the product to 24 bits; 6 shift it so that its point is in a fixed place; 7
    round to an integer, give it its sign and add the zero point: one short adder behind the last
    registers.  All rounding is half to even.

    Exact for every int32 value and every positive, normal, finite scale, but that the magnitude
    before the zero point is at most 512.

    Members
    -------
    value : In(signed(32))
    scale : In(32)
        float32 bits; the sign is ignored.
    zero_point : In(signed(8))
        In cycle ``t + LATENCY``.
    result : Out(signed(RESULT_BITS))
    """

    LATENCY = 7

    value: In(signed(32))
    scale: In(32)
    zero_point: In(signed(8))
    result: Out(signed(RESULT_BITS))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        negative = delays(m, self.value < 0, "negative", self.LATENCY)[-1]
        scale = delays(m, self.scale[:31], "scale", 3)[-1]

        # 0: magnitude.
        absolute = Signal(32)
        m.d.comb += absolute.eq(Mux(self.value < 0, -self.value, self.value))
        magnitude = delayed(m, absolute, "magnitude")

        # 1, 2: shift left by 16, 8, 4, 2, 1 where that loses nothing.
        shifted, zeros_high = self._normalize(m, magnitude, (16, 8))
        shifted, zeros_high = delayed(m, shifted, "shifted"), delayed(m, zeros_high, "zeros_high")
        normal, zeros_low = self._normalize(m, shifted, (4, 2, 1))
        normal = delayed(m, normal, "normal")
        zeros = delayed(m, Cat(zeros_low, zeros_high), "zeros")

        # 3: value = mantissa * 2 ** (8 - zeros + carry).
        up = normal[7] & (normal[:7].any() | normal[8])
        rounded_value = Signal(MANTISSA_BITS + 1)
        m.d.comb += rounded_value.eq(normal[8:] + up)
        carry = delayed(m, rounded_value[-1], "carry")
        top = rounded_value[-2] | rounded_value[-1]
        mantissa = delayed(m, Cat(rounded_value[: MANTISSA_BITS - 1], top), "mantissa")
        factor = delayed(m, Cat(scale[:23], 1), "factor")
        # How far left the rounded product goes to have its point above 25 bits: the product's
        # lowest bit is worth 2 ** (8 - zeros + carry + exponent - 150), and 23 or 24 bits are cut.
        left = delayed(m, scale[23:31] - zeros - 94, "left4")

        # 4: 24x24-bit product.
        product = delayed(m, mantissa * factor, "product")
        left = delayed(m, left + carry, "left5")

        # 5: round the product to 24 bits; a carry to 2**24 keeps its value.
        high = product[-1]
        upper = Signal(MANTISSA_BITS)
        half, sticky = Signal(), Signal()
        m.d.comb += [
            upper.eq(Mux(high, product[24:], product[23:-1])),
            half.eq(Mux(high, product[23], product[22])),
            sticky.eq(product[:22].any() | (high & product[22])),
        ]
        rounded = delayed(m, upper + (half & (sticky | upper[0])), "rounded")
        left = delayed(m, left + high, "left6")

        # 6: the float32 product is rounded * 2 ** (left - 25): with left above 10 at least 512 (or
        # zero), below 0 less than a half.
        point = MANTISSA_BITS + 1
        placed = Signal(point + WHOLE_BITS)
        small, large = left < 0, left > WHOLE_BITS
        m.d.comb += placed.eq(Mux(small, 0, rounded << left[:4]))
        whole = Signal(WHOLE_BITS)
        nonzero = rounded[-2] | rounded[-1]
        with m.If(large & nonzero):
            m.d.comb += whole.eq(1 << (WHOLE_BITS - 1))
        with m.Else():
            m.d.comb += whole.eq(placed[point:])
        round_up = placed[point - 1] & (placed[: point - 1].any() | placed[point])
        whole = delayed(m, whole, "whole")
        round_up = delayed(m, round_up & ~large, "round_up")

        # 7: -(w + u) = ~w + 1 - u.
        signed_whole = Signal(signed(WHOLE_BITS + 1))
        m.d.comb += [
            signed_whole.eq(Cat(whole, 0) ^ negative.replicate(WHOLE_BITS + 1)),
            self.result.eq(signed_whole + self.zero_point + (negative ^ round_up)),
        ]
        return m

    def _normalize(self, m: Module, value: Value, steps: tuple[int, ...]) -> tuple[Value, Value]:
        """Shift left by each of ``steps`` that loses no bit; also which, the last one lowest."""
        taken: list[Value] = []
        for bits in steps:
            empty = Signal(name=f"empty{bits}")
            m.d.comb += empty.eq(value[32 - bits :] == 0)
            following = Signal(32, name=f"shifted{bits}")
            m.d.comb += following.eq(Mux(empty, value << bits, value))
            value = following
            taken.insert(0, empty)
        return value, Cat(*taken)
