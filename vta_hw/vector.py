"""The vector unit: fold, finish, look up, write; ``block`` lanes, one element a cycle."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from dovetail.isa.config import HardwareConfig
from dovetail.isa.instruction_formats import VECTOR_LEVELS
from dovetail.isa.instructions import Finish, Fold, Multiplier
from dovetail.isa.latency import compute_latency
from dovetail.isa.memories import Memory, Unit

from . import layouts
from .affine import NestWalker
from .pipeline import delayed, delays
from .ports import ReadPort, UnitControl, WritePort
from .scratchpad import TablePort, TapScratchpad
from .vector_lane import FINISHED, FOLDED, LIMITED, LOOKED_UP, PARAMETERS_READ, VectorLane

__all__ = ["Vector"]

SIDES = ("act", "acc")


class Vector(wiring.Component):
    """Read a word a cycle, fold each reduction in every lane, finish, write a word a reduction.

    The last element of a reduction is issued in cycle ``t``, its result written in ``t +
    compute_latency(config)[VECTOR]``, whatever the operation.  The pipeline after the fold is that
    of ``VectorLane``.

    Members
    -------
    control : In(UnitControl(layouts.VECTOR))
    act_read, acc_read : Out(ReadPort)
        Source, read in cycle t.
    tap : Out(ReadPort)
        Multipliers of MAC, four words at a time, read in cycle t.
    par : Out(ReadPort)
        Bias and scale, read in cycle t + PARAMETERS_READ.
    tab : Out(TablePort)
        Table, read in cycle t + FINISHED.
    act_write, acc_write : Out(WritePort)
    """

    def __init__(self, config: HardwareConfig) -> None:
        self._config = config
        self._latency = compute_latency(config)[Unit.VECTOR]
        assert self._latency == LOOKED_UP
        act, acc = (8 * config.word_bytes(memory) for memory in (Memory.ACT, Memory.ACC))
        super().__init__(
            {
                "control": In(UnitControl(layouts.VECTOR)),
                "act_read": Out(ReadPort(act)),
                "acc_read": Out(ReadPort(acc)),
                "tap": Out(ReadPort(TapScratchpad.GROUP * 8 * config.word_bytes(Memory.TAP))),
                "par": Out(ReadPort(8 * config.word_bytes(Memory.PAR))),
                "tab": Out(TablePort(config.block)),
                "act_write": Out(WritePort(act)),
                "acc_write": Out(WritePort(acc)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        operands = ("source", "tap", "destination", "par")
        m.submodules.walker = walker = NestWalker(VECTOR_LEVELS, 12, operands)
        current = self._issue(m, walker)
        # Folded levels: those below reduction_levels.
        folded = Signal(VECTOR_LEVELS)
        m.d.comb += folded.eq((1 << current.reduction_levels) - 1)
        ends = walker.valid & (walker.index_last | ~folded).all()
        begins, slides, skipped = self._window(m, walker, current, folded, ends)
        result = delays(m, ends, "result", self._latency, reset=True)
        written = delays(m, ends & ~skipped, "written", self._latency, reset=True)
        last = delays(m, walker.last, "last", self._latency)
        par = delays(m, walker.par, "par", PARAMETERS_READ)
        destination = delays(m, walker.destination, "destination", self._latency)
        to_acc = delays(m, current.destination, "to_acc", self._latency)[-1]
        m.d.comb += [
            self.par.enable.eq(result[PARAMETERS_READ]),
            self.par.address.eq(par[PARAMETERS_READ]),
            self.tab.enable.eq(result[FINISHED]),
            self.act_write.enable.eq(written[self._latency] & ~to_acc),
            self.acc_write.enable.eq(written[self._latency] & to_acc),
            self.control.free.eq(~walker.valid | walker.last),
            self.control.busy.eq(walker.valid),
            self.control.done.eq(result[self._latency] & last[self._latency]),
        ]
        for side in SIDES:
            port = getattr(self, f"{side}_write")
            m.d.comb += port.address.eq(destination[self._latency])
        self._lanes(m, walker, current, self._settings(m, walker, current, begins, slides))
        return m

    def _window(
        self, m: Module, walker: NestWalker, current: Value, folded: Value, ends: Value
    ) -> tuple[Value, Value, Value]:
        """Whether the element begins a sum; whether that sum goes on from the columns before;
        whether the result that it ends is skipped.
        """
        window = (current.fold == Fold.MAC) & (current.multiplier == Multiplier.WINDOW)
        level = folded + 1
        first_group = (walker.index_zero | ~level[:VECTOR_LEVELS]).all()
        run_begins = (walker.index_zero | ~(folded | level)[:VECTOR_LEVELS]).all()
        # Results of the run so far, up to the most that can be skipped.
        count, before = Signal(2, reset_less=True), Signal(2)
        m.d.comb += before.eq(Mux(first_group, 0, count))
        with m.If(ends):
            m.d.sync += count.eq(before + (before != 3))
        begins = Mux(window, walker.index_zero[0], (walker.index_zero | ~folded).all())
        return begins, window & ~run_begins, window & (before < current.window_skip)

    def _issue(self, m: Module, walker: NestWalker) -> Value:
        """Feed the walker and read the operands (cycle t); return the instruction being issued."""
        taken = self.control.instruction
        current = Signal(layouts.VECTOR, reset_less=True)
        with m.If(self.control.start):
            m.d.sync += current.eq(taken)
        m.d.comb += walker.start.eq(self.control.start)
        for level in range(VECTOR_LEVELS):
            m.d.comb += [
                walker.extents[level].eq(taken[f"extent{level}"]),
                walker.source_strides[level].eq(taken[f"source_stride{level}"]),
                walker.tap_strides[level].eq(taken[f"tap_stride{level}"]),
            ]
            for name in ("destination", "par") if level else ():
                # A folded level moves neither: its stride counts as 0.
                stays = taken.reduction_levels > level
                stride = Mux(stays, 0, taken[f"{name}_stride{level}"])
                m.d.comb += getattr(walker, f"{name}_strides")[level].eq(stride)
        for name in ("source", "tap", "destination", "par"):
            m.d.comb += getattr(walker, f"{name}_base").eq(taken[f"{name}_address"])
        m.d.comb += [
            self.act_read.enable.eq(walker.valid & ~current.source),
            self.act_read.address.eq(walker.source),
            self.acc_read.enable.eq(walker.valid & current.source),
            self.acc_read.address.eq(walker.source),
            self.tap.enable.eq(walker.valid),
            self.tap.address.eq(walker.tap),
        ]
        return current

    def _settings(
        self, m: Module, walker: NestWalker, current: Value, begins: Value, slides: Value
    ) -> dict[str, Value]:
        """What the lanes share.  It travels with the elements: instructions follow without gaps."""
        requantized = current.finish == Finish.REQUANTIZE
        shift = Mux(current.finish == Finish.SHIFT, current.shift, 0)
        arrival: dict[str, tuple[Value, int]] = {
            "from_acc": (current.source, 1),
            "multiplier": (current.multiplier, 1),
            "immediate": (Mux(walker.index_zero[0], current.m0, current.m1), 1),
            "index_odd": (walker.index_odd, 1),
            "is_mac": (current.fold == Fold.MAC, FOLDED - 1),
            "begins": (begins, FOLDED - 1),
            "slides": (slides, FOLDED - 1),
            "offset": (current.m0[:9].as_signed(), 1),
            "fold": (current.fold, FOLDED - 1),
            "half": ((1 << shift) >> 1, FOLDED),
            "shift": (shift, FOLDED + 1),
            "requantized": (requantized, LIMITED),
            "limited": (requantized | ~current.destination, LIMITED),
            "zero_point": (current.zero_point, LIMITED),
            "low": (current.low, LIMITED),
            "high": (current.high, LIMITED),
        }
        return {
            name: delays(m, value, name, cycles)[-1] for name, (value, cycles) in arrival.items()
        }

    def _lanes(
        self, m: Module, walker: NestWalker, current: Value, settings: dict[str, Value]
    ) -> None:
        lanes = self._config.block
        taps = [self.tap.data.word_select(k, 8 * lanes) for k in range(TapScratchpad.GROUP)]
        place = delayed(m, walker.tap[:2], "tap_place")
        window = delayed(m, current.multiplier == Multiplier.WINDOW, "tap_window")
        # The tap of an element is that of its own column in a window.
        tap = Signal(8 * lanes)
        m.d.comb += tap.eq(Array(taps)[Mux(window, 2, place)])
        table = delays(m, current.tab_address[8:], "table", FINISHED)[-1]
        lookup = delays(m, current.lookup, "lookup", LOOKED_UP)[-1]
        results = []
        for lane in range(lanes):
            m.submodules[f"lane{lane}"] = unit = VectorLane()
            m.d.comb += [
                unit.act.eq(self.act_read.data.word_select(lane, 8).as_signed()),
                unit.acc.eq(self.acc_read.data.word_select(lane, 32).as_signed()),
                unit.tap.eq(tap.word_select(lane, 8).as_signed()),
                unit.tap_before.eq(taps[1].word_select(lane, 8).as_signed()),
                unit.tap_second_before.eq(taps[0].word_select(lane, 8).as_signed()),
                unit.bias.eq(self.par.data.word_select(lane, 32).as_signed()),
                unit.scale.eq(self.par.data.word_select(lanes + lane, 32)),
                *(getattr(unit, name).eq(value) for name, value in settings.items()),
            ]
            # Table: 128 + q is q with its top bit turned over.
            q = unit.finished
            m.d.comb += self.tab.address[lane].eq(Cat(q[:7], ~q[7], table))
            kept = delayed(m, unit.finished, f"kept{lane}")
            results.append((Mux(lookup, self.tab.data[lane], kept[:8]), kept))
        m.d.comb += [
            self.act_write.data.eq(Cat(*(small for small, _ in results))),
            self.acc_write.data.eq(Cat(*(wide for _, wide in results))),
        ]
