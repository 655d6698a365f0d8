"""Frames of the host's link in gateware: bytes to requests, responses to bytes."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.crc import Processor
from amaranth.lib.crc.catalog import CRC32_ISO_HDLC
from amaranth.lib.wiring import In, Out

from dovetail.isa.link import (
    CRC_BYTES,
    END,
    ESCAPE,
    ESCAPED_END,
    ESCAPED_ESCAPE,
    HEADER_BYTES,
    MOST_DATA,
    Operation,
)

__all__ = ["BUFFER_WORDS", "FrameReceiver", "FrameTransmitter", "Header"]

BUFFER_WORDS = MOST_DATA // 8
"""64-bit words of the buffer that holds a frame's data."""

Header = data.StructLayout({"sequence": 8, "operation": 8, "length": 16, "argument": 32})
COUNT_BITS = (HEADER_BYTES + MOST_DATA + CRC_BYTES).bit_length()


class FrameReceiver(wiring.Component):
    """Finds requests in a byte stream; whatever is damaged is dropped.

    Members
    -------
    bytes : In(stream.Signature(8, always_ready=True))
    error : In(1)
        A byte was lost: the frame it belongs to is dropped.
    enable : In(1)
        Requests are taken; one with a byte that arrives while it is low is dropped.
    request : Out(1)
        ``header`` and the buffer hold a whole, undamaged request; for one cycle.
    header : Out(Header), checksum : Out(32)
    write : Out(1), place : Out, value : Out(8)
        Byte ``place`` of the buffer is ``value``.
    """

    bytes: In(stream.Signature(8, always_ready=True))
    error: In(1)
    enable: In(1)
    request: Out(1)
    header: Out(Header)
    checksum: Out(32)
    write: Out(1)
    place: Out((MOST_DATA - 1).bit_length())
    value: Out(8)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.crc = crc = Processor(CRC32_ISO_HDLC(data_width=8))
        found = self.bytes.payload
        count, escaped, broken = Signal(COUNT_BITS), Signal(), Signal()
        value, valid = Signal(8), Signal()
        place = Signal(COUNT_BITS)
        carries, expected = Signal(), Signal(COUNT_BITS + 1)
        header = Signal(Header)
        m.d.comb += [
            carries.eq(
                (header.operation == Operation.WRITE_MEMORY)
                | (header.operation == Operation.WRITE_REGISTER)
            ),
            expected.eq(HEADER_BYTES + CRC_BYTES + Mux(carries, header.length[:COUNT_BITS], 0)),
            place.eq(count - HEADER_BYTES),
            self.header.eq(header),
            self.place.eq(place),
            self.value.eq(value),
            self.write.eq(
                valid
                & carries
                & (count >= HEADER_BYTES)
                & (place < header.length)
                # A length beyond the buffer never matches.
                & (header.length <= MOST_DATA)
            ),
            crc.start.eq(valid & (count == 0)),
            crc.valid.eq(valid),
            crc.data.eq(value),
        ]
        m.d.sync += self.request.eq(0)
        with m.If(self.error):
            m.d.sync += broken.eq(1)
        with m.If(self.bytes.valid):
            with m.If(found == END):
                m.d.sync += [count.eq(0), escaped.eq(0), broken.eq(0)]
                whole = (count == expected) & (header.length <= MOST_DATA) & crc.match_detected
                m.d.sync += self.request.eq(
                    whole & (count >= HEADER_BYTES + CRC_BYTES) & ~broken & ~escaped & self.enable
                )
            with m.Elif(~self.enable | (count == (1 << COUNT_BITS) - 1)):
                m.d.sync += broken.eq(1)
            with m.Elif(escaped):
                m.d.sync += escaped.eq(0)
                m.d.comb += [
                    value.eq(Mux(found == ESCAPED_END, END, ESCAPE)),
                    valid.eq((found == ESCAPED_END) | (found == ESCAPED_ESCAPE)),
                ]
                with m.If(~valid):
                    m.d.sync += broken.eq(1)
            with m.Elif(found == ESCAPE):
                m.d.sync += escaped.eq(1)
            with m.Else():
                m.d.comb += [value.eq(found), valid.eq(1)]
        with m.If(valid):
            m.d.sync += [count.eq(count + 1), self.checksum.eq(Cat(self.checksum[8:], value))]
            with m.If(count < HEADER_BYTES):
                m.d.sync += header.eq(Cat(header.as_value()[8:], value))
        return m


