"""The load unit: strided DRAM blocks into padded scratchpad blocks."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from dovetail.isa.config import SHORT_ROWS, HardwareConfig
from dovetail.isa.latency import pipeline_stages
from dovetail.isa.memories import Memory

from . import layouts
from .bursts import Burst, BurstCutter
from .load_sizes import LoadSizes
from .load_turns import LoadTurns
from .load_writes import parameters_of, write_beats, write_port, write_words
from .nibbles import NibbleWeights
from .pipeline import delayed, delays
from .ports import ADDRESS_BITS, UnitControl
from .row_windows import RowWindows
from .walker import BlockWalker

__all__ = ["Load"]

WINDOW_FIELDS = ("step", "count_x", "row_first", "row_end")


class Load(wiring.Component):
    """Run LOADs: cut bursts, write words as they arrive, fill the padding between.

    One at a time, or with ``load_ahead`` two: the next one's bursts are offered while the data of
    the one before arrives.

    What arrives in cycle ``r`` is written in ``r + 1``, in a deep pipeline ``Stages.receive`` and
    ``Stages.write`` later: words with their last beat, or beat by beat those of some memories
    (``HardwareConfig.by_beats``).  Read data is never refused.

    Members
    -------
    control : In(UnitControl(layouts.LOAD))
    bursts : Out(stream.Signature(Burst))
        Bursts to read, in order.
    beat : In(1), beat_data : In(8 * bus_bytes)
        A beat of this unit's read data.
    write_<memory> : Out(WritePort)
        One for every memory; those written beat by beat take one for each piece of their words.

    With ``load_ahead``:

    announced : In(1)
        A burst of this unit is on offer to the memory.
    index : In(32)
        Number of the instruction that ``control`` gives.
    burst_index, beat_index : Out(32)
        Numbers of those that offer bursts, and whose data arrives.
    """

    def __init__(self, config: HardwareConfig) -> None:
        self._config = config
        self._stages = pipeline_stages(config)
        self._gathered = [memory for memory in Memory if memory not in config.by_beats]
        ports = {f"write_{memory.value}": Out(write_port(memory, config)) for memory in Memory}
        if config.two_loads:
            indices = ("burst_index", "beat_index")
            ports |= {"announced": In(1), "index": In(32), **{name: Out(32) for name in indices}}
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
        stages = self._stages
        # In a deep pipeline all begins ``setup`` cycles later, with what was worked out till then.
        begins = delays(m, start, "begins", stages.setup, reset=True)[-1]
        beat, beat_data = self.beat, self.beat_data
        if stages.receive:
            beat = delayed(m, beat, "beat_in", reset=True)
            beat_data = delayed(m, beat_data, "data_in")

        def settled(value: Value, name: str) -> Value:
            """A register of a deep pipeline; ``value`` is that of the instruction at work."""
            return delayed(m, value, name) if stages.setup else value

        active = Signal()
        if config.two_loads:
            m.submodules.turns = turns = LoadTurns()
            current = turns.current
        else:
            current = Signal(layouts.LOAD, reset_less=True)
            with m.If(start):
                m.d.sync += current.eq(taken)
        windowed = Signal()
        m.d.comb += windowed.eq(settled(current.step.any(), "windowed_now"))
        # What the instruction's first cycles work from.
        given = current if stages.setup else taken

        sizes = LoadSizes(m, config, given, current, settled)
        last_beat = sizes.last_beat
        bus_log2 = (config.bus_bytes - 1).bit_length()
        before = given.dram_address[:bus_log2]
        m.d.comb += [
            cutter.start.eq(begins),
            cutter.address.eq(Cat(Const(0, bus_log2), given.dram_address[bus_log2:])),
            cutter.stride_y.eq(given.dram_stride_y),
            cutter.stride_z.eq(given.dram_stride_z),
            cutter.count_y.eq(given.count_y),
            cutter.count_z.eq(given.count_z),
            cutter.row_beats.eq(settled(sizes.row_beats, "row_beats_now")),
            self.bursts.valid.eq(cutter.valid),
            self.bursts.payload.eq(cutter.burst),
            cutter.take.eq(self.bursts.valid & self.bursts.ready),
        ]

        # All cells of the padded block, for the padding.
        rows = settled(given.pad_y_before + given.count_y + given.pad_y_after, "rows")
        columns = settled(given.pad_x_before + given.count_x + given.pad_x_after, "columns")
        has_data = (given.count_x != 0) & (given.count_y != 0)
        sides = ("pad_x_before", "pad_x_after", "pad_y_before", "pad_y_after")
        has_padding = ~has_data
        for side in sides:
            has_padding |= given[side] != 0
        m.d.comb += [
            cells.start.eq(begins),
            cells.address.eq(given.sram_address),
            cells.stride_x.eq(settled(Mux(given.step.any(), given.gap + 1, 1), "stride_x")),
            cells.stride_y.eq(given.sram_stride_y),
            cells.stride_z.eq(given.sram_stride_z),
            cells.count_x.eq(columns),
            cells.count_y.eq(rows),
            cells.count_z.eq(given.count_z),
        ]
        # The data cells; the address of the first is known a cycle after the start, before any data
        # is.
        corner = Signal(ADDRESS_BITS)
        if config.two_loads:
            begun, walked, spread = turns.walks, turns.walked, turns.walked.step.any()
        else:
            begun = Signal()
            walked, spread = current, windowed
            m.d.sync += begun.eq(begins)
        padded_rows = settled(walked.pad_y_before * walked.sram_stride_y, "padded_rows")
        apart: Value = Mux(spread, walked.gap + 1, 1)
        in_row: Value = walked.count_x
        if config.short_constants:
            # Of TAB, several words at a time.
            fours = walked.nibbles & (walked.memory == Memory.TAB.code)
            apart = Mux(fours, SHORT_ROWS, apart)
            in_row = Mux(fours, walked.count_x >> SHORT_ROWS.bit_length() - 1, walked.count_x)
        m.d.comb += [
            corner.eq(walked.sram_address + walked.pad_x_before + padded_rows),
            words.start.eq(begun),
            words.address.eq(settled(corner, "corner_now")),
            words.stride_x.eq(apart),
            words.stride_y.eq(walked.sram_stride_y),
            words.stride_z.eq(walked.sram_stride_z),
            words.count_x.eq(in_row),
            words.count_y.eq(walked.count_y),
            words.count_z.eq(walked.count_z),
        ]

        # Beats gather into a word.
        widest = max(config.word_bytes(memory) for memory in self._gathered)
        word = Signal(8 * widest, reset_less=True)
        index = Signal(8)
        complete = Signal()
        completes = Mux(windowed, windows.completes, beat & (index == last_beat))
        m.d.sync += complete.eq(completes)
        # Rows of windows may end anywhere in a word; nothing else is at work when the next starts.
        with m.If(start & ~active if config.two_loads else start):
            m.d.sync += index.eq(0)
        with m.Elif(beat):
            m.d.sync += index.eq(Mux(index == last_beat, 0, index + 1))
        # So late that the word is whole when it is written.
        late_index = delays(m, index, "late_index", stages.write)[-1]
        late_data = delays(m, beat_data, "late_data", stages.write)[-1]
        late_beat = delays(m, beat, "late_beat", stages.write, reset=True)[-1]
        for k in range(widest // config.bus_bytes):
            mine = late_index == k
            if config.short_constants:
                mine |= sizes.fours
            with m.If(late_beat & mine):
                m.d.sync += word.word_select(k, 8 * config.bus_bytes).eq(late_data)

        m.d.comb += [
            windows.start.eq(begins),
            windows.before.eq(before),
            windows.pad_value.eq(current.pad_value),
            windows.beat.eq(beat),
            windows.data.eq(beat_data),
            *(getattr(windows, name).eq(given[name]) for name in WINDOW_FIELDS),
        ]

        some_data = settled(has_data, "has_data")
        some_padding = settled(has_padding, "has_padding")
        # At work: from the start, and when all that is known from the instruction is there.
        begun_work = Signal()
        data_left, cells_left = Signal(), Signal()
        last_word, last_cell = complete & words.last, Signal()
        # What is written came in the cycle before: of that one are memory, nibbles and address.
        memory, nibbles, gap, cell = current.memory, current.nibbles, current.gap, words.cell
        if config.two_loads:
            memory = delayed(m, memory, "memory_before")
            nibbles = delayed(m, nibbles, "nibbles_before")
            if config.short_constants:
                gap = delayed(m, gap.any(), "gap_before")
            cell = delayed(m, cell, "cell_before")
        by_beats = Signal()
        here = [memory == each.code for each in config.by_beats]
        m.d.comb += by_beats.eq(settled(Cat(*here).any(), "by_beats_now"))
        arriving = sizes.arriving(config, current, index)
        arrived = delayed(m, Cat(beat & each for each in arriving), "arrived", reset=True)
        beat_before = delayed(m, beat, "beat_before", reset=True)
        writes = Mux(by_beats, beat_before, complete)
        if config.two_loads:
            alone = windowed | taken.step.any()
            asked = ~turns.waiting & ~cutter.more & ~self.announced
            m.d.comb += [
                words.step.eq(completes),
                cells.step.eq(turns.cells_left & ~writes),
                last_cell.eq(cells.step & cells.last),
                turns.start.eq(start),
                turns.instruction.eq(taken),
                turns.index.eq(self.index),
                turns.has_data.eq(has_data),
                turns.has_cells.eq(has_padding),
                turns.last_beat.eq(completes & words.last),
                turns.last_cell.eq(last_cell),
                active.eq(turns.busy),
                self.control.free.eq(~active | (asked & ~turns.cells_left & ~alone)),
                self.control.busy.eq(active),
                self.control.done.eq(turns.done),
                self.burst_index.eq(turns.burst_index),
                self.beat_index.eq(turns.beat_index),
            ]
        else:
            m.d.comb += [
                words.step.eq(complete),
                cells.step.eq(begun_work & cells_left & ~writes),
                last_cell.eq(cells.step & cells.last),
            ]
            finished = Signal()
            m.d.comb += finished.eq(
                begun_work & (~data_left | last_word) & (~cells_left | last_cell)
            )
            with m.If(begins):
                m.d.sync += begun_work.eq(1)
                m.d.sync += [data_left.eq(some_data), cells_left.eq(some_padding)]
            with m.Else():
                with m.If(finished):
                    m.d.sync += begun_work.eq(0)
                with m.If(last_word):
                    m.d.sync += data_left.eq(0)
                with m.If(last_cell):
                    m.d.sync += cells_left.eq(0)
            done = delays(m, finished, "done", stages.write, reset=True)[-1]
            with m.If(start):
                m.d.sync += active.eq(1)
            with m.Elif(done):
                m.d.sync += active.eq(0)
            m.d.comb += [
                self.control.free.eq(~active),
                self.control.busy.eq(active),
                self.control.done.eq(done),
            ]

        data_rows = settled(current.pad_y_before + current.count_y, "data_rows")
        data_columns = settled(current.pad_x_before + current.count_x, "data_columns")
        above = cells.y < current.pad_y_before
        below = cells.y >= data_rows
        left = cells.x < current.pad_x_before
        right = cells.x >= data_columns
        pads = cells.step & (above | below | left | right)
        memory_before = memory
        if config.two_loads:
            memory = Mux(writes, memory, current.memory)
        places = delays(m, Mux(writes, cell, cells.cell), "write_address", stages.write)[-1]
        ports = {each: getattr(self, f"write_{each.value}") for each in Memory}
        for port in ports.values():
            m.d.comb += port.address.eq(places)
        several = nibbles & (memory_before == Memory.TAB.code)
        write_words(
            m,
            config,
            ports,
            memory,
            places,
            current.pad_value,
            complete,
            (word, windows.word),
            pads,
            (windowed, several),
        )
        pad = current.pad_value.as_unsigned().replicate(config.bus_bytes)
        data = delayed(m, beat_data, "data_before")
        plain = data
        if config.nibble_weights:
            m.submodules.expand = expand = NibbleWeights(config)
            m.d.comb += [expand.beat.eq(beat), expand.data.eq(beat_data), expand.index.eq(index)]
            expands = nibbles
            if config.short_constants:
                expands = nibbles & (memory_before == Memory.WGT.code)
            data = Mux(expands, expand.weights, data.replicate(2))
            pad = pad.replicate(2)
        parameters: list[Value] = []
        if config.short_constants:
            short = beat_before & nibbles & (memory_before == Memory.PAR.code)
            same = short & gap.any()
            parameters = parameters_of(Mux(beat_before, plain, pad[: len(plain)]), short, same)
        value = Mux(beat_before, data, pad)
        write_beats(m, config, ports, memory, arrived, pads, value, parameters)
        return m
