"""The documented DRAM timing model, for RTL runs (docs/timing.md, "DRAM model").

Only time is modelled here; the bytes are kept by the testbench, which answers each beat's address.
"""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from dovetail.isa.config import HardwareConfig

from .axi import Axi4

__all__ = ["DramModel"]

MOST_BURSTS = 64
TIME_BITS = 48

Command = data.StructLayout({"start": TIME_BITS, "address": 32, "beats": 9, "write": 1, "id": 1})


class DramModel(wiring.Component):
    """One in-order command queue behind an AXI4 port.

    Members
    -------
    bus : In(Axi4)
    latency, interval, queue_bursts, turnaround, response : In
        The timing, as in ``DramTiming``; constant during a run.
    address : Out(32)
        Byte address of the beat of this cycle.
    read_data : In(8 * bus_bytes)
        What is stored there; the testbench answers in the same cycle.
    write : Out(1), write_data : Out, write_strobe : Out
        Store ``write_data`` at ``address``, where ``write_strobe`` is set, in this cycle.
    """

    def __init__(self, config: HardwareConfig) -> None:
        self._bus_bytes = config.bus_bytes
        bits = 8 * config.bus_bytes
        super().__init__(
            {
                "bus": In(Axi4(config.bus_bytes)),
                "latency": In(10),
                "interval": In(4),
                "queue_bursts": In(7),
                "turnaround": In(6),
                "response": In(6),
                "address": Out(32),
                "read_data": In(bits),
                "write": Out(1),
                "write_data": Out(bits),
                "write_strobe": Out(config.bus_bytes),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bus = self.bus
        now = Signal(TIME_BITS)
        m.d.sync += now.eq(now + 1)

        # Accept a command and fix when it starts.
        m.submodules.commands = commands = SyncFIFO(width=Command.size, depth=MOST_BURSTS)
        level = Signal(range(MOST_BURSTS + 1))
        new = Signal(Command)
        accept, over = Signal(), Signal()
        any_before, write_before = Signal(), Signal()
        end_before = Signal(TIME_BITS)
        turn = Mux(write_before != new.write, self.turnaround, 0)
        soonest, after = Signal(TIME_BITS), Signal(TIME_BITS)
        room = level < self.queue_bursts
        m.d.comb += [
            bus.arready.eq(room),
            bus.awready.eq(room & ~bus.arvalid),
            accept.eq(room & (bus.arvalid | bus.awvalid)),
            new.write.eq(~bus.arvalid),
            new.id.eq(Mux(bus.arvalid, bus.arid, bus.awid)),
            new.address.eq(Mux(bus.arvalid, bus.araddr, bus.awaddr)),
            new.beats.eq(Mux(bus.arvalid, bus.arlen, bus.awlen) + 1),
            soonest.eq(now + self.latency),
            after.eq(end_before + 1 + turn),
            new.start.eq(Mux(any_before & (after > soonest), after, soonest)),
            commands.w_en.eq(accept),
            commands.w_data.eq(new),
        ]
        with m.If(accept):
            m.d.sync += [
                any_before.eq(1),
                write_before.eq(new.write),
                end_before.eq(new.start + (new.beats - 1) * self.interval),
            ]
        m.d.sync += level.eq(level + accept - over)

        # Move the beats of the oldest command.
        head = Signal(Command)
        beat, elapsed = Signal(9), Signal(TIME_BITS)
        due, moves, final = Signal(), Signal(), Signal()
        shift = (self._bus_bytes - 1).bit_length()
        m.d.comb += [
            head.eq(commands.r_data),
            due.eq(commands.r_rdy & (now >= head.start + elapsed)),
            final.eq(beat == head.beats - 1),
            moves.eq(due & Mux(head.write, bus.wvalid, bus.rready)),
            over.eq(moves & final),
            commands.r_en.eq(over),
            self.address.eq(head.address + (beat << shift)),
            bus.rvalid.eq(due & ~head.write),
            bus.rid.eq(head.id),
            bus.rdata.eq(self.read_data),
            bus.rlast.eq(final),
            bus.wready.eq(due & head.write),
            self.write.eq(moves & head.write),
            self.write_data.eq(bus.wdata),
            self.write_strobe.eq(bus.wstrb),
        ]
        with m.If(over):
            m.d.sync += [beat.eq(0), elapsed.eq(0)]
        with m.Elif(moves):
            m.d.sync += [beat.eq(beat + 1), elapsed.eq(elapsed + self.interval)]

        # Answer writes.
        m.submodules.answers = answers = SyncFIFO(width=TIME_BITS, depth=MOST_BURSTS)
        m.d.comb += [
            answers.w_en.eq(over & head.write),
            answers.w_data.eq(now + self.response),
            bus.bvalid.eq(answers.r_rdy & (now >= answers.r_data)),
            answers.r_en.eq(bus.bvalid & bus.bready),
        ]
        return m
