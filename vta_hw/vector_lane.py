"""One lane of the vector unit: multiply, fold, finish.

Cycles count from the issue of an element: 0 read, 1 word arrives, 2 multiply, 3 fold; then for a
reduction's last element 4 add the bias, or half a unit before a shift; 5 to 12 requantise, while 5
shifts; 12 limits; 13 table.
"""

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from dovetail.isa.instructions import Fold, Multiplier

from .pipeline import delayed, delays
from .requantize import RESULT_BITS, Requantize

__all__ = ["FINISHED", "FOLDED", "LIMITED", "LOOKED_UP", "PARAMETERS_READ", "VectorLane"]

FOLDED = 4
"""Cycle in which the folded value is in its register."""
PARAMETERS_READ = FOLDED - 2
"""Cycle in which PAR is read: its word is in a register in cycle ``FOLDED``."""
LIMITED = FOLDED + 1 + Requantize.LATENCY
"""Cycle in which the zero point is added, and the limits applied."""
FINISHED = LIMITED + 1
"""Cycle in which the finished value is in its register."""
LOOKED_UP = FINISHED + 1
"""Cycle in which the table's answer has arrived, and the result is written."""


class VectorLane(wiring.Component):
    """Multiply and fold one element a cycle; finish each folded value.

    A window adds each element to three sums: that of its own column, and those of the next two,
    which wait until their columns begin.

    Resources: a 16x24, a 24x24 and two 8x10 multipliers.

    Members
    -------
    act : In(signed(8)), acc : In(signed(32)), from_acc : In(1), tap : In(signed(8))
        The element is that of ACC or of ACT; cycle 1.
    tap_before, tap_second_before : In(signed(8)), offset : In(signed(9))
        Taps for the sums of the next column and the one after it, and what is added to all three;
        cycle 1.
    multiplier : In(2), immediate : In(signed(24)), index_odd : In(1)
        Where the multiplier comes from, the immediate one for this element, and whether the
        level-0 index is odd; cycle 1.
    is_mac, begins, slides : In(1), fold : In(3)
        Whether products are folded, whether this is its sum's first element, whether that sum goes
        on from what the columns before gave, and how to fold; cycle 3.
    bias : In(signed(32)), scale : In(32)
        Cycle 3.
    half : In(31), shift : In(5)
        What is added before a shift, and the shift (both 0 for none); cycles 4, 5.
    requantized, limited : In(1), zero_point, low, high : In(signed(8))
        Whether the result is the requantised value, whether it has limits, and these; cycle 12.
    finished : Out(signed(32))
        Cycle ``FINISHED``.
    """

    act: In(signed(8))
    acc: In(signed(32))
    from_acc: In(1)
    tap: In(signed(8))
    tap_before: In(signed(8))
    tap_second_before: In(signed(8))
    offset: In(signed(9))
    multiplier: In(2)
    immediate: In(signed(24))
    index_odd: In(1)
    is_mac: In(1)
    begins: In(1)
    slides: In(1)
    fold: In(3)
    bias: In(signed(32))
    scale: In(32)
    half: In(31)
    shift: In(5)
    requantized: In(1)
    limited: In(1)
    zero_point: In(signed(8))
    low: In(signed(8))
    high: In(signed(8))
    finished: Out(signed(32))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # 1: choose the multiplier; what is in the element's register now is the element before.
        element = Signal(signed(32), name="element2", reset_less=True)
        m.d.sync += element.eq(Mux(self.from_acc, self.acc, _extended(self.act, 32)))
        chosen = Signal(signed(24))
        narrow = Signal()
        with m.Switch(self.multiplier):
            with m.Case(Multiplier.TAP, Multiplier.WINDOW):
                m.d.comb += chosen.eq(_extended(self.tap + self.offset, 24))
            with m.Case(Multiplier.IMMEDIATE):
                m.d.comb += chosen.eq(self.immediate)
            with m.Default():
                m.d.comb += chosen.eq(Mux(self.index_odd, element[:24].as_signed(), 0))
        m.d.comb += narrow.eq(self.multiplier == Multiplier.WINDOW)
        factor = delayed(m, chosen, "factor2")
        before = delayed(m, self.tap_before + self.offset, "before2")
        second = delayed(m, self.tap_second_before + self.offset, "second2")

        # 2: multiply.
        low = element[:8].as_signed()
        multiplied = Mux(delayed(m, narrow, "narrow2"), low, element[:16].as_signed())
        product = delayed(m, (multiplied * factor)[:32], "product")
        product_before = delayed(m, low * before, "product_before")
        product_second = delayed(m, low * second, "product_second")
        plain = delayed(m, element, "element3")

        # 3: fold.  The elements of a reduction come in consecutive cycles.
        value = Signal(signed(32))
        m.d.comb += value.eq(Mux(self.is_mac, product, plain))
        folded = Signal(signed(32), reset_less=True)
        # What later columns get of the elements so far: the next one, and the one after it.
        following = Signal(signed(32), reset_less=True)
        second_following = Signal(signed(32), reset_less=True)
        handed = Mux(self.slides, following, 0)
        handed_second = Mux(self.slides, second_following, 0)
        with m.If(self.begins):
            m.d.sync += following.eq(handed_second + product_before)
            m.d.sync += second_following.eq(product_second)
        with m.Else():
            m.d.sync += following.eq(following + product_before)
            m.d.sync += second_following.eq(second_following + product_second)
        smaller = value < folded
        with m.If(self.begins):
            m.d.sync += folded.eq(handed + value)
        with m.Else(), m.Switch(self.fold):
            with m.Case(Fold.SUB):
                m.d.sync += folded.eq(folded - value)
            with m.Case(Fold.MAX):
                m.d.sync += folded.eq(Mux(smaller, folded, value))
            with m.Case(Fold.MIN):
                m.d.sync += folded.eq(Mux(smaller, value, folded))
            with m.Default():
                m.d.sync += folded.eq(folded + value)
        bias = delayed(m, self.bias, "bias4")
        scale = delayed(m, self.scale, "scale4")

        # 4 to 12: requantise.
        m.submodules.requantize = requantize = Requantize()
        total = Signal(signed(32), reset_less=True)
        m.d.sync += total.eq(folded + bias)
        m.d.comb += [
            requantize.value.eq(total),
            requantize.scale.eq(delayed(m, scale, "scale5")),
            requantize.zero_point.eq(self.zero_point),
        ]

        # 4, 5: shift, half up; then wait.
        raised = delayed(m, folded + self.half, "raised")
        shifted = delayed(m, (raised >> self.shift)[:32].as_signed(), "shifted")
        waiting = delays(m, shifted, "waiting", LIMITED - FOLDED - 2)
        # Before the limits: capped to the width of a requantised value.
        before, cap = waiting[-2], (1 << (RESULT_BITS - 1)) - 1
        capped = Signal(signed(RESULT_BITS), reset_less=True)
        with m.If(before > cap):
            m.d.sync += capped.eq(cap)
        with m.Elif(before < ~cap):
            m.d.sync += capped.eq(~cap)
        with m.Else():
            m.d.sync += capped.eq(before)

        # 12: limits.
        near, clipped = Signal(signed(RESULT_BITS)), Signal(signed(8))
        m.d.comb += near.eq(Mux(self.requantized, requantize.result, capped))
        with m.If(near < self.low):
            m.d.comb += clipped.eq(self.low)
        with m.Elif(near > self.high):
            m.d.comb += clipped.eq(self.high)
        with m.Else():
            m.d.comb += clipped.eq(near[:8])
        result = Mux(self.limited, _extended(clipped, 32), waiting[-1])
        m.d.comb += self.finished.eq(delayed(m, result.as_signed(), "finished13"))
        return m


def _extended(value: Value, bits: int) -> Value:
    """``value`` with its sign in all upper bits: a choice, which simulates faster than copies."""
    upper = bits - len(value)
    return Cat(value, Mux(value[-1], (1 << upper) - 1, 0)[:upper]).as_signed()
