"""Address generation for affine loop nests, without multipliers."""

from collections.abc import Mapping

from amaranth.hdl import Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from .ports import ADDRESS_BITS

__all__ = ["NestWalker"]


class NestWalker(wiring.Component):
    """Visit every iteration of a loop nest, one a cycle, level 0 varying fastest.

    For each operand the walker keeps, for each level, the address at which all lower levels begin.
    A step adds the stride of the lowest level that has not ended to that level's address, and
    copies the sum to all levels below: one adder an operand.

    Parameters
    ----------
    levels : int
        Depth of the nest.
    extent_bits : int
        Width of each extent (1 to ``2**extent_bits - 1``).
    operands : mapping of str to int
        Name of each operand and the width of its strides.

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
    last : Out(1)
        This is the last iteration.
    <operand> : Out(ADDRESS_BITS)
        Address of this iteration.
    """

    def __init__(self, levels: int, extent_bits: int, operands: Mapping[str, int]) -> None:
        self._levels = levels
        self._extent_bits = extent_bits
        self._operands = dict(operands)
        members = {
            "start": In(1),
            "extents": In(data.ArrayLayout(unsigned(extent_bits), levels)),
            "valid": Out(1),
            "index_zero": Out(levels),
            "index_last": Out(levels),
            "index_odd": Out(1),
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
        index = [Signal(self._extent_bits, name=f"index{level}") for level in levels]
        final = [Signal(self._extent_bits, name=f"final{level}") for level in levels]
        for level in levels:
            m.d.comb += [
                self.index_zero[level].eq(index[level] == 0),
                self.index_last[level].eq(index[level] == final[level]),
            ]
        m.d.comb += [
            self.index_odd.eq(index[0][0]),
            self.last.eq(self.valid & self.index_last.all()),
        ]
        # The level that steps: the lowest whose index is not at its end.
        steps = [
            ~self.index_last[level] & self.index_last[:level].all()
            if level
            else ~self.index_last[0]
            for level in levels
        ]
        with m.If(self.start):
            m.d.sync += self.valid.eq(1)
            for level in levels:
                m.d.sync += [index[level].eq(0), final[level].eq(self.extents[level] - 1)]
        with m.Elif(self.last):
            m.d.sync += self.valid.eq(0)
        with m.Elif(self.valid):
            for level in levels:
                with m.If(steps[level]):
                    m.d.sync += index[level].eq(index[level] + 1)
                    m.d.sync += [index[lower].eq(0) for lower in range(level)]
        for name in self._operands:
            self._operand(m, name, steps)
        return m

    def _operand(self, m: Module, name: str, steps: list[Value]) -> None:
        levels = range(self._levels)
        begin = [Signal(ADDRESS_BITS, name=f"{name}_begin{level}") for level in levels]
        stride = [Signal(ADDRESS_BITS, name=f"{name}_stride{level}") for level in levels]
        following = Signal(ADDRESS_BITS, name=f"{name}_following")
        chosen_begin, chosen_stride = begin[-1], stride[-1]
        for level in reversed(levels[:-1]):
            chosen_begin = Mux(steps[level], begin[level], chosen_begin)
            chosen_stride = Mux(steps[level], stride[level], chosen_stride)
        m.d.comb += [following.eq(chosen_begin + chosen_stride), getattr(self, name).eq(begin[0])]
        with m.If(self.start):
            for level in levels:
                m.d.sync += [
                    begin[level].eq(getattr(self, f"{name}_base")),
                    stride[level].eq(getattr(self, f"{name}_strides")[level]),
                ]
        with m.Elif(self.valid):
            for level in levels:
                # Level L begins anew whenever it or a higher level steps.
                with m.If(self.index_last[:level].all() if level else 1):
                    m.d.sync += begin[level].eq(following)
