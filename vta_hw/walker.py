"""Scratchpad addresses of a z, y, x block."""

from amaranth.hdl import Module, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .ports import ADDRESS_BITS

__all__ = ["BlockWalker"]


class BlockWalker(wiring.Component):
    """Visit the cells of a z, y, x block, x fastest; one cell a ``step``.

    Members
    -------
    start : In(1)
        Take a block; its first cell is current in the next cycle.
    address, stride_x, stride_y, stride_z, count_x, count_y, count_z : In
        The block, in words; counts are at least 1.
    step : In(1)
        Go on to the next cell.
    x, y : Out
        Indices of the current cell.
    cell : Out(ADDRESS_BITS)
        Address of the current cell.
    last : Out(1)
        The current cell is the last.
    """

    start: In(1)
    address: In(ADDRESS_BITS)
    stride_x: In(9, init=1)
    stride_y: In(signed(ADDRESS_BITS))
    stride_z: In(signed(ADDRESS_BITS))
    count_x: In(13)
    count_y: In(13)
    count_z: In(12)
    step: In(1)
    x: Out(13)
    y: Out(13)
    cell: Out(ADDRESS_BITS)
    last: Out(1)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        row, plane = Signal(ADDRESS_BITS), Signal(ADDRESS_BITS)
        stride_x, stride_y, stride_z = Signal(9), Signal(ADDRESS_BITS), Signal(ADDRESS_BITS)
        left_z = Signal(12)
        next_row, next_plane = Signal(ADDRESS_BITS), Signal(ADDRESS_BITS)
        # The flags are registers: a step depends on no comparison.
        steps_x, ends_row = self._steps(m, "x", self.count_x, self.step)
        steps_y, ends_plane = self._steps(m, "y", self.count_y, self.step & ends_row)
        end_z = Signal()
        m.d.comb += [
            next_row.eq(row + stride_y),
            next_plane.eq(plane + stride_z),
            self.last.eq(ends_row & ends_plane & end_z),
        ]
        with m.If(self.start):
            m.d.sync += [
                *(register.eq(self.address) for register in (row, plane, self.cell)),
                stride_x.eq(self.stride_x),
                stride_y.eq(self.stride_y),
                stride_z.eq(self.stride_z),
                left_z.eq(self.count_z),
                end_z.eq(self.count_z == 1),
                self.x.eq(0),
                self.y.eq(0),
            ]
        with m.Elif(steps_x):
            m.d.sync += [self.x.eq(self.x + 1), self.cell.eq(self.cell + stride_x)]
        with m.Elif(steps_y):
            m.d.sync += [self.x.eq(0), self.y.eq(self.y + 1)]
            m.d.sync += [row.eq(next_row), self.cell.eq(next_row)]
        with m.Elif(self.step):
            m.d.sync += [self.x.eq(0), self.y.eq(0), left_z.eq(left_z - 1), end_z.eq(left_z == 2)]
            m.d.sync += [register.eq(next_plane) for register in (plane, row, self.cell)]
        return m

    def _steps(self, m: Module, name: str, count: Value, step: Value) -> tuple[Value, Signal]:
        """True if an index goes on in this cycle, if it has to ``step``; and if it is its last."""
        only, last = Signal(name=f"only_{name}"), Signal(name=f"last_{name}")
        whole, left = Signal(13, name=f"whole_{name}"), Signal(13, name=f"left_{name}")
        with m.If(self.start):
            m.d.sync += [whole.eq(count - 1), left.eq(count - 1)]
            m.d.sync += [only.eq(count == 1), last.eq(count == 1)]
        with m.Elif(step & last):
            m.d.sync += [left.eq(whole), last.eq(only)]
        with m.Elif(step):
            m.d.sync += [left.eq(left - 1), last.eq(left == 1)]
        return step & ~last, last
