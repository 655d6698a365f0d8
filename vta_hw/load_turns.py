"""The order of LOAD's instructions, where the next one asks for its data early."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from . import layouts

__all__ = ["LoadTurns"]


class LoadTurns(wiring.Component):
    """The instruction whose data arrives, and one more, whose bursts are asked for meanwhile.

    An instruction's turn is over when all its data has come and all its cells are visited.  The
    next one's begins in the cycle after that.

    Members
    -------
    start : In(1)
        Take ``instruction``, the program's number ``index``; not while one is ``waiting``.
    instruction : In(layouts.LOAD), index : In(32)
    has_data, has_cells : In(1)
        Whether ``instruction`` reads anything, and whether it visits cells.
    last_beat : In(1)
        The last beat of ``current`` comes in this cycle; it is written in the next one.
    last_cell : In(1)
        The last cell of ``current`` is visited.
    current : Out(layouts.LOAD)
        The instruction whose turn it is, from the cycle after ``start`` on at the earliest.
    data_left, cells_left : Out(1)
        What is left of it.
    waiting : Out(1)
        One more was taken.
    walks : Out(1), walked : Out(layouts.LOAD)
        The words of ``walked``, which comes from registers, are next; before its first beat comes.
    busy : Out(1)
        An instruction was taken and has not ended.
    done : Out(1)
        The oldest one ends: its last word or cell is written.
    burst_index, beat_index : Out(32)
        Numbers of the instruction that asks for bursts, and of the one whose data arrives.
    """

    start: In(1)
    instruction: In(layouts.LOAD)
    index: In(32)
    has_data: In(1)
    has_cells: In(1)
    last_beat: In(1)
    last_cell: In(1)
    current: Out(layouts.LOAD)
    data_left: Out(1)
    cells_left: Out(1)
    waiting: Out(1)
    walks: Out(1)
    walked: Out(layouts.LOAD)
    busy: Out(1)
    done: Out(1)
    burst_index: Out(32)
    beat_index: Out(32)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        following = Signal(layouts.LOAD, reset_less=True)
        following_index = Signal(32, reset_less=True)
        following_data, following_cells = Signal(), Signal()
        occupied, over, written, begun = Signal(), Signal(), Signal(), Signal()
        flying = Signal(2)
        cells_over = ~self.cells_left | self.last_cell
        m.d.comb += over.eq(
            (self.last_beat & cells_over) | (self.last_cell & ~self.data_left & occupied)
        )

        with m.If(self.last_beat):
            m.d.sync += self.data_left.eq(0)
        with m.If(self.last_cell):
            m.d.sync += self.cells_left.eq(0)
        with m.If(over & self.waiting):
            m.d.sync += [
                self.waiting.eq(0),
                self.current.eq(following),
                self.beat_index.eq(following_index),
                self.data_left.eq(following_data),
                self.cells_left.eq(following_cells),
            ]
        with m.Elif(self.start & (over | ~occupied)):
            m.d.sync += [
                occupied.eq(1),
                self.current.eq(self.instruction),
                self.beat_index.eq(self.index),
                self.data_left.eq(self.has_data),
                self.cells_left.eq(self.has_cells),
            ]
        with m.Elif(self.start):
            m.d.sync += [
                self.waiting.eq(1),
                following.eq(self.instruction),
                following_index.eq(self.index),
                following_data.eq(self.has_data),
                following_cells.eq(self.has_cells),
            ]
        with m.Elif(over):
            m.d.sync += occupied.eq(0)

        m.d.sync += [
            begun.eq(self.start & (over | ~occupied)),
            written.eq(self.last_beat & cells_over),
            flying.eq(flying + self.start - self.done),
            self.busy.eq(self.start | (flying > 1) | ((flying == 1) & ~self.done)),
        ]
        m.d.comb += [
            # None waits in the cycle after one began at once: it has bursts or cells left.
            self.walks.eq(begun | (over & self.waiting)),
            self.walked.eq(Mux(self.waiting, following, self.current)),
            self.done.eq(written | (over & ~self.last_beat)),
            self.burst_index.eq(Mux(self.waiting, following_index, self.beat_index)),
        ]
        return m