class FrameTransmitter(wiring.Component):
    """Sends one frame; its data come from the buffer.

    Members
    -------
    start : In(1)
        Send ``header`` and ``size`` bytes of data, which stay as they are until ``busy`` is low.
    header : In(Header), size : In
    busy : Out(1)
    read_address : Out, read_data : In(64)
        Of the buffer; the word comes two cycles after its address.
    bytes : Out(stream.Signature(8))
    """

    start: In(1)
    header: In(Header)
    size: In(MOST_DATA.bit_length())
    busy: Out(1)
    read_address: Out((BUFFER_WORDS - 1).bit_length())
    read_data: In(64)
    bytes: Out(stream.Signature(8))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.crc = crc = Processor(CRC32_ISO_HDLC(data_width=8))
        place, left = Signal(COUNT_BITS), Signal(range(CRC_BYTES + 1))
        value, special, checksum = Signal(8), Signal(), Signal(32)
        offset = Signal(COUNT_BITS)
        m.d.comb += [
            self.busy.eq(1),
            offset.eq(place - HEADER_BYTES),
            self.read_address.eq(offset[3:]),
            special.eq((value == END) | (value == ESCAPE)),
        ]
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += [self.busy.eq(0), crc.start.eq(1)]
                m.d.sync += [place.eq(0), left.eq(CRC_BYTES)]
                with m.If(self.start):
                    m.next = "BEGIN"
            with m.State("BEGIN"):
                m.d.comb += [self.bytes.payload.eq(END), self.bytes.valid.eq(1)]
                with m.If(self.bytes.ready):
                    m.next = "READ"
            with m.State("READ"):
                m.next = "WAIT"
            with m.State("WAIT"):
                m.next = "CHOOSE"
            with m.State("CHOOSE"):
                with m.If(place < HEADER_BYTES):
                    m.d.sync += value.eq(self.header.as_value().word_select(place[:3], 8))
                    m.next = "CHECK"
                with m.Elif(offset < self.size):
                    m.d.sync += value.eq(self.read_data.word_select(offset[:3], 8))
                    m.next = "CHECK"
                with m.Elif(left != 0):
                    with m.If(left == CRC_BYTES):
                        m.d.sync += [value.eq(crc.crc[:8]), checksum.eq(crc.crc[8:])]
                    with m.Else():
                        m.d.sync += [value.eq(checksum[:8]), checksum.eq(checksum[8:])]
                    m.d.sync += left.eq(left - 1)
                    m.next = "SEND"
                with m.Else():
                    m.next = "END"
            with m.State("CHECK"):
                m.d.comb += [crc.valid.eq(1), crc.data.eq(value)]
                m.d.sync += place.eq(place + 1)
                m.next = "SEND"
            with m.State("SEND"):
                m.d.comb += [
                    self.bytes.valid.eq(1),
                    self.bytes.payload.eq(Mux(special, ESCAPE, value)),
                ]
                with m.If(self.bytes.ready):
                    with m.If(special):
                        m.next = "ESCAPED"
                    with m.Else():
                        m.next = "READ"
            with m.State("ESCAPED"):
                m.d.comb += [
                    self.bytes.valid.eq(1),
                    self.bytes.payload.eq(Mux(value == END, ESCAPED_END, ESCAPED_ESCAPE)),
                ]
                with m.If(self.bytes.ready):
                    m.next = "READ"
            with m.State("END"):
                m.d.comb += [self.bytes.payload.eq(END), self.bytes.valid.eq(1)]
                with m.If(self.bytes.ready):
                    m.next = "IDLE"
        return m
