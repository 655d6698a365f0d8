"""Address generation for affine loop nests, without multipliers."""

from collections.abc import Sequence

from amaranth.hdl import Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from .pipeline import delayed
from .ports import ADDRESS_BITS

__all__ = ["NestWalker"]


class NestWalker(wiring.Component):
    """Visit every iteration of a loop nest, one in ``cycles`` cycles, level 0 varying fastest.

    For each operand the walker keeps, for each level, the address at which all lower levels
    begin.  A step adds the stride of the lowest level that has not ended to that level's address,
    and copies the sum to all levels below: one adder an operand.  The flags are registers, so that
    the path of a step is: choose the level, choose its address and stride, add.

    Parameters
    ----------
    levels : int
        Depth of the nest.
    extent_bits : int
        Width of each extent (1 to ``2**extent_bits - 1``).
    operands : sequence of str
        Name of each operand.
    cycles : int
        Cycles that each iteration stays; with more than one, a step is chosen a cycle before it is
        taken.

    Members
    -------
    start : In(1)
        Take a new nest from the other inputs; the first iteration is in the next cycle.
    extents, <operand>_base, <operand>_strides : In
        The nest; read only with ``start``.
    valid : Out(1)
        An iteration is visited in this cycle.
    index_zero, index_last : Out(levels)
        Whether each level's index is 0, or its last.
    index_odd : Out(1)
        Lowest bit of level 0's index.
    turn : Out(cycles)
        Which cycle of the iteration this is, one bit each.
    last : Out(1)
        This is the last cycle of the last iteration.
    <operand> : Out(ADDRESS_BITS)
        Address of this iteration.
    """

    def __init__(
        self, levels: int, extent_bits: int, operands: Sequence[str], cycles: int = 1
    ) -> None:
        self._levels = levels
        self._cycles = cycles
        self._extent_bits = extent_bits
        self._operands = tuple(operands)
        members = {
            "start": In(1),
            "extents": In(data.ArrayLayout(unsigned(extent_bits), levels)),
            "valid": Out(1),
            "index_zero": Out(levels),
            "index_last": Out(levels),
            "index_odd": Out(1),
            "turn": Out(cycles, init=1),
            "last": Out(1),
        }
        for name in operands:
            members[f"{name}_base"] = In(ADDRESS_BITS)
            members[f"{name}_strides"] = In(data.ArrayLayout(unsigned(ADDRESS_BITS), levels))
            members[name] = Out(ADDRESS_BITS)
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        levels = range(self._levels)
        # Only ``valid`` needs a reset: all else is set by the start.
        zero = Signal(self._levels, reset_less=True)
        at_end = Signal(self._levels, reset_less=True)
        odd = Signal(reset_less=True)
        steps = self.valid & self.turn[-1]
        m.d.comb += [
            self.index_zero.eq(zero),
            self.index_last.eq(at_end),
            self.index_odd.eq(odd),
            self.last.eq(steps & at_end.all()),
        ]
        with m.If(self.start):
            m.d.sync += [self.valid.eq(1), odd.eq(0)]
        with m.Elif(self.last):
            m.d.sync += self.valid.eq(0)
        with m.Elif(self.turn[-1]):
            m.d.sync += odd.eq(~at_end[0] & ~odd)
        if self._cycles == 1:
            m.d.comb += self.turn.eq(1)
        else:
            with m.If(self.start):
                m.d.sync += self.turn.eq(1)
            with m.Else():
                m.d.sync += self.turn.eq(self.turn.rotate_left(1))
        # moves[L]: all levels below L are at their ends, so L steps, or begins again if it is at
        # its own.
        moves = [steps & at_end[:level].all() for level in levels]
        if self._cycles > 1:
            # The flags stay for an iteration: known a cycle earlier.
            early = self.valid & self.turn[-2]
            moves = [delayed(m, early & at_end[:level].all(), f"moves{level}") for level in levels]
        for level in levels:
            self._level(m, level, moves[level], zero[level], at_end[level])
        for name in self._operands:
            self._operand(m, name, moves, at_end)
        return m

    def _level(self, m: Module, level: int, moves: Value, zero: Value, at_end: Value) -> None:
        """Count the steps left on one level, and keep its flags."""
        extent = self.extents[level]
        steps = Signal(self._extent_bits, name=f"steps{level}", reset_less=True)
        left = Signal(self._extent_bits, name=f"left{level}", reset_less=True)
        with m.If(self.start):
            m.d.sync += [steps.eq(extent - 1), left.eq(extent - 1)]
            m.d.sync += [zero.eq(1), at_end.eq(extent == 1)]
        with m.Elif(moves):
            with m.If(at_end):
                # At its end with index 0: the extent is 1, and it stays at its end.
                m.d.sync += [left.eq(steps), zero.eq(1), at_end.eq(zero)]
            with m.Else():
                m.d.sync += [left.eq(left - 1), zero.eq(0), at_end.eq(left == 1)]

    def _operand(self, m: Module, name: str, moves: list[Value], at_end: Value) -> None:
        levels = range(self._levels)
        begin = [
            Signal(ADDRESS_BITS, name=f"{name}_begin{level}", reset_less=True) for level in levels
        ]
        stride = [
            Signal(ADDRESS_BITS, name=f"{name}_stride{level}", reset_less=True) for level in levels
        ]
        following = Signal(ADDRESS_BITS, name=f"{name}_following")
        chosen_begin, chosen_stride = begin[-1], stride[-1]
        for level in reversed(levels[:-1]):
            chosen_begin = Mux(at_end[level], chosen_begin, begin[level])
            chosen_stride = Mux(at_end[level], chosen_stride, stride[level])
        if self._cycles > 1:
            # Level and stride stay for an iteration: chosen a cycle earlier.
            chosen_begin = delayed(m, chosen_begin, f"{name}_chosen_begin")
            chosen_stride = delayed(m, chosen_stride, f"{name}_chosen_stride")
        m.d.comb += [following.eq(chosen_begin + chosen_stride), getattr(self, name).eq(begin[0])]
        with m.If(self.start):
            for level in levels:
                m.d.sync += [
                    begin[level].eq(getattr(self, f"{name}_base")),
                    stride[level].eq(getattr(self, f"{name}_strides")[level]),
                ]
        with m.Else():
            for level in levels:
                with m.If(moves[level]):
                    m.d.sync += begin[level].eq(following)
