"""Beats of rows and words of a LOAD, in their long form or a short one."""

from collections.abc import Callable

from amaranth.hdl import Const, Module, Mux, Signal, Value

from dovetail.isa.config import SHORT_ROWS, HardwareConfig
from dovetail.isa.memories import Memory

__all__ = ["LoadSizes"]


class LoadSizes:
    """row_beats: of each row of ``given``.  last_beat: number of a word's last one, of ``current``.

    scales, same, fours: whether words of ``current`` are scales alone, or one bias and one scale;
    and whether a beat has ``SHORT_ROWS`` of them.

    given: what the first cycles of an instruction work from.  settled: makes a register of a value
    in a deep pipeline.
    """

    def __init__(
        self,
        m: Module,
        config: HardwareConfig,
        given: Value,
        current: Value,
        settled: Callable[[Value, str], Value],
    ) -> None:
        word_beats = [config.word_bytes(memory) // config.bus_bytes for memory in Memory]
        # With nibbles: of the multipliers, and of the nibbles.
        self.head_beats = config.nibble_head_bytes // config.bus_bytes
        self.nibble_beats = config.nibble_bytes // config.bus_bytes - self.head_beats
        self.scale_beats = config.short_bytes(Memory.PAR) // config.bus_bytes
        self.same_beats = config.short_bytes(Memory.PAR, same=True) // config.bus_bytes
        row_beats, last_beat = Signal(24), Signal(8)
        self.row_beats, self.last_beat = row_beats, last_beat
        with m.Switch(given.memory):
            for memory, beats in zip(Memory, word_beats, strict=True):
                with m.Case(memory.code):
                    m.d.comb += row_beats.eq(given.count_x * beats)
            with m.Default():
                m.d.comb += row_beats.eq(0)
        if config.nibble_weights:
            with m.If(given.nibbles):
                in_row = given.count_x * self.head_beats + given.count_x * self.nibble_beats
                m.d.comb += row_beats.eq(in_row)
        if config.short_constants:
            with m.If(given.nibbles & (given.memory == Memory.PAR.code)):
                m.d.comb += row_beats.eq(given.count_x * self.scale_beats)
                with m.If(given.gap.any()):
                    m.d.comb += row_beats.eq(given.count_x * self.same_beats)
            with m.If(given.nibbles & (given.memory == Memory.TAB.code)):
                m.d.comb += row_beats.eq(given.count_x >> SHORT_ROWS.bit_length() - 1)
        bus_log2 = (config.bus_bytes - 1).bit_length()
        before = given.dram_address[:bus_log2]
        # Where rows are windows, of the bytes from the first beat to the end of the last window.
        steps = settled(given.count_x * given.step, "steps")
        around = settled(before + (config.block + config.bus_bytes - 1) - given.step, "around")
        in_windows = settled(given.step.any() & given.count_x.any(), "in_windows")
        with m.If(in_windows):
            m.d.comb += row_beats.eq((steps + around) >> bus_log2)
        with m.Switch(current.memory):
            for memory, beats in zip(Memory, word_beats, strict=True):
                with m.Case(memory.code):
                    m.d.comb += last_beat.eq(beats - 1)
            with m.Default():
                m.d.comb += last_beat.eq(0)
        if config.nibble_weights:
            with m.If(current.nibbles):
                m.d.comb += last_beat.eq(self.head_beats + self.nibble_beats - 1)
        self.scales: Value = Const(0)
        self.same: Value = Const(0)
        self.fours: Value = Const(0)
        if config.short_constants:
            short = current.nibbles & (current.memory == Memory.PAR.code)
            self.same = short & current.gap.any()
            self.scales = short & ~current.gap.any()
            self.fours = current.nibbles & (current.memory == Memory.TAB.code)
            with m.If(self.scales):
                m.d.comb += last_beat.eq(self.scale_beats - 1)
            with m.If(self.same):
                m.d.comb += last_beat.eq(self.same_beats - 1)
            with m.If(self.fours):
                m.d.comb += last_beat.eq(0)

    def arriving(self, config: HardwareConfig, current: Value, index: Value) -> list[Value]:
        """For each piece of a word that is written by beats: whether beat ``index`` brings it."""
        pieces = max(config.word_bytes(memory) for memory in config.by_beats) // config.bus_bytes
        arriving: list[Value] = [index == k for k in range(pieces)]
        if config.nibble_weights:
            # Each beat makes two pieces.
            arriving = [
                Mux(current.nibbles, index == self.head_beats + k // 2, plain)
                for k, plain in enumerate(arriving)
            ]
        if config.short_constants:
            # Of a word of scales, a piece of biases with each; of one of each, all that it has.
            half = self.scale_beats
            short = [
                Mux(self.scales, index == k % half, before)
                for k, before in enumerate(arriving[: 2 * half])
            ]
            for k, before in enumerate(short):
                brought = index == (k // half if self.same_beats > 1 else 0)
                short[k] = Mux(self.same, brought, before)
            arriving = short + arriving[2 * half :]
        return arriving
