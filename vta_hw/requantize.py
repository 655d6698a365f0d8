"""The float32 requantisation of one lane, in integers."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .pipeline import delayed

__all__ = ["Requantize"]

MAGNITUDE_BITS = 9
"""Rounded magnitudes are capped at 511: with any zero point that is beyond every int8 limit."""


class Requantize(wiring.Component):
    """``rint(float32(value) * scale)``, capped to -511..511; see
    ``dovetail.isa.semantics.requantize``.

    Result ``LATENCY`` cycles after the operands, one a cycle.  By cycle: 0 magnitude; 1 shift left
    until the top bit is set; 2 round to 24 bits, half to even; 3 multiply the mantissas (24x24); 4
    round the product to 24 bits, half to even; 5 shift right to an integer; 6 round it, half to
    even.

    Exact for every int32 value and every positive, normal, finite scale.

    Members
    -------
    value : In(signed(32))
    scale : In(32)
        float32 bits; the sign is ignored.
    result : Out(signed(10))
    """

    LATENCY = 7

    value: In(signed(32))
    scale: In(32)
    result: Out(signed(MAGNITUDE_BITS + 1))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # 0: magnitude, and how far its top bit is from the top.
        absolute = Signal(32)
        m.d.comb += absolute.eq(Mux(self.value < 0, -self.value, self.value))
        magnitude = delayed(m, absolute, "magnitude")
        negative = delayed(m, self.value < 0, "negative1")
        scale = delayed(m, self.scale, "scale1")

        # 1: shift left by 16, 8, 4, 2, 1 where that loses nothing.
        shifted = magnitude
        zeros: list[Signal] = []
        for bits in (16, 8, 4, 2, 1):
            empty = Signal(name=f"empty{bits}")
            m.d.comb += empty.eq(shifted[32 - bits :] == 0)
            following = Signal(32, name=f"shifted{bits}")
            m.d.comb += following.eq(Mux(empty, shifted << bits, shifted))
            shifted = following
            zeros.insert(0, empty)
        normal = delayed(m, shifted, "normal")
        leading = delayed(m, Cat(*zeros), "leading")
        negative = delayed(m, negative, "negative2")
        scale = delayed(m, scale, "scale2")

        # 2: value = mantissa * 2 ** (8 - leading), mantissa of 24 bits (2**24 after a carry).
        up = normal[7] & (normal[:7].any() | normal[8])
        mantissa = delayed(m, normal[8:32] + up, "mantissa")
        factor = delayed(m, Cat(scale[:23], 1), "factor")
        # Exponent of the product's lowest bit: 8 - leading + scale_exponent - 127 - 23.
        exponent = delayed(m, scale[23:31] - leading - 142, "exponent3")
        negative = delayed(m, negative, "negative3")

        # 3: 25x24-bit product.
        product = delayed(m, mantissa * factor, "product")
        exponent = delayed(m, exponent, "exponent4")
        negative = delayed(m, negative, "negative4")

        # 4: round the product to 24 bits; a carry to 2**24 keeps its value.
        top = product[47] | product[48]
        upper = Signal(25)
        half, sticky = Signal(), Signal()
        m.d.comb += [
            upper.eq(Mux(top, product[24:49], product[23:47])),
            half.eq(Mux(top, product[23], product[22])),
            sticky.eq(product[:22].any() | (top & product[22])),
        ]
        rounded = delayed(m, upper + (half & (sticky | upper[0])), "rounded")
        # The float32 product is rounded * 2 ** -right.
        right = delayed(m, -(exponent + 23 + top), "right")
        negative = delayed(m, negative, "negative5")

        # 5: shift right, keeping the bit below and whether anything is below that.
        integer = Signal(25)
        below, rest = Signal(), Signal()
        amount = right[:5]
        ones = Signal(26)
        with m.If(right >= 26):
            m.d.comb += [integer.eq(0), below.eq(0), rest.eq(1)]
        with m.Elif(right <= 0):
            m.d.comb += integer.eq(Mux(rounded == 0, 0, (1 << 25) - 1))
        with m.Else():
            m.d.comb += [
                integer.eq(rounded >> amount),
                below.eq((Cat(0, rounded) >> amount)[0]),
                ones.eq((1 << amount) - 1),
                rest.eq((rounded & (ones >> 1)).any()),
            ]
        large = integer[MAGNITUDE_BITS:].any()
        whole = delayed(m, Mux(large, (1 << MAGNITUDE_BITS) - 1, integer[:MAGNITUDE_BITS]), "whole")
        round_up = delayed(m, ~large & below & (rest | integer[0]), "round_up")
        negative = delayed(m, negative, "negative6")

        # 6: round and restore the sign.
        size = Signal(MAGNITUDE_BITS)
        m.d.comb += size.eq(Mux(whole.all(), whole, whole + round_up))
        m.d.sync += self.result.eq(Mux(negative, -size, size))
        return m
