"""Material for the definition of an operator: operands, results and fresh names."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from dovetail.isa.frozen import frozen

from ..dtypes import DType
from ..graph.types import TensorType
from ..loops.expressions import Buffer, Cast, Constant, Expr, Select, Variable
from ..loops.ir import Stmt

__all__ = [
    "Anchor",
    "Element",
    "Indices",
    "Operand",
    "Result",
    "Scope",
    "converted",
    "index",
    "over",
    "zero",
]

Indices = tuple[Expr, ...]


@frozen
class Operand:
    """A tensor that is read element by element: a buffer, or what computes it.

    buffer: where it is in memory; None when it is computed as it is read.  start: where in the
    buffer it begins, when that is larger.
    """

    type: TensorType
    element: Callable[[Indices, bool], Expr]
    buffer: Buffer | None = None
    start: tuple[int, ...] = ()

    def __getitem__(self, indices: Indices) -> Expr:
        """The element at ``indices``, which are within the tensor wherever this is evaluated."""
        return self.element(indices, False)

    def where(self, condition: Expr, indices: Indices, other: Expr) -> Expr:
        """The element at ``indices`` where ``condition`` holds, else ``other``.

        The indices need to be within the tensor only where the condition holds.
        """
        return Select(condition, self.element(indices, True), other)

    def guarded(self, indices: Indices) -> Expr:
        """As ``[indices]``, in the branch of a ``Select`` or ``If`` that makes them valid."""
        return self.element(indices, True)

    def broadcast(self, indices: Indices) -> Expr:
        """The element that belongs to ``indices`` of a shape that this tensor broadcasts to."""
        used = indices[len(indices) - len(self.type.shape) :]
        return self[
            tuple(
                zero() if size == 1 else each
                for size, each in zip(self.type.shape, used, strict=True)
            )
        ]


@frozen
class Result:
    """A tensor that is written element by element, each once.

    store: the statement that writes a finished element, through the operators fused after it.
    buffer: where elements go when nothing is fused after; None otherwise.
    """

    type: TensorType
    store: Callable[[Indices, Expr], Stmt]
    buffer: Buffer | None = None


@dataclass(slots=True)
class Scope:
    """Fresh names for the loop variables and buffers of one function.

    statement: what its argument builds, in which operands' values that are used twice have names.
    """

    counts: dict[str, int] = field(default_factory=dict)
    statement: Callable[[Callable[[], Stmt]], Stmt] = field(default=lambda build: build())

    def fresh(self, stem: str) -> str:
        """``stem`` with a number that makes it unique."""
        number = self.counts[stem] = self.counts.get(stem, -1) + 1
        return f"{stem}{number}"


Element = Callable[[Any, Sequence[Operand], Indices], Expr]
"""The element at ``indices`` of the result of an operator without loops of its own."""

Anchor = Callable[[Any, Sequence[Operand], Sequence[Result], Scope], Stmt]
"""The statement that computes the results of an operator with loops of its own."""


def index(value: int) -> Constant:
    """A constant index."""
    return Constant(value, DType.INT64)


def zero() -> Constant:
    """Index 0."""
    return index(0)


def converted(value: Expr, dtype: DType) -> Expr:
    """``value`` as ``dtype``."""
    return value if value.dtype == dtype else Cast(dtype, value)


def over(
    shape: Sequence[int], stem: str, scope: Scope
) -> tuple[tuple[tuple[str, int], ...], Indices]:
    """Loops over ``shape``, and the indices in them; there is no loop over a dimension of 1.

    What is fused around an operator knows its elements by such indices.
    """
    names = tuple((scope.fresh(stem), size) for size in shape)
    indices = tuple(zero() if size == 1 else Variable(name) for name, size in names)
    return tuple((name, size) for name, size in names if size != 1), indices
