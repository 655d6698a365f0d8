"""One lane of the vector unit: multiply, fold, finish.

Cycles count from the issue of an element: 0 read, 1 word arrives, 2 multiply, 3 fold, then for a
reduction's last element 4 add the bias or shift, 5 to 11 requantise, 12 zero point and limits, 13
table.
"""

from amaranth.hdl import Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from dovetail.isa.instructions import Finish, Fold, Multiplier

from .pipeline import delayed, delays
from .requantize import Requantize

__all__ = ["FINISHED", "FOLDED", "LOOKED_UP", "PARAMETERS_READ", "VectorLane"]

FOLDED = 4
"""Cycle in which the folded value is in its register."""
PARAMETERS_READ = FOLDED - 1
"""Cycle in which PAR is read, for use in cycle ``FOLDED``."""
FINISHED = FOLDED + 1 + Requantize.LATENCY + 1
"""Cycle in which the finished value is in its register."""
LOOKED_UP = FINISHED + 1
"""Cycle in which the table's answer has arrived, and the result is written."""


class VectorLane(wiring.Component):
    """Multiply and fold one element a cycle; finish each folded value.

    Members
    -------
    element : In(signed(32)), tap : In(signed(8))
        Cycle 1.
    index_zero, index_odd : In(1)
        Of level 0; cycle 2.
    valid, begins : In(1)
        Whether there is an element, and it is its reduction's first; cycle 3.
    bias : In(signed(32)), scale : In(32)
        Cycle 4.
    finished : Out(signed(32))
        Cycle ``FINISHED``.
    """

    element: In(signed(32))
    tap: In(signed(8))
    index_zero: In(1)
    index_odd: In(1)
    valid: In(1)
    begins: In(1)
    bias: In(signed(32))
    scale: In(32)
    is_mac: In(1)
    multiplier: In(2)
    m0: In(signed(24))
    m1: In(signed(24))
    fold: In(3)
    shift_finish: In(1)
    requantize_finish: In(1)
    shift: In(5)
    requantized: In(1)
    limited: In(1)
    zero_point: In(signed(8))
    low: In(signed(8))
    high: In(signed(8))
    finished: Out(signed(32))

    def configure(self, m: Module, now: list[Value]) -> None:
        """Give the lane the settings of the instruction in each cycle; ``now[k]`` is that in cycle
        ``k``.
        """
        last = FINISHED - 1
        m.d.comb += [
            self.multiplier.eq(now[2].multiplier),
            self.m0.eq(now[2].m0),
            self.m1.eq(now[2].m1),
            self.is_mac.eq(now[2].fold == Fold.MAC),
            self.fold.eq(now[3].fold),
            self.requantize_finish.eq(now[FOLDED].finish == Finish.REQUANTIZE),
            self.shift_finish.eq(now[FOLDED].finish == Finish.SHIFT),
            self.shift.eq(now[FOLDED].shift),
            self.requantized.eq(now[last].finish == Finish.REQUANTIZE),
            self.limited.eq((now[last].finish == Finish.REQUANTIZE) | ~now[last].destination),
            self.zero_point.eq(now[last].zero_point),
            self.low.eq(now[last].low),
            self.high.eq(now[last].high),
        ]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # 2: multiply.
        element = delayed(m, self.element, "element2")
        tap = delayed(m, self.tap, "tap2")
        before = delayed(m, element, "before")
        factor = Signal(signed(24))
        with m.Switch(self.multiplier):
            with m.Case(Multiplier.TAP):
                m.d.comb += factor.eq(tap)
            with m.Case(Multiplier.IMMEDIATE):
                m.d.comb += factor.eq(Mux(self.index_zero, self.m0, self.m1))
            with m.Default():
                m.d.comb += factor.eq(Mux(self.index_odd, before[:24].as_signed(), 0))
        product = delayed(m, element[:16].as_signed() * factor, "product")
        plain = delayed(m, element, "element3")
        is_mac = delayed(m, self.is_mac, "is_mac3")

        # 3: fold.
        value = Signal(signed(32))
        m.d.comb += value.eq(Mux(is_mac, product, plain))
        folded = Signal(signed(32), reset_less=True)
        smaller = value < folded
        with m.If(self.valid):
            with m.If(self.begins):
                m.d.sync += folded.eq(value)
            with m.Else(), m.Switch(self.fold):
                with m.Case(Fold.SUB):
                    m.d.sync += folded.eq(folded - value)
                with m.Case(Fold.MAX):
                    m.d.sync += folded.eq(Mux(smaller, folded, value))
                with m.Case(Fold.MIN):
                    m.d.sync += folded.eq(Mux(smaller, value, folded))
                with m.Default():
                    m.d.sync += folded.eq(folded + value)

        # 4: bias, or shift half up.
        total = Signal(signed(32), reset_less=True)
        half = Signal(31)
        m.d.comb += half.eq((1 << self.shift) >> 1)
        with m.If(self.requantize_finish):
            m.d.sync += total.eq(folded + self.bias)
        with m.Elif(self.shift_finish):
            m.d.sync += total.eq((folded + half) >> self.shift)
        with m.Else():
            m.d.sync += total.eq(folded)
        scale = delayed(m, self.scale, "scale5")

        # 5 to 11: requantise.
        m.submodules.requantize = requantize = Requantize()
        m.d.comb += [requantize.value.eq(total), requantize.scale.eq(scale)]
        kept = delays(m, total, "total", Requantize.LATENCY)[-1]

        # 12: zero point, limits.
        moved = Signal(signed(32))
        m.d.comb += moved.eq(Mux(self.requantized, requantize.result + self.zero_point, kept))
        with m.If(self.limited & (moved < self.low)):
            m.d.sync += self.finished.eq(self.low)
        with m.Elif(self.limited & (moved > self.high)):
            m.d.sync += self.finished.eq(self.high)
        with m.Else():
            m.d.sync += self.finished.eq(moved)
        return m
