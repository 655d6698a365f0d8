"""The host's side of a board: requests from a serial line to memory and registers."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out, connect

from dovetail.isa.link import EVENT, GRAIN, MOST_DATA, RESPONSE, Operation, Status
from dovetail.vta_hw.axi import Axi4, Axi4Lite
from dovetail.vta_hw.registers import ADDRESS_BITS

from .framing import BUFFER_WORDS, FrameReceiver, FrameTransmitter, Header
from .uart import UartReceiver, UartTransmitter

__all__ = ["HostBridge"]


class HostBridge(wiring.Component):
    """Does the requests of ``dovetail.isa.link``, one at a time.

    Memory is accessed in single beats: the serial line is slower by far.

    Members
    -------
    receive : In(1), transmit : Out(1)
        The serial line.
    memory : Out(Axi4(bus_bytes))
    registers : Out(Axi4Lite)
    running : In(1)
        A program runs: memory belongs to the accelerator.
    finished : In(1)
        Its rising edge sends an event.
    """

    def __init__(self, divisor: int, bus_bytes: int) -> None:
        """divisor: clock cycles of a bit on the serial line.  bus_bytes: 4 or 8."""
        self._divisor, self._beat = divisor, bus_bytes
        super().__init__(
            {
                "receive": In(1),
                "transmit": Out(1, init=1),
                "memory": Out(Axi4(bus_bytes)),
                "registers": Out(Axi4Lite(ADDRESS_BITS)),
                "running": In(1),
                "finished": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.uart_receiver = uart_receiver = UartReceiver(self._divisor)
        m.submodules.uart_transmitter = uart_transmitter = UartTransmitter(self._divisor)
        m.submodules.receiver = receiver = FrameReceiver()
        m.submodules.transmitter = transmitter = FrameTransmitter()
        m.submodules.buffer = buffer = Memory(shape=64, depth=BUFFER_WORDS, init=[])
        write, read = buffer.write_port(granularity=8), buffer.read_port()
        # A word of the buffer comes two cycles after its address.
        word = Signal(64)
        m.d.sync += word.eq(read.data)
        connect(m, uart_receiver.bytes, receiver.bytes)
        connect(m, transmitter.bytes, uart_transmitter.bytes)
        memory, registers = self.memory, self.registers

        # The request at hand, and the one before.
        header, status = Signal(Header), Signal(8)
        waiting, event, finished_before = Signal(), Signal(), Signal()
        known, last_sequence, last_checksum = Signal(), Signal(8), Signal(32)
        repeated = Signal()
        place = Signal(range(MOST_DATA + 1))
        answers = Signal(Header)
        is_memory, is_read, legal = Signal(), Signal(), Signal()
        operation, length = header.operation, header.length
        aligned = (length[:3] == 0) & (header.argument[:3] == 0)
        with m.Switch(operation):
            with m.Case(Operation.READ_MEMORY, Operation.WRITE_MEMORY):
                m.d.comb += [is_memory.eq(1), legal.eq(aligned)]
            with m.Case(Operation.READ_REGISTERS):
                m.d.comb += legal.eq((length[:2] == 0) & (header.argument[:2] == 0))
            with m.Case(Operation.WRITE_REGISTER):
                m.d.comb += legal.eq((length == 4) & (header.argument[:2] == 0))
        m.d.comb += [
            self.transmit.eq(uart_transmitter.line),
            uart_receiver.line.eq(self.receive),
            receiver.error.eq(uart_receiver.error),
            is_read.eq(
                (operation == Operation.READ_MEMORY) | (operation == Operation.READ_REGISTERS)
            ),
            repeated.eq(
                known
                & (receiver.header.sequence == last_sequence)
                & (receiver.checksum == last_checksum)
            ),
            transmitter.header.eq(answers),
            transmitter.read_data.eq(word),
        ]
        m.d.sync += finished_before.eq(self.finished)
        with m.If(self.finished & ~finished_before):
            m.d.sync += event.eq(1)
        with m.If(receiver.request):
            m.d.sync += [
                waiting.eq(1),
                header.eq(receiver.header),
                known.eq(1),
                last_sequence.eq(receiver.header.sequence),
                last_checksum.eq(receiver.checksum),
            ]
        skip = Signal()
        with m.If(receiver.request):
            m.d.sync += skip.eq(repeated)

        half = Mux(place[2], word[32:], word[:32])
        half_enable = Mux(place[2], 0xF0, 0x0F)

        # Who writes and reads the buffer.
        fill, fill_data, fill_enable = Signal(), Signal(64), Signal(8)
        m.d.comb += [
            write.addr.eq(Mux(fill, place[3:], receiver.place[3:])),
            write.data.eq(Mux(fill, fill_data, receiver.value.replicate(8))),
            write.en.eq(Mux(fill, fill_enable, receiver.write << receiver.place[:3])),
            read.addr.eq(Mux(transmitter.busy, transmitter.read_address, place[3:])),
            memory.araddr.eq(header.argument + place),
            memory.awaddr.eq(header.argument + place),
            memory.arsize.eq(self._beat.bit_length() - 1),
            memory.awsize.eq(self._beat.bit_length() - 1),
            memory.arburst.eq(1),
            memory.awburst.eq(1),
            memory.wdata.eq(half if self._beat < GRAIN else word),
            memory.wstrb.eq(-1),
            memory.wlast.eq(1),
            memory.rready.eq(1),
            memory.bready.eq(1),
            registers.araddr.eq(header.argument + place),
            registers.awaddr.eq(header.argument),
            registers.wdata.eq(word[:32]),
            registers.wstrb.eq(-1),
            registers.rready.eq(1),
            registers.bready.eq(1),
        ]

        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += receiver.enable.eq(~waiting)
                m.d.sync += place.eq(0)
                with m.If(waiting):
                    m.next = "CHECK"
                with m.Elif(event & ~transmitter.busy):
                    m.d.sync += [event.eq(0), answers.eq(EVENT << 8)]
                    m.next = "EVENT"
            with m.State("EVENT"):
                m.d.comb += [receiver.enable.eq(~waiting), transmitter.start.eq(1)]
                m.next = "EVENT_SENT"
            with m.State("EVENT_SENT"):
                m.d.comb += receiver.enable.eq(~waiting)
                with m.If(~transmitter.busy):
                    m.next = "IDLE"
            with m.State("CHECK"):
                with m.If(~skip):
                    m.d.sync += status.eq(Status.OK)
                with m.If(~legal | (length == 0) | (length > MOST_DATA)):
                    m.d.sync += status.eq(Status.REFUSED)
                    m.next = "ANSWER"
                with m.Elif(is_memory & self.running):
                    m.d.sync += status.eq(Status.BUSY)
                    m.next = "ANSWER"
                with m.Elif(operation == Operation.READ_MEMORY):
                    m.d.sync += status.eq(Status.OK)
                    m.next = "READ_MEMORY"
                with m.Elif(operation == Operation.READ_REGISTERS):
                    m.d.sync += status.eq(Status.OK)
                    m.next = "READ_REGISTER"
                with m.Elif(skip):
                    m.next = "ANSWER"
                with m.Elif(operation == Operation.WRITE_MEMORY):
                    m.next = "FETCH"
                with m.Else():
                    m.next = "WRITE_REGISTER"

            with m.State("READ_MEMORY"):
                m.d.comb += memory.arvalid.eq(1)
                with m.If(memory.arready):
                    m.next = "READ_DATA"
            with m.State("READ_DATA"):
                read_data = memory.rdata.replicate(GRAIN // self._beat)
                m.d.comb += [fill.eq(1), fill_data.eq(read_data)]
                with m.If(memory.rvalid):
                    m.d.comb += fill_enable.eq(half_enable if self._beat < GRAIN else -1)
                    m.d.sync += place.eq(place + self._beat)
                    with m.If(place + self._beat == length):
                        m.next = "ANSWER"
                    with m.Else():
                        m.next = "READ_MEMORY"

            with m.State("FETCH"):
                m.next = "FETCHED"
            with m.State("FETCHED"):
                m.next = "WRITE_MEMORY"
            with m.State("WRITE_MEMORY"):
                m.d.comb += memory.awvalid.eq(1)
                with m.If(memory.awready):
                    m.next = "WRITE_DATA"
            with m.State("WRITE_DATA"):
                m.d.comb += memory.wvalid.eq(1)
                with m.If(memory.wready):
                    m.next = "WRITTEN"
            with m.State("WRITTEN"), m.If(memory.bvalid):
                m.d.sync += place.eq(place + self._beat)
                with m.If(place + self._beat == length):
                    m.next = "ANSWER"
                with m.Else():
                    m.next = "FETCH"

            with m.State("READ_REGISTER"):
                m.d.comb += registers.arvalid.eq(1)
                with m.If(registers.arready):
                    m.next = "REGISTER_DATA"
            with m.State("REGISTER_DATA"):
                m.d.comb += [fill.eq(1), fill_data.eq(registers.rdata.replicate(2))]
                with m.If(registers.rvalid):
                    m.d.comb += fill_enable.eq(half_enable)
                    m.d.sync += place.eq(place + 4)
                    with m.If(place + 4 == length):
                        m.next = "ANSWER"
                    with m.Else():
                        m.next = "READ_REGISTER"
            with m.State("WRITE_REGISTER"):
                m.d.comb += [registers.awvalid.eq(1), registers.wvalid.eq(1)]
                with m.If(registers.awready):
                    m.next = "REGISTER_WRITTEN"
            with m.State("REGISTER_WRITTEN"), m.If(registers.bvalid):
                m.next = "ANSWER"

            with m.State("ANSWER"), m.If(~transmitter.busy):
                m.d.sync += [
                    answers.sequence.eq(header.sequence),
                    answers.operation.eq(operation | RESPONSE),
                    answers.length.eq(Mux(is_read & (status == Status.OK), length, 0)),
                    answers.argument.eq(status),
                ]
                m.next = "SEND"
            with m.State("SEND"):
                m.d.comb += transmitter.start.eq(1)
                m.next = "SENT"
            with m.State("SENT"), m.If(~transmitter.busy):
                m.d.sync += waiting.eq(0)
                m.next = "IDLE"
        m.d.comb += transmitter.size.eq(answers.length)
        return m
