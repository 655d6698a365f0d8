"""The store unit: strided blocks of ACT into DRAM."""

from amaranth.hdl import Module, Mux, Signal, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory as BlockMemory
from amaranth.lib.wiring import In, Out

from dovetail.isa.config import HardwareConfig
from dovetail.isa.latency import pipeline_stages
from dovetail.isa.memories import Memory

from . import layouts
from .bursts import BEATS_BITS, Burst, BurstCutter
from .head_queue import HeadQueue
from .pipeline import delayed, delays
from .ports import ReadPort, UnitControl
from .walker import BlockWalker

__all__ = ["Store"]


class Store(wiring.Component):
    """Run one STORE at a time: read words into slots of a burst each, offer complete bursts.

    A burst is offered only with all its data at hand, so that the memory never waits for it.

    Members
    -------
    control : In(UnitControl(layouts.STORE))
    act : Out(ReadPort)
    bursts : Out(stream.Signature(Burst))
        Bursts to announce to memory, in order.
    beat : Out(8 * bus_bytes), last : Out(1), beat_ready : In(1)
        Data beats of the bursts taken, in order; ``last`` ends a burst, ``beat_ready`` goes on.
    beat_valid : Out(1)
        A taken burst has beats left.
    response : In(1)
        Memory has answered a burst.
    enable : In(1)
        The run has not been stopped.
    writes : Out(1)
        The beat is to change memory: it was first offered while ``enable`` was high.  (AXI lets no
        beat that is on offer change.)
    """

    def __init__(self, config: HardwareConfig) -> None:
        self._config = config
        self._stages = pipeline_stages(config)
        super().__init__(
            {
                "control": In(UnitControl(layouts.STORE)),
                "act": Out(ReadPort(8 * config.word_bytes(Memory.ACT))),
                "bursts": Out(stream.Signature(Burst)),
                "beat": Out(8 * config.bus_bytes),
                "last": Out(1),
                "beat_valid": Out(1),
                "beat_ready": In(1),
                "response": In(1),
                "enable": In(1),
                "writes": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._config
        word_beats = config.word_bytes(Memory.ACT) // config.bus_bytes
        beats_log2 = (word_beats - 1).bit_length()
        taken, start = self.control.instruction, self.control.start
        m.submodules.cutter = cutter = BurstCutter(config)
        m.submodules.words = words = BlockWalker()
        # In a deep pipeline all begins ``setup`` cycles later.
        begins_work = delays(m, start, "begins_work", self._stages.setup, reset=True)[-1]
        given = taken
        if self._stages.setup:
            given = Signal(layouts.STORE, name="given", reset_less=True)
            with m.If(start):
                m.d.sync += given.eq(taken)
        m.d.comb += [
            cutter.start.eq(begins_work),
            cutter.address.eq(given.dram_address),
            cutter.stride_y.eq(given.dram_stride_y),
            cutter.stride_z.eq(given.dram_stride_z),
            cutter.count_y.eq(given.count_y),
            cutter.count_z.eq(given.count_z),
            cutter.row_beats.eq(given.count_x << beats_log2),
            words.start.eq(begins_work),
            words.address.eq(given.sram_address),
            words.stride_y.eq(given.sram_stride_y),
            words.stride_z.eq(given.sram_stride_z),
            words.count_x.eq(given.count_x),
            words.count_y.eq(given.count_y),
            words.count_z.eq(given.count_z),
        ]

        # Read words into a slot.
        active, inside = Signal(), Signal()
        done_words = Signal(BEATS_BITS)
        used = Signal(range(config.store_slots + 1))
        begins, reads, fills = Signal(), Signal(), Signal()
        burst_words = cutter.burst.beats >> beats_log2
        room, last_word = Signal(init=1), done_words == burst_words - 1
        if self._stages.cut:
            # A burst is known a cycle before it is offered.
            following = Mux(reads, done_words + 2, done_words + 1)
            last_word = delayed(m, following == burst_words, "last_word")
        m.d.comb += [
            begins.eq(cutter.valid & ~inside & room),
            reads.eq(cutter.valid & (inside | begins)),
            fills.eq(reads & last_word),
            cutter.take.eq(fills),
            words.step.eq(reads),
            self.act.enable.eq(reads),
            self.act.address.eq(words.cell),
        ]
        with m.If(fills):
            m.d.sync += [inside.eq(0), done_words.eq(0)]
        with m.Elif(reads):
            m.d.sync += [inside.eq(1), done_words.eq(done_words + 1)]

        slot_words = config.burst_beats // word_beats
        slots = config.store_slots
        m.submodules.buffer = buffer = BlockMemory(
            shape=unsigned(8 * config.word_bytes(Memory.ACT)), depth=slots * slot_words, init=[]
        )
        write, read = buffer.write_port(), buffer.read_port(domain="comb")
        fill_slot, drain_slot = Signal(range(slots)), Signal(range(slots))
        with m.If(fills):
            m.d.sync += fill_slot.eq(fill_slot + 1)
        # The word read arrives a cycle later, or ``read`` more.
        arrives = 1 + self._stages.read
        place = (fill_slot * slot_words + done_words)[: len(write.addr)]
        m.d.comb += [
            write.en.eq(delays(m, reads, "arrives", arrives, reset=True)[-1]),
            write.addr.eq(delays(m, place, "arrives_at", arrives)[-1]),
            write.data.eq(self.act.data),
        ]

        # A full slot's burst is offered the cycle after its last word was written.
        m.submodules.full = full = HeadQueue(Burst.size, slots)
        filled_burst = cutter.burst.as_value()
        m.d.comb += [
            full.push.eq(delays(m, fills, "filled", arrives, reset=True)[-1]),
            full.push_data.eq(delays(m, filled_burst, "filled_burst", arrives)[-1]),
            self.bursts.valid.eq(full.valid),
            self.bursts.payload.eq(full.head),
            full.pop.eq(self.bursts.ready),
        ]

        # Beats of the bursts taken.
        m.submodules.taken = going = HeadQueue(BEATS_BITS, slots)
        sent = Signal(BEATS_BITS)
        frees = Signal()
        m.d.comb += [
            going.push.eq(self.bursts.valid & self.bursts.ready),
            going.push_data.eq(self.bursts.payload.beats - 1),
            self.beat_valid.eq(going.valid),
            self.last.eq(sent == going.head),
            frees.eq(self.beat_valid & self.beat_ready & self.last),
            going.pop.eq(frees),
            read.addr.eq(drain_slot * slot_words + (sent >> beats_log2)),
            self.beat.eq(
                read.data.word_select(sent[:beats_log2], 8 * config.bus_bytes)
                if beats_log2
                else read.data
            ),
        ]
        with m.If(frees):
            m.d.sync += [sent.eq(0), drain_slot.eq(drain_slot + 1)]
        with m.Elif(self.beat_valid & self.beat_ready):
            m.d.sync += sent.eq(sent + 1)
        still_used = (used + begins - frees)[: len(used)]
        m.d.sync += [used.eq(still_used), room.eq(still_used != config.store_slots)]
        kept = Signal()
        m.d.comb += self.writes.eq(self.enable | kept)
        m.d.sync += kept.eq(self.writes & self.beat_valid & ~self.beat_ready)

        # The end: every burst begun is answered.
        unanswered = Signal(32)
        finished = Signal()
        left = (unanswered - self.response)[: len(unanswered)]
        # No burst is answered in the cycle after it has begun.
        last_one = delayed(m, (left == 1) & ~begins, "last_one")
        m.d.sync += unanswered.eq(left + begins)
        m.d.comb += [
            finished.eq(active & ~cutter.more & self.response & last_one),
            self.control.free.eq(~active),
            self.control.busy.eq(active),
            self.control.done.eq(finished),
        ]
        m.d.sync += active.eq(Mux(start, 1, active & ~finished))
        return m
