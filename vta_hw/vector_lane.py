"""One lane of the vector unit: multiply, fold, finish."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from dovetail.isa.entry_points import ExtensionError
from dovetail.isa.finishes import OwnFinish
from dovetail.isa.frozen import frozen
from dovetail.isa.instructions import Multiplier
from dovetail.isa.requantize import FIXED_BIAS_BITS

from .multiply import ADDERS_LATENCY, WIDE_LATENCY, product_of_adders, wide_product
from .pipeline import delayed, delays
from .requantize import Requantize, requantize_latency, result_bits

__all__ = ["LaneCycles", "VectorLane", "lane_cycles"]

PAIR_BITS = 24
"""Bits of an element that another one is multiplied with."""


@frozen
class LaneCycles:
    """When a lane does what, in cycles from the issue of an element.

    arrived: its word is at hand.  chosen: its multiplier is chosen.  multiplied: its product is in
    a register, and folded.  Then, for a reduction's last element: folded: the sum is in a register,
    the bias is added; limited: the zero point is added; compared, clipped: the limits are compared
    with, and applied; finished: the finished value is in its register, and is looked up in a table.
    """

    arrived: int
    chosen: int
    multiplied: int
    folded: int
    limited: int
    compared: int
    clipped: int
    finished: int


def lane_cycles(deep: bool, arrived: int) -> LaneCycles:
    """The cycles of a lane whose words come in cycle ``arrived``."""
    chosen = arrived + deep
    multiplied = chosen + (WIDE_LATENCY + 2 if deep else 2)
    folded = multiplied + 1
    limited = folded + 1 + requantize_latency(deep)
    compared = limited + deep
    clipped = compared + deep
    return LaneCycles(
        arrived, chosen, multiplied, folded, limited, compared, clipped, finished=clipped + 1
    )


class VectorLane(wiring.Component):
    """Multiply and fold one element a cycle; finish each folded value.

    A window adds each element to three sums: that of its own column, and those of the next two,
    which wait until their columns begin.

    Resources: a 16x24, a 24x24 (24x31 with ``fixed_rounding``) and two 8x10 multipliers; in a deep
    pipeline two 18x18 multipliers and adders.

    Parameters
    ----------
    cycles : LaneCycles
    deep : bool
        As ``HardwareConfig.deep_pipelines``.
    fixed_rounding : bool
        As ``HardwareConfig.fixed_rounding``.
    own_finish : OwnFinish | None
        As ``HardwareConfig.own_finish``.
    wide : bool
        Whether a requantised value may be beyond int8.
    turns : int
        Lanes of the unit that this one does in turn, one a cycle.

    Members
    -------
    act : In(signed(8)), acc : In(signed(32)), from_acc : In(1), tap : In(signed(8))
        The element is that of ACC or of ACT; cycle ``arrived``.
    tap_before, tap_second_before : In(signed(8))
        Taps for the sums of the next column and the one after it; cycle ``arrived``.
    offset : In(signed(9))
        What is added to all three taps; cycle ``chosen``.
    raised : In(signed(9))
        What is added to the element, where it is one of a pair; cycle ``chosen``.
    multiplier : In(2), immediate : In(signed(24)), index_odd : In(1)
        Where the multiplier comes from, the immediate one for this element, and whether the
        level-0 index is odd; cycle ``chosen``.
    is_mac : In(1)
        Whether products are folded; cycle ``multiplied``, of a deep pipeline the one before.
    goes_on, column_goes_on, handed : In(1)
        Whether this is not its sum's first element, nor its column's, and whether it is the first
        of one that goes on from the columns before; cycle ``multiplied``.
    subtracts, compares, smallest : In(1)
        Whether the element is subtracted from the sum, and whether it is compared with it instead,
        and the smaller kept; cycle ``multiplied``.
    bias : In(signed(32)), scale : In(32), fixed : In(1)
        Bits of PAR, and whether they are those of the rounding FIXED; cycle ``folded - 1``.
    half : In(31), shift : In(5)
        What is added before a shift, and the shift (both 0 for none); cycles ``folded`` and the
        next one.
    requantized : In(1), zero_point : In(signed(8))
        Whether the result is the requantised value; cycle ``limited``.
    low, high : In(signed(8)), low_clip, high_clip : In(signed(8))
        The limits; cycles ``compared`` and ``clipped``.
    limited : In(1)
        Whether there are limits; cycle ``clipped``.
    keeps_wide : In(1)
        Whether, without limits, the result is the requantised value; cycle ``clipped``.
    sum : Out(signed(32))
        The folded value; cycle ``folded``.
    finished : Out(signed(32))
        Cycle ``finished``.

    With an own finish there are two more inputs, ``operand`` (5 bits, cycle ``folded``), which is
    the finish's, and ``own`` (1 bit, cycle ``limited - 2``): whether its result is taken.
    """

    act: In(signed(8))
    acc: In(signed(32))
    from_acc: In(1)
    tap: In(signed(8))
    tap_before: In(signed(8))
    tap_second_before: In(signed(8))
    offset: In(signed(9))
    raised: In(signed(9))
    multiplier: In(2)
    immediate: In(signed(24))
    index_odd: In(1)
    is_mac: In(1)
    goes_on: In(1)
    column_goes_on: In(1)
    handed: In(1)
    subtracts: In(1)
    compares: In(1)
    smallest: In(1)
    bias: In(signed(32))
    scale: In(32)
    fixed: In(1)
    half: In(31)
    shift: In(5)
    requantized: In(1)
    zero_point: In(signed(8))
    low: In(signed(8))
    high: In(signed(8))
    low_clip: In(signed(8))
    high_clip: In(signed(8))
    limited: In(1)
    keeps_wide: In(1)
    sum: Out(signed(32))
    finished: Out(signed(32))

    def __init__(
        self,
        cycles: LaneCycles,
        *,
        deep: bool,
        turns: int,
        fixed_rounding: bool,
        own_finish: OwnFinish | None,
        wide: bool,
    ) -> None:
        self._cycles, self._deep, self._turns, self._wide = cycles, deep, turns, wide
        self._fixed_rounding, self._own_finish = fixed_rounding, own_finish
        self.operand, self.own = Signal(5), Signal()
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        early, before, second = self._multiply(m)
        value = delayed(m, early, "value") if self._deep else early
        folded = self._fold(m, value, early, before, second)
        m.d.comb += self.sum.eq(folded)
        self._finish(m, folded)
        return m

    def _multiply(self, m: Module) -> tuple[Value, Value, Value]:
        """The element or its product, and its products for the next two columns, to be folded; of a
        deep pipeline, the first a cycle early.
        """
        deep = self._deep
        element = Mux(self.from_acc, self.acc, _extended(self.act, 32)).as_signed()
        taps: list[Value] = [self.tap, self.tap_before, self.tap_second_before]
        if deep:
            element = delayed(m, element, "element1")
            taps = [delayed(m, tap, f"tap{k}") for k, tap in enumerate(taps)]

        # Only the low bits of an element are multiplied with another.
        low = (element[:PAIR_BITS].as_signed() + self.raised)[:PAIR_BITS]
        element = Cat(low, element[PAIR_BITS:]).as_signed()
        # Choose the multiplier; the lane's element before this one is ``turns`` cycles back.
        earlier = delays(m, element, "element2", self._turns)
        chosen = Signal(signed(24))
        with m.Switch(self.multiplier):
            with m.Case(Multiplier.TAP, Multiplier.WINDOW):
                m.d.comb += chosen.eq(_extended(taps[0] + self.offset, 24))
            with m.Case(Multiplier.IMMEDIATE):
                m.d.comb += chosen.eq(self.immediate)
            with m.Default():
                m.d.comb += chosen.eq(Mux(self.index_odd, earlier[-1][:PAIR_BITS].as_signed(), 0))
        narrow = self.multiplier == Multiplier.WINDOW
        factor = delayed(m, chosen, "factor2")
        beside = [delayed(m, tap + self.offset, f"beside{k}") for k, tap in enumerate(taps[1:])]

        # Multiply.
        if not deep:
            element = earlier[1].as_signed()
            low = element[:8].as_signed()
            multiplied = Mux(delayed(m, narrow, "narrow2"), low, element[:16].as_signed())
            product = delayed(m, (multiplied * factor)[:32].as_signed(), "product")
            before, second = (
                delayed(m, low * tap, f"beside_product{k}") for k, tap in enumerate(beside)
            )
            plain = delayed(m, element, "element3")
            return Mux(self.is_mac, product, plain), before, second
        low = element[:8].as_signed()
        multiplied = delayed(m, Mux(narrow, low, element[:16].as_signed()), "multiplied")
        product = wide_product(m, multiplied, factor, 32, "product").as_signed()
        low = delayed(m, low, "low")
        wait = WIDE_LATENCY + 1 - ADDERS_LATENCY
        before, second = (
            delays(m, product_of_adders(m, low, tap, 18, f"b{k}"), f"beside_product{k}", wait)[-1]
            for k, tap in enumerate(beside)
        )
        plain = delays(m, element, "plain", 1 + WIDE_LATENCY)[-1]
        return Mux(self.is_mac, product, plain), before.as_signed(), second.as_signed()

    def _fold(self, m: Module, value: Value, early: Value, before: Value, second: Value) -> Value:
        """Fold; the elements of a reduction come every ``turns`` cycles.

        early: in a deep pipeline, the value of the next cycle.
        """

        def state(name: str) -> tuple[Signal, Value]:
            """A register, and its value for this lane's element."""
            newest = Signal(signed(32), name=name, reset_less=True)
            return newest, delays(m, newest, f"{name}_waits", self._turns - 1)[-1].as_signed()

        folded, sum_before = state("folded")
        # What later columns get of the elements so far: the next one, and the one after it.
        following, following_before = state("following")
        second_following, second_before = state("second_following")

        def begun(own: Value, goes_on: Value, next_one: Value) -> Value:
            """Sum before this element: the lane's own, one that was handed to it, or 0."""
            kept = own.as_unsigned() & goes_on.replicate(32)
            return (kept | next_one.as_unsigned() & self.handed.replicate(32)).as_signed()

        addend = value.as_unsigned() ^ self.subtracts.replicate(32)
        added = (begun(sum_before, self.goes_on, following_before) + addend + self.subtracts)[:32]
        smaller = value < sum_before
        if self._deep and self._turns > 1:
            # Element and sum are known a cycle earlier.
            waits = delays(m, folded, "folded_early", self._turns - 2)[-1]
            smaller = delayed(m, early < waits.as_signed(), "smaller")
        keeps = smaller ^ self.smallest
        with m.If(self.compares):
            m.d.sync += folded.eq(Mux(keeps, sum_before, value))
        with m.Else():
            m.d.sync += folded.eq(added)
        m.d.sync += [
            following.eq(begun(following_before, self.column_goes_on, second_before) + before),
            second_following.eq(Mux(self.column_goes_on, second_before, 0) + second),
        ]
        return folded

    def _finish(self, m: Module, folded: Value) -> None:
        """Add the bias and requantise; in parallel shift, half up; then limit."""
        deep, cycles = self._deep, self._cycles
        m.submodules.requantize = requantize = Requantize(
            deep=deep, fixed=self._fixed_rounding, wide=self._wide
        )
        bias: Value = self.bias
        if self._fixed_rounding:
            # The upper bits are not the bias's then.
            upper = bias[FIXED_BIAS_BITS:]
            extension = bias[FIXED_BIAS_BITS - 1].replicate(len(upper))
            bias = Cat(bias[:FIXED_BIAS_BITS], Mux(self.fixed, extension, upper)).as_signed()
            m.d.comb += [
                requantize.fixed.eq(delays(m, self.fixed, "fixed4", 2)[-1]),
                requantize.power_shift.eq(delays(m, upper, "power_shift4", 2)[-1]),
            ]
        bias = delayed(m, bias, "bias4")
        scale = delays(m, self.scale, "scale4", 2)[-1]
        m.d.comb += [
            requantize.value.eq(delayed(m, (folded + bias)[:32], "total")),
            requantize.scale.eq(scale),
            requantize.zero_point.eq(self.zero_point),
        ]
        raised = delayed(m, folded + self.half, "raised")
        if deep:
            raised = delayed(m, raised >> (self.shift & 0x18), "coarse")
            shift = delayed(m, self.shift[:3], "fine")
        else:
            shift = self.shift
        shifted = delayed(m, (raised >> shift)[:32].as_signed(), "shifted")
        wait = cycles.clipped - cycles.folded - 2 - deep
        waiting = delays(m, shifted, "waiting", wait)
        # Before the limits: capped to the width of a requantised value.
        uncapped, last = waiting[cycles.limited - cycles.folded - 3 - deep], waiting[-1]
        if self._own_finish:
            shifted = waiting[cycles.limited - cycles.folded - 4 - deep]
            uncapped = self._own(m, self._own_finish, folded, shifted)
            last = delays(m, uncapped, "uncapped", cycles.clipped - cycles.limited + 1)[-1]
        bits = result_bits(self._wide)
        cap = (1 << (bits - 1)) - 1
        capped = Signal(signed(bits), reset_less=True)
        with m.If(uncapped > cap):
            m.d.sync += capped.eq(cap)
        with m.Elif(uncapped < ~cap):
            m.d.sync += capped.eq(~cap)
        with m.Else():
            m.d.sync += capped.eq(uncapped)

        near: Value = Mux(self.requantized, requantize.result, capped).as_signed()
        if deep:
            near = delayed(m, near, "near")
        below, above, inside = near < self.low, near > self.high, near[:8].as_signed()
        if deep:
            below, above = delayed(m, below, "below"), delayed(m, above, "above")
            inside = delayed(m, inside, "inside")
        clipped = Signal(signed(8))
        with m.If(below):
            m.d.comb += clipped.eq(self.low_clip)
        with m.Elif(above):
            m.d.comb += clipped.eq(self.high_clip)
        with m.Else():
            m.d.comb += clipped.eq(inside)
        if self._wide:
            near = delayed(m, near, "near_beside") if deep else near
            last = Mux(self.keeps_wide, near.as_signed(), last)
        result = Mux(self.limited, _extended(clipped, 32), last).as_signed()
        m.d.comb += self.finished.eq(delayed(m, result, "finished"))

    def _own(self, m: Module, finish: OwnFinish, folded: Value, shifted: Value) -> Value:
        """The own finish's result where that is asked for, else ``shifted``, which is of cycle
        ``limited - 2``; a cycle later.
        """
        cycles = self._cycles
        m.submodules.own_finish = part = Module()
        result = Value.cast(finish.gateware(part, folded, self.operand))
        if result.shape() != signed(32):
            raise ExtensionError(
                f"finish {finish.pinned}: its gateware gives {result.shape()}; required signed(32)"
            )
        rest = cycles.limited - 2 - cycles.folded - finish.latency
        waited = delays(m, result, "own", rest)[-1]
        return delayed(m, Mux(self.own, waited, shifted).as_signed(), "chosen")


def _extended(value: Value, bits: int) -> Value:
    """``value`` with its sign in all upper bits: a choice, which simulates faster than copies."""
    upper = bits - len(value)
    return Cat(value, Mux(value[-1], (1 << upper) - 1, 0)[:upper]).as_signed()
