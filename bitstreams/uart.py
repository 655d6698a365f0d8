"""Bytes over an asynchronous serial line: 8 data bits, no parity, one stop bit."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

__all__ = ["UartReceiver", "UartTransmitter"]

BITS = 10
"""Bits that a byte takes on the line: start, eight, stop."""


class UartReceiver(wiring.Component):
    """Line to bytes.  A byte without its stop bit is dropped, and ``error`` is high for a cycle.

    Bits are sampled in their middle: the sender's clock may differ by 4 %.

    Members
    -------
    line : In(1)
        Idle high; asynchronous.
    bytes : Out(stream.Signature(8, always_ready=True))
    error : Out(1)
    """

    line: In(1)
    bytes: Out(stream.Signature(8, always_ready=True))
    error: Out(1)

    def __init__(self, divisor: int) -> None:
        """``divisor``: clock cycles of a bit."""
        self._divisor = divisor
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        line = Signal(init=1)
        m.submodules.synchronizer = FFSynchronizer(self.line, line, init=1)
        timer, left = Signal(range(self._divisor)), Signal(range(BITS + 1))
        shift = Signal(BITS - 1)
        m.d.sync += [self.bytes.valid.eq(0), self.error.eq(0)]
        with m.If(left == 0), m.If(~line):
            m.d.sync += [timer.eq(self._divisor // 2 - 1), left.eq(BITS)]
        with m.Elif(timer != 0):
            m.d.sync += timer.eq(timer - 1)
        with m.Else():
            m.d.sync += [
                timer.eq(self._divisor - 1),
                left.eq(left - 1),
                shift.eq(Cat(shift[1:], line)),
            ]
            with m.If((left == BITS) & line):
                # Too short for a start bit.
                m.d.sync += left.eq(0)
            with m.Elif(left == 1):
                m.d.sync += [
                    self.bytes.payload.eq(shift[1:]),
                    self.bytes.valid.eq(line),
                    self.error.eq(~line),
                ]
        return m


class UartTransmitter(wiring.Component):
    """Bytes to line.

    Members
    -------
    bytes : In(stream.Signature(8))
    line : Out(1)
    """

    bytes: In(stream.Signature(8))
    line: Out(1, init=1)

    def __init__(self, divisor: int) -> None:
        """``divisor``: clock cycles of a bit."""
        self._divisor = divisor
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        timer, left = Signal(range(self._divisor)), Signal(range(BITS + 1))
        shift = Signal(BITS, init=(1 << BITS) - 1)
        m.d.comb += self.bytes.ready.eq(left == 0)
        m.d.sync += self.line.eq(shift[0])
        with m.If(left == 0), m.If(self.bytes.valid):
            m.d.sync += [
                shift.eq(Cat(0, self.bytes.payload, 1)),
                left.eq(BITS),
                timer.eq(self._divisor - 1),
            ]
        with m.Elif(timer != 0):
            m.d.sync += timer.eq(timer - 1)
        with m.Else():
            m.d.sync += [
                timer.eq(self._divisor - 1),
                left.eq(left - 1),
                shift.eq(Cat(shift[1:], 1)),
            ]
        return m
