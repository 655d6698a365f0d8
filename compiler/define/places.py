"""Where a contraction reads and writes: indices as sums of labels times steps."""

from collections.abc import Mapping, Sequence

from ..loops.expressions import Constant, Expr
from .operand import zero

__all__ = ["affine", "plus"]


def affine(axis: Sequence[tuple[int, int]], labels: Mapping[int, Expr]) -> Expr:
    """The sum of ``label * step`` along ``axis``."""
    total: Expr = zero()
    for label, step in axis:
        value = labels[label]
        total = plus(total, value * step if step != 1 else value)
    return total


def plus(a: Expr, b: Expr) -> Expr:
    """``a + b``; a constant 0 is left out."""
    if isinstance(a, Constant) and a.value == 0:
        return b
    if isinstance(b, Constant) and b.value == 0:
        return a
    return a + b
