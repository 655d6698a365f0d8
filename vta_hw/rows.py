"""The parameters of rows: the largest of all lanes or their sum, a scale over that or its root."""

from collections.abc import Callable, Sequence

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from dovetail.isa.instructions import Row

from .pipeline import delayed, delays
from .root_scale import MANTISSA_BITS, ROOT_LATENCY, RootScale

__all__ = ["ROW_LATENCY", "RowParameters"]

BIASED_ONE = 127
LANES_AT_ONCE = 4
"""Lanes whose sum and largest are found in the first cycle."""
DIGITS = ((5, 5, 4, 4, 4, 4), (6, 5, 5, 5, 5))
"""Digits of the quotient in each cycle of the division: 24, one to round by, one for a first 0.  In
turns there is a cycle less for it.
"""
ROW_LATENCY = 11
"""Cycles from the lanes, of the last turn, to the parameters."""


class RowParameters(wiring.Component):
    """Parameters that VECTOR's ``row`` writes to PAR, by the formulas of ``dovetail.isa.rows``.

    Lanes in cycle ``t``, parameters ``ROW_LATENCY`` later, one row a cycle, or in each ``turns``.
    By cycle: 0 and 1 add all lanes and what the sum begins with, and compare them; with several
    turns 2 adds and compares these; then two cycles shift the sum left until its top bit is set;
    one rounds it to 24 bits; the rest divide the mantissas, digit by digit; the quotient is rounded
    behind the last registers.  Beside the last two of these ``RootScale`` scales by the sum's root.

    Members
    -------
    lanes : In(array of signed(32))
        Those of one turn.
    first : In(1)
        Whether it is the first turn; in the cycle of the lanes.
    bias : In(signed(32)), scale : In(32)
        Lane 0's of PAR, in the cycle of the lanes of the first turn.
    row : In(Row), largest : In(1), start : In(signed(24)), shift : In(5)
        The instruction's ``row``, whether it is the largest lane's, ``m1`` and ``shift``; in the
        cycle of the lanes.
    row_bias : Out(32), row_scale : Out(32)
    """

    def __init__(self, lanes: int, turns: int = 1) -> None:
        self._turns = turns
        self._digits = DIGITS[turns > 1]
        super().__init__(
            {
                "lanes": In(data.ArrayLayout(signed(32), lanes)),
                "first": In(1),
                "bias": In(signed(32)),
                "scale": In(32),
                "row": In(2),
                "largest": In(1),
                "start": In(signed(24)),
                "shift": In(5),
                "row_bias": Out(32),
                "row_scale": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # 0, 1: all lanes.
        sums = _gathered(m, list(self.lanes), lambda a, b: (a + b)[:32], "sum")
        more = Signal(signed(32))
        with m.Switch(Mux(self.first, self.row, Row.NONE)):
            with m.Case(Row.OVER):
                m.d.comb += more.eq(self.bias)
            with m.Case(Row.ROOT):
                m.d.comb += more.eq(self.start)
            with m.Default():
                m.d.comb += more.eq(0)
        more = delayed(m, more, "more1")
        total = delayed(m, _folded([*sums, more], lambda a, b: (a + b)[:32]), "total")
        bytes_ = [lane[:8].as_signed() for lane in self.lanes]
        most = delayed(m, _folded(_gathered(m, bytes_, _larger, "most"), _larger), "most")
        if self._turns > 1:
            first = delays(m, self.first, "first", 2)[-1]
            all_before, most_before = Signal(32), Signal(signed(8))
            m.d.sync += [
                all_before.eq(Mux(first, 0, all_before) + total),
                most_before.eq(Mux(first, most, _larger(most_before, most))),
            ]
            total, most = all_before, most_before
        summed = 2 + (self._turns > 1)
        row = delays(m, self.row, "row", ROW_LATENCY)
        largest = delays(m, self.largest, "largest", summed)[-1]
        held_scale, held_bias = Signal(31, reset_less=True), Signal(32, reset_less=True)
        with m.If(self.first):
            m.d.sync += [held_scale.eq(self.scale), held_bias.eq(self.bias)]
        self._bias(m, total, most, delays(m, held_bias, "bias", summed - 1)[-1], summed, largest)
        # That of LESS: of the largest lane it is 1.
        scale = delays(m, held_scale, "scale", summed - 1)[-1]
        scale = Mux(largest, BIASED_ONE << (MANTISSA_BITS - 1), scale)[:31]
        scale = delays(m, scale, "scale_beside", 2)[-1]

        # Shift left by 16, 8, 4, 2, 1 where that loses nothing.
        positive = ~total[-1] & total.any()
        normal, zeros = _normalised(Mux(positive, total, 1), (16, 8))
        normal, zeros = delayed(m, normal, "normal8"), [delayed(m, Cat(*zeros), "zeros8")]
        normal, lower = _normalised(normal, (4, 2, 1))
        normal = delayed(m, normal, "normal1")
        places = delayed(m, Cat(*lower, *zeros), "zeros1")

        m.submodules.over_root = root = RootScale()
        after = ROW_LATENCY - summed - 2
        m.d.comb += [
            root.normal.eq(normal),
            root.places.eq(places),
            root.scale.eq(scale),
            root.shift.eq(delays(m, self.shift, "shift", summed + 2)[-1]),
        ]
        plain = delays(m, scale, "plain", ROOT_LATENCY)[-1]
        rooted = Mux(row[summed + 2 + ROOT_LATENCY] == Row.ROOT, root.result, plain)
        rooted = delays(m, rooted, "rooted", after - ROOT_LATENCY)[-1]
        over = self._over(m, normal, places, scale, after)
        m.d.comb += self.row_scale.eq(Mux(row[-1] == Row.OVER, over, rooted))
        return m

    def _bias(
        self, m: Module, total: Value, most: Value, kept: Value, summed: int, largest: Value
    ) -> None:
        """The bias, from the cycle of the sum on."""
        row = delays(m, self.row, "row_bias", summed)[-1]
        start = delays(m, self.start, "start", summed)[-1].as_signed()
        less = Mux(row == Row.LESS, Mux(largest, most, total.as_signed()), 0)
        bias = Mux(row == Row.ROOT, kept, (start - less)[:32])
        m.d.comb += self.row_bias.eq(delays(m, bias, "biases", ROW_LATENCY - summed)[-1])

    def _over(self, m: Module, normal: Value, places: Value, scale: Value, cycles: int) -> Value:
        """``scale`` over the sum, which is shifted left by ``places``; ``cycles`` later."""
        # Round to 24 bits; the value is divisor * 2 ** (8 - places + carry).
        up = normal[7] & (normal[:7].any() | normal[8])
        rounded = Signal(MANTISSA_BITS + 1)
        m.d.comb += rounded.eq(normal[8:] + up)
        carry = rounded[-1]
        divisor = delayed(m, Cat(rounded[:-2], rounded[-2] | carry), "divisor")
        scale = delayed(m, scale, "dividend")
        steps = len(self._digits)
        assert 1 + steps == cycles
        exponent = Signal(signed(10))
        m.d.comb += exponent.eq(
            scale[23:] + delayed(m, places - carry, "places").as_signed() - (158 - BIASED_ONE)
        )
        exponent = delays(m, exponent, "exponent", steps)[-1].as_signed()
        some = delays(m, scale[23:].any(), "some", steps)[-1]

        # Divide.
        quotient = self._divide(m, Cat(scale[:23], Const(1, 1)), divisor)
        less = ~quotient[-1]
        twice = Mux(less, quotient[:-1], quotient[1:])
        mantissa = (twice + 1)[1:]
        power = Signal(signed(10))
        m.d.comb += power.eq(exponent - less)
        return Mux(some & (power > 0), Cat(mantissa[: MANTISSA_BITS - 1], power[:8]), 0)

    def _divide(self, m: Module, dividend: Value, divisor: Value) -> Value:
        """Digits of ``dividend / divisor``, the first of which is 1 or followed by a 1."""
        rest, found = dividend, Const(0, 0)
        for cycle, count in enumerate(self._digits):
            digits: list[Value] = []
            for place in range(count):
                name = f"{cycle}_{place}"
                difference = Signal(MANTISSA_BITS + 2, name=f"difference{name}")
                m.d.comb += difference.eq(rest - divisor)
                digit = ~difference[-1]
                left = Signal(MANTISSA_BITS + 1, name=f"left{name}")
                m.d.comb += left.eq(Mux(digit, difference, rest) << 1)
                digits.insert(0, digit)
                rest = left
            rest = delayed(m, rest, f"rest{cycle}")
            found = delayed(m, Cat(*digits, found), f"quotient{cycle}")
            divisor = delayed(m, divisor, f"divisor{cycle}")
        return found


Combine = Callable[[Value, Value], Value]


def _gathered(m: Module, values: Sequence[Value], combine: Combine, name: str) -> list[Value]:
    """Each ``LANES_AT_ONCE`` values combined, a cycle later."""
    groups = [values[k : k + LANES_AT_ONCE] for k in range(0, len(values), LANES_AT_ONCE)]
    return [delayed(m, _folded(group, combine), f"{name}{k}") for k, group in enumerate(groups)]


def _folded(values: Sequence[Value], combine: Combine) -> Value:
    """All of them combined, as a tree."""
    while len(values) > 1:
        pairs = [values[k : k + 2] for k in range(0, len(values), 2)]
        values = [combine(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return values[0]


def _larger(a: Value, b: Value) -> Value:
    a, b = a.as_signed(), b.as_signed()
    return Mux(a > b, a, b).as_signed()


def _normalised(value: Value, steps: Sequence[int]) -> tuple[Value, list[Value]]:
    """``value`` shifted left by each of ``steps`` that loses none of 32 bits; also which, the last
    one lowest.
    """
    taken: list[Value] = []
    for bits in steps:
        empty = ~value[32 - bits :].any()
        value = Mux(empty, value << bits, value)[:32]
        taken.insert(0, empty)
    return value, taken
