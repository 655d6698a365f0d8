"""A queue whose head is in registers."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

__all__ = ["HeadQueue"]


class HeadQueue(wiring.Component):
    """First in, first out; what is pushed in cycle ``t`` is at the head of an empty queue in
    ``t + 1``.

    Pushing and popping in one cycle is allowed; neither passes through in it.  The head and its
    flag are registers, so that what is decided from them has a whole cycle.

    Members
    -------
    push : In(1), push_data : In(width)
        Ignored while not ``room``.
    room : Out(1)
        Fewer than ``depth`` are held.
    valid : Out(1), head : Out(width)
    pop : In(1)
        Ignored while not ``valid``.
    """

    def __init__(self, width: int, depth: int) -> None:
        self._width, self._depth = width, depth
        super().__init__(
            {
                "push": In(1),
                "push_data": In(width),
                "room": Out(1, init=1),
                "valid": Out(1),
                "head": Out(width),
                "pop": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # Behind the head: a ring of ``depth - 1`` at most.
        m.submodules.rest = rest = Memory(shape=self._width, depth=self._depth, init=[])
        write, read = rest.write_port(), rest.read_port(domain="comb")
        held = Signal(range(self._depth + 1))
        stored, pushes, pops = Signal(), Signal(), Signal()
        m.d.comb += [
            pushes.eq(self.push & self.room),
            pops.eq(self.pop & self.valid),
            write.data.eq(self.push_data),
            # Into the head when nothing else can follow it.
            write.en.eq(pushes & (stored | (self.valid & ~pops))),
        ]
        # The flags for each case are known before it is known which one it is.
        with m.If(pushes & ~pops):
            m.d.sync += [held.eq(held + 1), stored.eq(self.valid), self.valid.eq(1)]
            m.d.sync += self.room.eq(held < self._depth - 1)
        with m.Elif(pops & ~pushes):
            m.d.sync += [held.eq(held - 1), stored.eq(held > 2), self.valid.eq(stored)]
            m.d.sync += self.room.eq(1)
        with m.If(write.en):
            m.d.sync += write.addr.eq(Mux(write.addr == self._depth - 1, 0, write.addr + 1))
        with m.If(~self.valid | self.pop):
            m.d.sync += self.head.eq(Mux(stored, read.data, self.push_data))
        with m.If(pops & stored):
            m.d.sync += read.addr.eq(Mux(read.addr == self._depth - 1, 0, read.addr + 1))
        return m
