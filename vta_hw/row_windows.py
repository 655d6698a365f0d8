"""Overlapping windows of a row of bytes, as the row's beats arrive."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from dovetail.isa.config import HardwareConfig
from dovetail.isa.latency import pipeline_stages

from .pipeline import delayed

__all__ = ["RowWindows"]

PLACE_BITS = 22
"""Bits of a signed place in a row."""


class RowWindows(wiring.Component):
    """One word for each window of ``block`` bytes, ``step`` bytes after the one before.

    A window whose last byte comes in a beat of cycle ``r`` is ``complete`` in ``r + 1``, and at
    ``word`` then or ``Stages.write`` cycles later.  Because a step is at least a beat, no beat
    completes two.

    Resources: the last ``block + bus_bytes`` bytes, and a choice of one in ``bus_bytes`` a byte.

    Members
    -------
    start : In(1)
        Take a block of rows from the inputs below.
    before : In
        Bytes of each row's first beat before its first window.
    step, count_x, row_first, row_end, pad_value : In
        As in the instruction; a step of at least ``bus_bytes``.
    beat : In(1), data : In(8 * bus_bytes)
        A beat of a row.
    completes : Out(1)
        The beat brings the last byte of the next window.
    complete : Out(1)
        The next window is there.
    word : Out(8 * block)
    """

    def __init__(self, config: HardwareConfig) -> None:
        self._block, self._bus = config.block, config.bus_bytes
        self._late = pipeline_stages(config).write
        assert self._late in (0, 2), "a register behind the choice of bytes, one behind the padding"
        super().__init__(
            {
                "start": In(1),
                "before": In((self._bus - 1).bit_length()),
                "step": In(8),
                "count_x": In(12),
                "row_first": In(20),
                "row_end": In(20),
                "pad_value": In(signed(8)),
                "beat": In(1),
                "data": In(8 * self._bus),
                "completes": Out(1),
                "complete": Out(1),
                "word": Out(8 * self._block),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        block, bus = self._block, self._bus
        step, count = Signal(8, reset_less=True), Signal(12, reset_less=True)
        # Bytes missing to the end of the next window, and windows missing in the row.
        missing, all_missing = Signal(signed(10)), Signal(signed(10))
        left = Signal(12)
        after = Signal(signed(11))
        completes, row_ends = self.completes, Signal()
        m.d.comb += [
            after.eq(missing - bus),
            completes.eq(self.beat & (after <= 0)),
            row_ends.eq(left == 1),
        ]
        with m.If(self.start):
            first = self.before + block
            m.d.sync += [missing.eq(first), all_missing.eq(first), left.eq(self.count_x)]
            m.d.sync += [step.eq(self.step), count.eq(self.count_x)]
        with m.Elif(completes):
            m.d.sync += missing.eq(Mux(row_ends, all_missing, after + step))
            m.d.sync += left.eq(Mux(row_ends, count, left - 1))
        with m.Elif(self.beat):
            m.d.sync += missing.eq(after)

        recent = Signal(8 * (block + bus), reset_less=True)
        with m.If(self.beat):
            m.d.sync += recent.eq(Cat(recent[8 * bus :], self.data))
        # Bytes in the last beat that come after the window.
        beyond = delayed(m, (-after)[: (bus - 1).bit_length()], "beyond")
        last = delayed(m, row_ends, "last")
        m.d.sync += self.complete.eq(completes)
        places = [recent[8 * (bus - e) : 8 * (bus - e + block)] for e in range(bus)]

        def deeper(value: Value, name: str) -> Value:
            return delayed(m, value, name) if self._late else value

        raw = Signal(8 * block)
        m.d.comb += raw.eq(deeper(Array(places)[beyond], "raw"))
        low, high = (
            deeper(self._limit(m, name, step, last), f"{name}_known")
            for name in ("row_first", "row_end")
        )
        pad = self.pad_value.as_unsigned()
        padded = Cat(
            Mux((low <= lane) & (lane < high), raw.word_select(lane, 8), pad)
            for lane in range(block)
        )
        m.d.comb += self.word.eq(deeper(padded, "padded"))
        return m

    def _limit(self, m: Module, name: str, step: Value, row_ends: Value) -> Signal:
        """A limit of the row, counted from the first byte of ``word``, within 0 to ``block``."""
        given = getattr(self, name)
        whole = Signal(signed(PLACE_BITS), name=f"{name}_whole", reset_less=True)
        left = Signal(signed(PLACE_BITS), name=f"{name}_left", reset_less=True)
        with m.If(self.start):
            m.d.sync += [whole.eq(given), left.eq(given)]
        with m.Elif(self.complete):
            m.d.sync += left.eq(Mux(row_ends, whole, left - step))
        limit = Signal(range(self._block + 1), name=f"{name}_limit")
        with m.If(left < 0):
            m.d.comb += limit.eq(0)
        with m.Elif(left > self._block):
            m.d.comb += limit.eq(self._block)
        with m.Else():
            m.d.comb += limit.eq(left)
        return limit
