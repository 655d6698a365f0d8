"""The requantisation of one lane: that of float32 in integers, and that of TensorFlow Lite."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from dovetail.isa.requantize import FIXED_MOST_LEFT, WIDE_LIMIT

from .multiply import WIDE_LATENCY, wide_product
from .pipeline import delayed, delays

__all__ = ["Requantize", "requantize_latency", "result_bits"]

WHOLE_BITS = (10, WIDE_LIMIT.bit_length())
"""Magnitudes are capped at 512: with any zero point that is beyond every int8 limit.  Wide ones are
capped at ``WIDE_LIMIT``.
"""
MANTISSA_BITS = 24
MULTIPLIER_BITS = 31
"""Bits of the multiplier of the rounding FIXED."""
FACTOR_PART = 17
"""Bits of it, without a sign, in one multiplier of an FPGA."""


def requantize_latency(deep: bool) -> int:
    """Cycles from an operand of ``Requantize`` to its result."""
    return 11 + WIDE_LATENCY if deep else 7


def result_bits(wide: bool) -> int:
    """Bits of a capped result with its sign and zero point."""
    return WHOLE_BITS[wide] + 2


class Requantize(wiring.Component):
    """``rint(float32(value) * scale) + zero_point``, or with two roundings in fixed point: both of
    ``dovetail.isa.requantize``.

    Operands in cycle ``t``, the result ``requantize_latency`` later, one a cycle.  By cycle: 0
    magnitude; 1 and 2 shift it left until the top bit is set; 3 round to 24 bits; 4 multiply the
    mantissas (24x24); 5 round the product to 24 bits; 6 shift it so that its point is in a fixed
    place; 7 round to an integer, give it its sign and add the zero point: one short adder behind
    the last registers.  All rounding is half to even.

    With ``fixed`` the same steps do: 1 and 2 shift left by 8, so that the lowest 24 bits are the
    mantissa, and by a positive power of two, to ones alone where that loses bits; 3 nothing; 4
    multiply by 31 bits; 5 cut 31 bits off, half up; 6 shift by the power of two; 7 round its
    magnitude half up.

    A deep pipeline takes two cycles more for the shift left, one for each rounding and for the
    shift to a fixed place, and ``WIDE_LATENCY`` for the product.

    Exact for every int32 value and every positive, normal, finite scale (with ``fixed``, all bits
    of it), but that a magnitude of 512 and more before the zero point is any such one.  With
    ``wide`` all below ``WIDE_LIMIT`` are exact, and a larger one is that (``fixed``: any larger).

    Parameters
    ----------
    deep : bool
        As ``HardwareConfig.deep_pipelines``.
    fixed : bool
        As ``HardwareConfig.fixed_rounding``; without it the members ``fixed`` and ``power_shift``
        count for nothing.
    wide : bool
        Whether results may be beyond int8, and scales negative.

    Members
    -------
    value : In(signed(32))
    scale : In(32)
        float32 bits, or a multiplier; the highest counts with ``wide`` and a float32 alone.
    fixed : In(1)
        Whether the rounding is FIXED.
    power_shift : In(5)
        Then the result is multiplied by ``2 ** (FIXED_MOST_LEFT - power_shift)``.
    zero_point : In(signed(8))
        In the result's cycle.
    result : Out(signed(result_bits(wide)))
    """

    def __init__(self, *, deep: bool = False, fixed: bool = False, wide: bool = False) -> None:
        self._deep, self._fixed, self._wide = deep, fixed, wide
        self._whole_bits = WHOLE_BITS[wide]
        super().__init__(
            {
                "value": In(signed(32)),
                "scale": In(32),
                "fixed": In(1),
                "power_shift": In(5),
                "zero_point": In(signed(8)),
                "result": Out(signed(result_bits(wide))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        deep, whole_bits = self._deep, self._whole_bits

        def deeper(value: Value, name: str) -> Value:
            """A register that only a deep pipeline has."""
            return delayed(m, value, name) if deep else value

        latency = requantize_latency(deep)
        sign = self.value[-1]
        result_sign: Value = sign
        if self._wide:
            result_sign = sign ^ (self.scale[-1] & ~self.fixed)
        negative = delays(m, result_sign, "negative", latency)
        # The cycles of the rounding to 24 bits, of its result, and of the product's rounding.
        rounding = 5 if deep else 3
        rounded_in = rounding + deep
        product_in = rounded_in + 1 + (WIDE_LATENCY if deep else 1)
        scale = delays(m, self.scale[:31], "scale", rounded_in)[-1]
        fixed: list[Value] = [Const(0, 1)] * (latency + 1)
        shifts: list[Value] = [Const(0, 5)] * (rounded_in + 1)
        if self._fixed:
            fixed = delays(m, self.fixed, "fixed", latency)
            shifts = delays(m, self.power_shift, "power_shift", rounded_in)

        # 0: magnitude.
        absolute = Signal(32)
        m.d.comb += absolute.eq((self.value.as_unsigned() ^ sign.replicate(32)) + sign)
        magnitude = delayed(m, absolute, "magnitude")

        # 1, 2: shift left by 16, 8, 4, 2, 1 where that loses nothing.
        zeros: list[Value] = []
        normal: Value = magnitude
        over: Value = Const(0, 1)
        groups = ((16,), (8,), (4,), (2, 1)) if deep else ((16, 8), (4, 2, 1))
        for cycle, steps in enumerate(groups, 1):
            normal, taken, lost = self._normalize(m, normal, steps, fixed[cycle], shifts[cycle])
            normal = delayed(m, normal, f"normal{steps[-1]}")
            name = f"zeros{steps[-1]}"
            zeros = [delayed(m, Cat(*taken, *zeros), name)]
            if self._fixed:
                over = delayed(m, over | lost, f"over{steps[-1]}")

        # 3: value = mantissa * 2 ** (8 - zeros + carry).
        up = deeper(normal[7] & (normal[:7].any() | normal[8]), "up")
        rounded_value = Signal(MANTISSA_BITS + 1)
        m.d.comb += rounded_value.eq(deeper(normal[8:], "unrounded") + up)
        carry = delayed(m, rounded_value[-1] & ~fixed[rounded_in], "carry")
        top = rounded_value[-2] | rounded_value[-1]
        all_ones = deeper(over, "over").replicate(MANTISSA_BITS) if self._fixed else 0
        mantissa = delayed(m, Cat(rounded_value[: MANTISSA_BITS - 1], top) | all_ones, "mantissa")
        # How far left the rounded product goes to have its point above 25 bits: the product's
        # lowest bit is worth 2 ** (8 - zeros + carry + exponent - 150), and 23 or 24 bits are cut.
        place = scale[23:31] - deeper(zeros[0], "zeros") - 94
        upper_factor: Value = Const(1, 1)
        if self._fixed:
            upper_factor = Mux(fixed[rounded_in], scale[23:31], 1)
            place = Mux(fixed[rounded_in], self._place(shifts[rounded_in]), place)
        factor = delayed(m, Cat(scale[:23], upper_factor), "factor")
        left: Value = delayed(m, place, "left4")

        # 4: 24x24-bit product, 24x31 for both roundings.
        width = MANTISSA_BITS + len(factor)
        if deep:
            product = wide_product(m, mantissa, factor, width, "product")
        else:
            # In parts: synthesis would split the other operand too, and take twice the multipliers.
            upper = (mantissa * factor[FACTOR_PART:]) << FACTOR_PART if self._fixed else 0
            low = factor[:FACTOR_PART] if self._fixed else factor
            product = delayed(m, (mantissa * low + upper)[:width], "product")
        left = delayed(m, left + carry, "left5")
        left = delays(m, left, "left_beside", WIDE_LATENCY - 1 if deep else 0)[-1]

        # 5: round the product to 24 bits; a carry to 2**24 keeps its value.
        high = product[47] & ~fixed[product_in]
        upper = Mux(high, product[24:48], product[23:47])
        half = Mux(high, product[23], product[22])
        sticky = product[:22].any() | (high & product[22])
        rounds_up = half & (sticky | upper[0])
        if self._fixed:
            now = fixed[product_in]
            upper = Mux(now, product[MULTIPLIER_BITS:], upper)
            below = product[: MULTIPLIER_BITS - 1].any() | ~negative[product_in]
            rounds_up = Mux(now, product[MULTIPLIER_BITS - 1] & below, rounds_up)
        up = deeper(rounds_up, "product_up")
        rounded = delayed(m, deeper(upper, "upper") + up, "rounded")
        left = delayed(m, deeper(left + high, "left6"), "left_rounded")

        # 6: the float32 product is rounded * 2 ** (left - 25): with left above ``whole_bits`` at
        # least the cap (or zero), below 0 less than a half.  That of fixed point has any number of
        # zeros on its left.
        shift_in, placed_in = latency - 1 - deep, latency - 1
        point = MANTISSA_BITS + 1
        small = left < 0
        large = deeper((left > whole_bits) & ~fixed[shift_in], "large")
        nonzero = deeper(rounded[-2] | rounded[-1], "nonzero")
        most = 5 if self._fixed else whole_bits.bit_length()
        shifted = Mux(small, 0, rounded << left[:most])
        placed = Signal(point + whole_bits)
        m.d.comb += placed.eq(deeper(shifted[: len(placed)], "placed"))
        far = large & nonzero
        if self._fixed:
            far = far | deeper(shifted[len(placed) :], "beyond").any()
        whole = Signal(whole_bits)
        with m.If(far):
            m.d.comb += whole.eq(1 << (whole_bits - 1))
        with m.Else():
            m.d.comb += whole.eq(placed[point:])
        odd = placed[: point - 1].any() | placed[point] | fixed[placed_in]
        whole = delayed(m, whole, "whole")
        round_up = delayed(m, placed[point - 1] & odd & ~large, "round_up")

        # 7: -(w + u) = ~w + 1 - u.
        signed_whole = Signal(signed(whole_bits + 1))
        m.d.comb += [
            signed_whole.eq(Cat(whole, 0) ^ negative[-1].replicate(whole_bits + 1)),
            self.result.eq(signed_whole + self.zero_point + (negative[-1] ^ round_up)),
        ]
        return m

    def _normalize(
        self, m: Module, value: Value, steps: tuple[int, ...], fixed: Value, power_shift: Value
    ) -> tuple[Value, list[Value], Value]:
        """Shift left by each of ``steps`` that loses no bit; with ``fixed``, that is wanted too.

        Also which, the last one lowest, and whether one was wanted that would lose bits.
        """
        taken: list[Value] = []
        lost: Value = Const(0, 1)
        doubled = ~power_shift[3:].any()
        for bits in steps:
            empty = Signal(name=f"empty{bits}")
            m.d.comb += empty.eq(value[32 - bits :] == 0)
            take: Value = empty
            if self._fixed:
                wanted = {16: Const(0, 1), 8: Const(1, 1)}.get(bits)
                if wanted is None:
                    wanted = doubled & ~power_shift[bits.bit_length() - 1]
                take = empty & (wanted | ~fixed)
                lost = lost | (fixed & wanted & ~empty)
            following = Signal(32, name=f"shifted{bits}")
            m.d.comb += following.eq(Mux(take, value << bits, value))
            value = following
            taken.insert(0, take)
        return value, taken, lost

    @staticmethod
    def _place(power_shift: Value) -> Value:
        """Left shift of a rounded product of fixed point, as ``left4``."""
        most = MANTISSA_BITS + 1 + FIXED_MOST_LEFT
        return Mux(power_shift > FIXED_MOST_LEFT, most - power_shift, MANTISSA_BITS + 1)
