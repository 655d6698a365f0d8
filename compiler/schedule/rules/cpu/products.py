"""Sums of products as the rules see them: sizes of loops, and how operands move with each."""

from collections.abc import Sequence
from math import prod

from dovetail.isa.frozen import frozen, replace

from ....dtypes import DType
from ....loops.affine import Linear, linear
from ....loops.expressions import Buffer, Expr, Load, Variable
from ....loops.traverse import expressions, variables
from ...steps.reduction import Reduction

__all__ = ["Axis", "Operand", "Products", "products_of"]

Axis = tuple[tuple[str, int], ...]
"""(loop, step) pairs: the index is the sum of ``step * loop``, and of a constant."""


@frozen
class Operand:
    """An element that a product reads, of a buffer outside; load: as it is written.

    shifts: the constants in its indices.
    """

    load: Load
    axes: tuple[Axis, ...]
    shifts: tuple[int, ...]

    @property
    def buffer(self) -> Buffer:
        """The buffer that is read."""
        return self.load.buffer


@frozen
class Products:
    """sizes: of the loops.  kept: those around the sum, outermost first.  summed: its own.

    reads: the operands.  dtype: of the sum.
    """

    sizes: dict[str, int]
    reads: tuple[Operand, ...]
    kept: tuple[str, ...]
    summed: tuple[str, ...]
    dtype: DType

    @property
    def operands(self) -> tuple[tuple[Axis, ...], ...]:
        """How each operand moves with the loops, dimension by dimension."""
        return tuple(read.axes for read in self.reads)

    @property
    def labels(self) -> list[set[str]]:
        """The loops that each operand moves with."""
        return [{name for axis in axes for name, _ in axis} for axes in self.operands]

    def extent(self, axis: Axis) -> int:
        """The number of indices that are read on an axis, gaps included."""
        if any(self.sizes[name] == 0 for name, _ in axis):
            return 0
        return sum(step * (self.sizes[name] - 1) for name, step in axis) + 1

    def elements(self, axes: Sequence[Axis]) -> int:
        """The number of elements that an operand reads, gaps included."""
        return prod(self.extent(axis) for axis in axes)

    def without(self, name: str, last: Operand) -> "Products":
        """The same in one iteration of the loop ``name`` of the sum, the last axis of ``last``."""
        reads = []
        for read in self.reads:
            axes = tuple(tuple(x for x in axis if x[0] != name) for axis in read.axes)
            reads.append(replace(read, axes=axes[:-1] if read is last else axes))
        summed = tuple(each for each in self.summed if each != name)
        return replace(self, reads=tuple(reads), summed=summed)


def products_of(nest: Reduction) -> Products:
    """Products that the reduction ``nest`` sums, with all loops directly around it."""
    kept = tuple(loop.variable for loop in nest.kept)
    summed = tuple(loop.variable for loop in nest.summed)
    loads = (each for each in expressions(nest.update.value) if isinstance(each, Load))
    reads = tuple(_operand(load, nest.sizes) for load in dict.fromkeys(loads))
    return Products(nest.sizes, reads, kept, summed, nest.register.dtype)


def _operand(load: Load, sizes: dict[str, int]) -> Operand:
    forms = [linear(index) for index in load.indices]
    width = load.buffer.shape[-1] if load.buffer.shape else 1
    axes = tuple(_axis(form, sizes, width) for form in forms)
    return Operand(load, axes, tuple(form.constant for form in forms))


def _axis(form: Linear, sizes: dict[str, int], width: int) -> Axis:
    """Loops that move it in another way than by steps count as if they led far away."""
    steps: dict[str, int] = {}
    for atom, factor in form.terms.items():
        if isinstance(atom, Variable):
            if atom.name in sizes:
                steps[atom.name] = steps.get(atom.name, 0) + abs(factor)
        else:
            for name in _names(atom, sizes):
                steps[name] = steps.get(name, 0) + max(width, 2)
    return tuple(steps.items())


def _names(atom: Expr, sizes: dict[str, int]) -> list[str]:
    found = variables(atom)
    return [name for name in sizes if name in found]
