"""The float32 requantisation of one lane, in integers."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .multiply import WIDE_LATENCY, wide_product
from .pipeline import delayed, delays

__all__ = ["RESULT_BITS", "Requantize", "requantize_latency"]

WHOLE_BITS = 10
"""Magnitudes are capped at 512: with any zero point that is beyond every int8 limit."""
RESULT_BITS = WHOLE_BITS + 2
"""Bits of a capped result with its sign and zero point."""
MANTISSA_BITS = 24


def requantize_latency(deep: bool) -> int:
    """Cycles from an operand of ``Requantize`` to its result."""
    return 11 + WIDE_LATENCY if deep else 7


class Requantize(wiring.Component):
    """``rint(float32(value) * scale) + zero_point``; see ``dovetail.isa.semantics.requantize``.

    Operands in cycle ``t``, the result ``requantize_latency`` later, one a cycle.  By cycle: 0
    magnitude; 1 and 2 shift it left until the top bit is set; 3 round to 24 bits; 4 multiply the
    mantissas (24x24); 5 round the product to 24 bits; 6 shift it so that its point is in a fixed
    place; 7 round to an integer, give it its sign and add the zero point: one short adder behind
    the last registers.  All rounding is half to even.

    A deep pipeline takes two cycles more for the shift left, one for each rounding and for the
    shift to a fixed place, and ``WIDE_LATENCY`` for the product.

    Exact for every int32 value and every positive, normal, finite scale, but that the magnitude
    before the zero point is at most 512.

    Members
    -------
    value : In(signed(32))
    scale : In(32)
        float32 bits; the sign is ignored.
    zero_point : In(signed(8))
        In the result's cycle.
    result : Out(signed(RESULT_BITS))
    """

    value: In(signed(32))
    scale: In(32)
    zero_point: In(signed(8))
    result: Out(signed(RESULT_BITS))

    def __init__(self, *, deep: bool = False) -> None:
        self._deep = deep
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        deep = self._deep

        def deeper(value: Value, name: str) -> Value:
            """A register that only a deep pipeline has."""
            return delayed(m, value, name) if deep else value

        sign = self.value[-1]
        negative = delays(m, sign, "negative", requantize_latency(deep))[-1]
        scale = delays(m, self.scale[:31], "scale", 6 if deep else 3)[-1]

        # 0: magnitude.
        absolute = Signal(32)
        m.d.comb += absolute.eq((self.value.as_unsigned() ^ sign.replicate(32)) + sign)
        magnitude = delayed(m, absolute, "magnitude")

        # 1, 2: shift left by 16, 8, 4, 2, 1 where that loses nothing.
        zeros: list[Value] = []
        normal: Value = magnitude
        for steps in ((16,), (8,), (4,), (2, 1)) if deep else ((16, 8), (4, 2, 1)):
            normal, taken = self._normalize(m, normal, steps)
            normal = delayed(m, normal, f"normal{steps[-1]}")
            name = f"zeros{steps[-1]}"
            zeros = [delayed(m, Cat(*taken, *zeros), name)]

        # 3: value = mantissa * 2 ** (8 - zeros + carry).
        up = deeper(normal[7] & (normal[:7].any() | normal[8]), "up")
        rounded_value = Signal(MANTISSA_BITS + 1)
        m.d.comb += rounded_value.eq(deeper(normal[8:], "unrounded") + up)
        carry = delayed(m, rounded_value[-1], "carry")
        top = rounded_value[-2] | rounded_value[-1]
        mantissa = delayed(m, Cat(rounded_value[: MANTISSA_BITS - 1], top), "mantissa")
        factor = delayed(m, Cat(scale[:23], 1), "factor")
        # How far left the rounded product goes to have its point above 25 bits: the product's
        # lowest bit is worth 2 ** (8 - zeros + carry + exponent - 150), and 23 or 24 bits are cut.
        left: Value = delayed(m, scale[23:31] - deeper(zeros[0], "zeros") - 94, "left4")

        # 4: 24x24-bit product.
        if deep:
            product = wide_product(m, mantissa, factor, 2 * MANTISSA_BITS, "product")
        else:
            product = delayed(m, mantissa * factor, "product")
        left = delayed(m, left + carry, "left5")
        left = delays(m, left, "left_beside", WIDE_LATENCY - 1 if deep else 0)[-1]

        # 5: round the product to 24 bits; a carry to 2**24 keeps its value.
        high = product[-1]
        upper = Mux(high, product[24:], product[23:-1])
        half = Mux(high, product[23], product[22])
        sticky = product[:22].any() | (high & product[22])
        up = deeper(half & (sticky | upper[0]), "product_up")
        rounded = delayed(m, deeper(upper, "upper") + up, "rounded")
        left = delayed(m, deeper(left + high, "left6"), "left_rounded")

        # 6: the float32 product is rounded * 2 ** (left - 25): with left above 10 at least 512 (or
        # zero), below 0 less than a half.
        point = MANTISSA_BITS + 1
        small = left < 0
        large = deeper(left > WHOLE_BITS, "large")
        nonzero = deeper(rounded[-2] | rounded[-1], "nonzero")
        shifted = Mux(small, 0, rounded << left[:4])
        placed = Signal(point + WHOLE_BITS)
        m.d.comb += placed.eq(deeper(shifted[: len(placed)], "placed"))
        whole = Signal(WHOLE_BITS)
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

    def _normalize(
        self, m: Module, value: Value, steps: tuple[int, ...]
    ) -> tuple[Value, list[Value]]:
        """Shift left by each of ``steps`` that loses no bit; also which, the last one lowest."""
        taken: list[Value] = []
        for bits in steps:
            empty = Signal(name=f"empty{bits}")
            m.d.comb += empty.eq(value[32 - bits :] == 0)
            following = Signal(32, name=f"shifted{bits}")
            m.d.comb += following.eq(Mux(empty, value << bits, value))
            value = following
            taken.insert(0, empty)
        return value, taken
