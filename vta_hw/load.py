"""The load unit: strided DRAM blocks into padded scratchpad blocks."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from dovetail.isa.config import HardwareConfig
from dovetail.isa.memories import Memory

from . import layouts
from .bursts import Burst, BurstCutter
from .ports import ADDRESS_BITS, UnitControl, WritePort
from .row_windows import RowWindows
from .walker import BlockWalker

__all__ = ["Load"]

WINDOW_FIELDS = ("step", "count_x", "row_first", "row_end")


class Load(wiring.Component):
    """Run one LOAD at a time: cut bursts, write words as they arrive, fill the padding between.

    A word whose last beat arrives in cycle ``r`` is written in ``r + 1``.  Read data is never
    refused.

    Members
    -------
    control : In(UnitControl(layouts.LOAD))
    bursts : Out(stream.Signature(Burst))
        Bursts to read, in order.
    beat : In(1), beat_data : In(8 * bus_bytes)
        A beat of this unit's read data.
    write_<memory> : Out(WritePort)
        One for every memory.
    """

    def __init__(self, config: HardwareConfig) -> None:
        self._config = config
        ports = {
            f"write_{memory.value}": Out(WritePort(8 * config.word_bytes(memory)))
            for memory in Memory
        }
        super().__init__(
            {
                "control": In(UnitControl(layouts.LOAD)),
                "bursts": Out(stream.Signature(Burst)),
                "beat": In(1),
                "beat_data": In(8 * config.bus_bytes),
                **ports,
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._config
        taken = self.control.instruction
        start = self.control.start
        m.submodules.cutter = cutter = BurstCutter(config)
        m.submodules.cells = cells = BlockWalker()
        m.submodules.words = words = BlockWalker()
        m.submodules.windows = windows = RowWindows(config)
        active = Signal()
        current = Signal(layouts.LOAD, reset_less=True)
        with m.If(start):
            m.d.sync += current.eq(taken)
        windowed = Signal()
        m.d.comb += windowed.eq(current.step.any())

        word_beats = [config.word_bytes(memory) // config.bus_bytes for memory in Memory]
        row_beats, last_beat = Signal(24), Signal(8)
        with m.Switch(taken.memory):
            for memory, beats in zip(Memory, word_beats, strict=True):
                with m.Case(memory.code):
                    m.d.comb += row_beats.eq(taken.count_x * beats)
            with m.Default():
                m.d.comb += row_beats.eq(0)
        bus_log2 = (config.bus_bytes - 1).bit_length()
        before = taken.dram_address[:bus_log2]
        # Where rows are windows, of the bytes from the first beat to the end of the last window.
        span = before + (taken.count_x - 1) * taken.step + config.block
        with m.If(taken.step.any() & taken.count_x.any()):
            m.d.comb += row_beats.eq((span + config.bus_bytes - 1) >> bus_log2)
        with m.Switch(current.memory):
            for memory, beats in zip(Memory, word_beats, strict=True):
                with m.Case(memory.code):
                    m.d.comb += last_beat.eq(beats - 1)
            with m.Default():
                m.d.comb += last_beat.eq(0)
        m.d.comb += [
            cutter.start.eq(start),
            cutter.address.eq(Cat(Const(0, bus_log2), taken.dram_address[bus_log2:])),
            cutter.stride_y.eq(taken.dram_stride_y),
            cutter.stride_z.eq(taken.dram_stride_z),
            cutter.count_y.eq(taken.count_y),
            cutter.count_z.eq(taken.count_z),
            cutter.row_beats.eq(row_beats),
            self.bursts.valid.eq(cutter.valid),
            self.bursts.payload.eq(cutter.burst),
            cutter.take.eq(self.bursts.valid & self.bursts.ready),
        ]

        # All cells of the padded block, for the padding.
        rows = taken.pad_y_before + taken.count_y + taken.pad_y_after
        columns = taken.pad_x_before + taken.count_x + taken.pad_x_after
        has_data = (taken.count_x != 0) & (taken.count_y != 0)
        sides = ("pad_x_before", "pad_x_after", "pad_y_before", "pad_y_after")
        has_padding = ~has_data
        for side in sides:
            has_padding |= taken[side] != 0
        m.d.comb += [
            cells.start.eq(start),
            cells.address.eq(taken.sram_address),
            cells.stride_x.eq(Mux(taken.step.any(), taken.gap + 1, 1)),
            cells.stride_y.eq(taken.sram_stride_y),
            cells.stride_z.eq(taken.sram_stride_z),
            cells.count_x.eq(columns),
            cells.count_y.eq(rows),
            cells.count_z.eq(taken.count_z),
        ]
        # The data cells; the address of the first is known a cycle after the start, before any data
        # is.
        corner = Signal(ADDRESS_BITS)
        begun = Signal()
        m.d.sync += begun.eq(start)
        m.d.comb += [
            corner.eq(
                current.sram_address
                + current.pad_x_before
                + current.pad_y_before * current.sram_stride_y
            ),
            words.start.eq(begun),
            words.address.eq(corner),
            words.stride_x.eq(Mux(windowed, current.gap + 1, 1)),
            words.stride_y.eq(current.sram_stride_y),
            words.stride_z.eq(current.sram_stride_z),
            words.count_x.eq(current.count_x),
            words.count_y.eq(current.count_y),
            words.count_z.eq(current.count_z),
        ]

        # Beats gather into a word.
        widest = max(config.word_bytes(memory) for memory in Memory)
        word = Signal(8 * widest, reset_less=True)
        index = Signal(8)
        whole, complete = Signal(), Signal()
        m.d.sync += whole.eq(self.beat & (index == last_beat))
        m.d.comb += complete.eq(Mux(windowed, windows.complete, whole))
        with m.If(start):
            m.d.sync += index.eq(0)
        with m.Elif(self.beat):
            m.d.sync += index.eq(Mux(index == last_beat, 0, index + 1))
            with m.Switch(index):
                for k in range(widest // config.bus_bytes):
                    with m.Case(k):
                        m.d.sync += word.word_select(k, 8 * config.bus_bytes).eq(self.beat_data)
                with m.Default():
                    m.d.sync += word.eq(word)

        m.d.comb += [
            windows.start.eq(start),
            windows.before.eq(before),
            windows.pad_value.eq(current.pad_value),
            windows.beat.eq(self.beat),
            windows.data.eq(self.beat_data),
            *(getattr(windows, name).eq(taken[name]) for name in WINDOW_FIELDS),
        ]

        data_left, cells_left = Signal(), Signal()
        last_word, last_cell = complete & words.last, Signal()
        m.d.comb += [
            words.step.eq(complete),
            cells.step.eq(active & cells_left & ~complete),
            last_cell.eq(cells.step & cells.last),
        ]
        finished = Signal()
        m.d.comb += finished.eq(active & (~data_left | last_word) & (~cells_left | last_cell))
        with m.If(start):
            m.d.sync += [active.eq(1), data_left.eq(has_data), cells_left.eq(has_padding)]
        with m.Else():
            with m.If(finished):
                m.d.sync += active.eq(0)
            with m.If(last_word):
                m.d.sync += data_left.eq(0)
            with m.If(last_cell):
                m.d.sync += cells_left.eq(0)
        m.d.comb += [
            self.control.free.eq(~active),
            self.control.busy.eq(active),
            self.control.done.eq(finished),
        ]

        above = cells.y < current.pad_y_before
        below = cells.y >= current.pad_y_before + current.count_y
        left = cells.x < current.pad_x_before
        right = cells.x >= current.pad_x_before + current.count_x
        pads = cells.step & (above | below | left | right)
        for memory in Memory:
            port = getattr(self, f"write_{memory.value}")
            size = config.word_bytes(memory)
            chosen = current.memory == memory.code
            data = word[: 8 * size]
            if memory is Memory.ACT:
                data = Mux(windowed, windows.word, data)
            m.d.comb += [
                port.enable.eq(chosen & (complete | pads)),
                port.address.eq(Mux(complete, words.cell, cells.cell)),
                port.data.eq(Mux(complete, data, current.pad_value.as_unsigned().replicate(size))),
            ]
        return m
