"""The vector unit: fold, finish, look up, write; ``block`` lanes, one element a cycle."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from dovetail.isa.config import HardwareConfig
from dovetail.isa.instruction_formats import VECTOR_LEVELS
from dovetail.isa.instructions import Finish, Fold, Multiplier, Rounding, Row
from dovetail.isa.latency import compute_latency
from dovetail.isa.memories import Memory, Unit

from . import layouts
from .affine import NestWalker
from .pipeline import COPIES, copies, delayed, delays
from .ports import ReadPort, RowPort, UnitControl, WritePort
from .rows import ROW_LATENCY, RowParameters
from .table_scratchpad import TablePort
from .tap_scratchpad import TapScratchpad
from .turns import turn_elements
from .vector_lane import VectorLane, lane_cycles

__all__ = ["Vector"]

SIDES = ("act", "acc")
GROUP_LANES = 4
"""Lanes that share a copy of the settings, unless these need more than ``COPIES``."""


class Vector(wiring.Component):
    """Read words, fold each reduction in every lane, finish, write a word a reduction.

    There are ``block / vector_cycles`` lanes; each does ``vector_cycles`` elements of a word, one a
    cycle (``turn_elements``).  The last word of a reduction is issued, in a turn, in cycle ``t``,
    the result of that turn written in ``t + compute_latency(config)[VECTOR]``, whatever the
    operation.  The pipeline is that of ``VectorLane``.

    Members
    -------
    control : In(UnitControl(layouts.VECTOR))
    act_read, acc_read : Out(ReadPort)
        Source, read in cycle t, as all others in turns; it comes a cycle later, in a deep pipeline
        two.
    tap : Out(ReadPort)
        Multipliers of MAC, four words at a time, read in cycle t.
    par : Out(ReadPort)
        Bias and scale, read so as to come a cycle before the reduction is folded.
    tab : Out(TablePort)
        Table, read in the cycle of the finished value.
    act_write, acc_write : Out(WritePort)
    par_row : Out(RowPort)
        Parameters of rows, with ``row_parameters``; written in ``t + latency + 1``.
    """

    def __init__(self, config: HardwareConfig) -> None:
        self._config = config
        self._deep, self._turns = config.deep_pipelines, config.vector_cycles
        # A deep pipeline has a register between each memory and what chooses from its word.
        self._read = 1 + self._deep
        self._cycles = lane_cycles(self._deep, self._read)
        lanes = config.block // self._turns
        self._groups = min(COPIES, max(1, lanes // GROUP_LANES))
        self._latency = compute_latency(config)[Unit.VECTOR]
        assert self._latency == self._cycles.finished + self._read + self._deep
        act, acc = (8 * config.word_bytes(memory) for memory in (Memory.ACT, Memory.ACC))
        turns = self._turns

        def read(bits: int) -> wiring.Member:
            return Out(ReadPort(bits // turns, turns))

        super().__init__(
            {
                "control": In(UnitControl(layouts.VECTOR)),
                "act_read": read(act),
                "acc_read": read(acc),
                "tap": read(TapScratchpad.GROUP * 8 * config.word_bytes(Memory.TAP)),
                "par": read(8 * config.word_bytes(Memory.PAR)),
                "tab": Out(TablePort(config.block)),
                "act_write": Out(WritePort(act // turns, turns)),
                "acc_write": Out(WritePort(acc // turns, turns)),
                **({"par_row": Out(RowPort())} if config.row_parameters else {}),
            }
        )
        if config.row_parameters:
            # Before a LOAD that waited for the end could write.
            assert self._cycles.folded + ROW_LATENCY <= self._latency + 1
            self._rows = RowParameters(lanes, self._turns)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        operands = ("source", "tap", "destination", "par")
        m.submodules.walker = walker = NestWalker(VECTOR_LEVELS, 12, operands, self._turns)
        current = self._issue(m, walker)
        # Folded levels: those below reduction_levels.
        folded = Signal(VECTOR_LEVELS)
        m.d.comb += folded.eq((1 << current.reduction_levels) - 1)
        ends = walker.valid & (walker.index_last | ~folded).all()
        begins, slides, skipped = self._window(m, walker, current, folded, ends)
        if self._config.row_parameters:
            self._row_results(m, walker, current, ends & ~skipped)
            skipped = skipped | current.row.any()
        result = delays(m, ends, "result", self._latency, reset=True)
        # Each turn's part of a word is written in its turn.
        writes = Cat(ends & ~skipped & now for now in walker.turn)
        written = delays(m, writes, "written", self._latency, reset=True)[-1]
        last = delays(m, walker.last, "last", self._latency)
        par_read = self._cycles.folded - 1 - self._read
        par = delays(m, walker.par, "par", par_read)
        destination = delays(m, walker.destination, "destination", self._latency)
        to_acc = delays(m, current.destination, "to_acc", self._latency)[-1]
        m.d.comb += [
            self.par.enable.eq(result[par_read]),
            self.par.address.eq(par[par_read]),
            self.tab.enable.eq(result[self._cycles.finished]),
            self.act_write.enable.eq(written & (~to_acc).replicate(self._turns)),
            self.acc_write.enable.eq(written & to_acc.replicate(self._turns)),
            self.control.free.eq(~walker.valid | walker.last),
            self.control.busy.eq(walker.valid),
            self.control.done.eq(result[self._latency] & last[self._latency]),
        ]
        if self._turns > 1:
            m.d.comb += self.par.turn.eq(delays(m, walker.turn, "par_turn", par_read)[-1])
        for side in SIDES:
            port = getattr(self, f"{side}_write")
            m.d.comb += port.address.eq(destination[self._latency])
        self._lanes(m, walker, current, self._settings(m, walker, current, begins, slides))
        return m

    def _row_results(self, m: Module, walker: NestWalker, current: Value, ends: Value) -> None:
        """Write the parameters of rows where instructions say so."""
        m.submodules.rows = self._rows
        scale = self.par.data.word_select(self._config.block // self._turns, 32)
        latency = self._cycles.folded + ROW_LATENCY
        done = ends & walker.turn[-1] & current.row.any()
        writes = delays(m, done, "row_written", latency, reset=True)[-1]
        address = delays(m, walker.destination, "row_place", latency)[-1]
        settings = {
            "row": current.row,
            "largest": (current.row == Row.LESS) & (current.fold == Fold.MAX),
            "start": current.m1.as_signed(),
            "shift": current.shift,
            "first": walker.turn[0],
        }
        for name, value in settings.items():
            late = delays(m, value, f"row_{name}", self._cycles.folded)[-1]
            m.d.comb += getattr(self._rows, name).eq(late)
        m.d.comb += [
            self._rows.bias.eq(delayed(m, self.par.data[:32], "row_par_bias").as_signed()),
            self._rows.scale.eq(delayed(m, scale, "row_par_scale")),
            self.par_row.enable.eq(writes),
            self.par_row.address.eq(address),
            self.par_row.bias.eq(self._rows.row_bias),
            self.par_row.scale.eq(self._rows.row_scale),
        ]

    def _window(
        self, m: Module, walker: NestWalker, current: Value, folded: Value, ends: Value
    ) -> tuple[Value, Value, Value]:
        """Three bits: the element begins a sum; that sum goes on from the columns before; the
        result that it ends is skipped.
        """
        window = (current.fold == Fold.MAC) & (current.multiplier == Multiplier.WINDOW)
        level = folded + 1
        first_group = (walker.index_zero | ~level[:VECTOR_LEVELS]).all()
        run_begins = (walker.index_zero | ~(folded | level)[:VECTOR_LEVELS]).all()
        # Results of the run so far, up to the most that can be skipped.
        count, before = Signal(2, reset_less=True), Signal(2)
        m.d.comb += before.eq(Mux(first_group, 0, count))
        with m.If(ends & walker.turn[-1]):
            m.d.sync += count.eq(before + (before != 3))
        column = _column_begins(walker, current)
        begins = Mux(window, column, (walker.index_zero | ~folded).all())
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
        # The second elements of pairs are where the walk of the taps is, which begins elsewhere.
        with m.If(_is_pair(taken)):
            m.d.comb += walker.tap_base.eq(taken.source_address + taken.source_stride0)
        pairs = Signal(reset_less=True)
        with m.If(self.control.start):
            m.d.sync += pairs.eq(_is_pair(taken))
        element = Mux(pairs & walker.index_odd, walker.tap, walker.source)
        m.d.comb += [
            self.act_read.enable.eq(walker.valid & ~current.source),
            self.act_read.address.eq(element),
            self.acc_read.enable.eq(walker.valid & current.source),
            self.acc_read.address.eq(element),
            self.tap.enable.eq(walker.valid),
            self.tap.address.eq(walker.tap),
        ]
        if self._turns > 1:
            for port in (self.act_read, self.acc_read, self.tap):
                m.d.comb += port.turn.eq(walker.turn)
        return current

    def _settings(
        self, m: Module, walker: NestWalker, current: Value, begins: Value, slides: Value
    ) -> dict[str, list[Value]]:
        """Settings that the lanes of each group share.  They travel with the elements, because
        instructions follow without gaps.
        """
        cycles = self._cycles
        requantized = current.finish == Finish.REQUANTIZE
        shift = Mux(current.finish == Finish.SHIFT, current.shift, 0)
        compares = (current.fold == Fold.MAX) | (current.fold == Fold.MIN)
        # Windows are handed on from the first element of a column to the next one's.
        column_goes_on = ~_column_begins(walker, current)
        # A row has an m1 of its own.
        second = walker.index_odd & ~current.row.any()
        if not self._config.row_parameters:
            second = walker.index_odd
        raised = Mux(second, current.m1, current.m0)[:9].as_signed()
        raised = Mux(_is_pair(current), raised, 0)
        if self._config.short_constants:
            # Where a product has no bias of its own, it needs none for the zero point.
            tapped = (current.fold == Fold.MAC) & (current.multiplier == Multiplier.TAP)
            raised = Mux(tapped & ~current.row.any(), current.m1[:9].as_signed(), raised)
        arrival: dict[str, tuple[Value, int]] = {
            "from_acc": (current.source, cycles.arrived),
            "multiplier": (current.multiplier, cycles.chosen),
            "immediate": (Mux(walker.index_zero[0], current.m0, current.m1), cycles.chosen),
            "index_odd": (walker.index_odd, cycles.chosen),
            "offset": (current.m0[:9].as_signed(), cycles.chosen),
            "raised": (raised, cycles.chosen),
            "is_mac": (current.fold == Fold.MAC, cycles.multiplied - self._deep),
            "goes_on": (~begins, cycles.multiplied),
            "column_goes_on": (column_goes_on, cycles.multiplied),
            "handed": (begins & slides, cycles.multiplied),
            "subtracts": (~begins & (current.fold == Fold.SUB), cycles.multiplied),
            "compares": (~begins & compares, cycles.multiplied),
            "smallest": (current.fold == Fold.MIN, cycles.multiplied),
            "half": ((1 << shift) >> 1, cycles.folded),
            "shift": (shift, cycles.folded + 1),
            "requantized": (requantized, cycles.limited),
            "zero_point": (current.zero_point, cycles.limited),
            "low": (current.low, cycles.compared),
            "high": (current.high, cycles.compared),
            "low_clip": (current.low, cycles.clipped),
            "high_clip": (current.high, cycles.clipped),
            "limited": (requantized | ~current.destination, cycles.clipped),
        }
        if self._config.row_parameters:
            wide = requantized & (current.rounding == Rounding.WIDE)
            arrival["limited"] = ((requantized & ~wide) | ~current.destination, cycles.clipped)
            arrival["keeps_wide"] = (wide, cycles.clipped)
        if self._config.own_finish:
            arrival["operand"] = (current.shift, cycles.folded)
            arrival["own"] = (current.finish == Finish.CUSTOM, cycles.limited - 2)
        if self._config.fixed_rounding:
            arrival["fixed"] = (current.rounding == Rounding.FIXED, cycles.folded - 1)
        return {name: self._spread(m, value, name, late) for name, (value, late) in arrival.items()}

    def _spread(self, m: Module, value: Value, name: str, cycles: int) -> list[Value]:
        """``value``, ``cycles`` later, for each group of lanes."""
        if not self._deep:
            return [delays(m, value, name, cycles)[-1]] * self._groups
        return copies(m, delays(m, value, name, cycles - 1)[-1], name, self._groups)

    def _lanes(
        self, m: Module, walker: NestWalker, current: Value, settings: dict[str, list[Value]]
    ) -> None:
        """The lanes; each does ``turns`` of the words' lanes, one after the other."""
        cycles, turns = self._cycles, self._turns
        elements = turn_elements(self._config)
        lanes = len(elements[0])
        answered = cycles.finished + self._read
        # Only the last is used; the others leave netlists of one turn as their areas were counted.
        turn = {
            cycle: self._spread(m, walker.turn, f"turn{cycle}", cycle)
            for cycle in (cycles.arrived, cycles.folded - 1, answered)
        }[answered]

        def of_turn(parts: list[Value], lane: int) -> Value:
            """The one of the lane's answers whose turn it is."""
            chosen = parts[-1]
            turns_now = turn[lane * self._groups // lanes]
            for part, now in zip(parts[:-1], turns_now, strict=False):
                chosen = Mux(now, part, chosen)
            return chosen

        def read(value: Value, name: str) -> Value:
            """The register of a deep pipeline behind a memory."""
            return delayed(m, value, name) if self._deep else value

        taps = [self.tap.data.word_select(k, 8 * lanes) for k in range(TapScratchpad.GROUP)]
        # The tap of an element is that of its own column in a window.
        own = Mux(current.multiplier == Multiplier.WINDOW, 2, walker.tap[:2])
        tap_of = self._spread(m, own, "tap_place", cycles.arrived)
        biases, scales = self.par.data[: 32 * lanes], self.par.data[32 * lanes :]
        table = delays(m, current.tab_address[8:], "table", cycles.finished)[-1]
        lookup = delays(m, current.lookup, "lookup", answered)[-1]
        answers = [read(byte, f"answer{place}") for place, byte in enumerate(self.tab.data)]
        small: list[Value] = []
        wide: list[Value] = []
        for lane in range(lanes):
            unit = VectorLane(
                cycles,
                deep=self._deep,
                turns=turns,
                fixed_rounding=self._config.fixed_rounding,
                own_finish=self._config.own_finish,
                wide=self._config.row_parameters,
            )
            m.submodules[f"lane{lane}"] = unit
            if self._config.row_parameters:
                m.d.comb += self._rows.lanes[lane].eq(unit.sum)
            group = lane * self._groups // lanes
            own_taps = [word.word_select(lane, 8) for word in taps]
            m.d.comb += [
                unit.act.eq(self.act_read.data.word_select(lane, 8)),
                unit.acc.eq(self.acc_read.data.word_select(lane, 32)),
                unit.tap.eq(Array(own_taps)[tap_of[group]]),
                unit.tap_before.eq(own_taps[1]),
                unit.tap_second_before.eq(own_taps[0]),
                unit.bias.eq(biases.word_select(lane, 32)),
                unit.scale.eq(scales.word_select(lane, 32)),
                *(getattr(unit, name).eq(copy[group]) for name, copy in settings.items()),
            ]
            # Table: 128 + q is q with its top bit turned over.
            q = unit.finished
            places = [of_lanes[lane] for of_lanes in elements]
            for place in places:
                m.d.comb += self.tab.address[place].eq(Cat(q[:7], ~q[7], table))
            kept = delays(m, q, f"kept{lane}", self._read)[-1]
            found = of_turn([answers[place] for place in places], lane)
            looked_up = Mux(lookup, found, kept[:8])
            if self._deep:
                looked_up = delayed(m, looked_up, f"looked_up{lane}")
                kept = delayed(m, kept, f"result{lane}")
            small.append(looked_up)
            wide.append(kept)
        m.d.comb += [self.act_write.data.eq(Cat(*small)), self.acc_write.data.eq(Cat(*wide))]


def _column_begins(walker: NestWalker, instruction: Value) -> Value:
    """True for the first element of a column."""
    wide = instruction.wide_window & (instruction.reduction_levels != 1)
    return walker.index_zero[0] & (walker.index_zero[1] | ~wide)


def _is_pair(instruction: Value) -> Value:
    """True if elements are multiplied in pairs."""
    return (instruction.fold == Fold.MAC) & (instruction.multiplier == Multiplier.PAIR)
