"""Short names for the operators that converters add most."""

from collections.abc import Callable

import numpy as np

from ...dtypes import DType
from ...graph.operators.elementwise import Binary, BinaryFunction, Cast, Unary, UnaryFunction, Where
from ...graph.operators.movement import Expand, Reshape, Slice, Transpose
from .context import ImportContext, Tensor

__all__ = [
    "add",
    "binary",
    "broadcast",
    "cast",
    "clip",
    "div",
    "equal",
    "exp",
    "less",
    "logical_not",
    "maximum",
    "minimum",
    "mul",
    "normalise_axis",
    "reshape",
    "scalar",
    "sigmoid",
    "slice_axis",
    "sqrt",
    "sub",
    "transpose",
    "unary",
    "where",
]


def scalar(ctx: ImportContext, value: float, like: Tensor | DType) -> Tensor:
    """A constant of no dimension, of a dtype or of a tensor's."""
    dtype = like.type.dtype if isinstance(like, Tensor) else like
    return ctx.constant(np.asarray(value).astype(dtype.numpy))


def unary(ctx: ImportContext, function: UnaryFunction, x: Tensor) -> Tensor:
    """``function(x)``."""
    return ctx.emit(Unary(function), x)


def binary(ctx: ImportContext, function: BinaryFunction, a: Tensor, b: Tensor | float) -> Tensor:
    """``function(a, b)``; a bare number takes the dtype of ``a``."""
    other = b if isinstance(b, Tensor) else scalar(ctx, b, a)
    return ctx.emit(Binary(function), a, other)


def _unary(function: UnaryFunction) -> Callable[[ImportContext, Tensor], Tensor]:
    return lambda ctx, x: unary(ctx, function, x)


def _binary(function: BinaryFunction) -> Callable[[ImportContext, Tensor, Tensor | float], Tensor]:
    return lambda ctx, a, b: binary(ctx, function, a, b)


add = _binary(BinaryFunction.ADD)
sub = _binary(BinaryFunction.SUB)
mul = _binary(BinaryFunction.MUL)
div = _binary(BinaryFunction.DIV)
minimum = _binary(BinaryFunction.MIN)
maximum = _binary(BinaryFunction.MAX)
less = _binary(BinaryFunction.LT)
equal = _binary(BinaryFunction.EQ)
logical_not = _unary(UnaryFunction.NOT)
exp = _unary(UnaryFunction.EXP)
sqrt = _unary(UnaryFunction.SQRT)


def sigmoid(ctx: ImportContext, x: Tensor) -> Tensor:
    """``1 / (1 + exp(-x))``."""
    positive = add(ctx, exp(ctx, unary(ctx, UnaryFunction.NEG, x)), 1)
    return div(ctx, scalar(ctx, 1, x), positive)


def clip(ctx: ImportContext, x: Tensor, low: Tensor | float, high: Tensor | float) -> Tensor:
    """``min(max(x, low), high)``."""
    return minimum(ctx, maximum(ctx, x, low), high)


def where(ctx: ImportContext, condition: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """``a if condition else b``."""
    return ctx.emit(Where(), condition, a, b)


def cast(ctx: ImportContext, x: Tensor, dtype: DType) -> Tensor:
    """``x`` as ``dtype``; ``x`` itself when it is of it."""
    return x if x.type.dtype == dtype else ctx.emit(Cast(dtype), x)


def reshape(ctx: ImportContext, x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The same elements in another shape; ``x`` itself when it has it."""
    return x if x.type.shape == shape else ctx.emit(Reshape(shape), x)


def transpose(ctx: ImportContext, x: Tensor, permutation: tuple[int, ...]) -> Tensor:
    """Dimension ``i`` of the result is dimension ``permutation[i]`` of ``x``."""
    if permutation == tuple(range(len(permutation))):
        return x
    return ctx.emit(Transpose(permutation), x)


def broadcast(ctx: ImportContext, x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """``x`` broadcast to ``shape``; ``x`` itself when it has it."""
    return x if x.type.shape == shape else ctx.emit(Expand(shape), x)


def slice_axis(
    ctx: ImportContext, x: Tensor, axis: int, start: int, size: int, step: int = 1
) -> Tensor:
    """``size`` elements from ``start`` on along ``axis``, each ``step`` after the one before."""
    rank = x.type.rank
    if start == 0 and step == 1 and size == x.type.shape[axis]:
        return x
    starts = tuple(start if d == axis else 0 for d in range(rank))
    steps = tuple(step if d == axis else 1 for d in range(rank))
    shape = tuple(size if d == axis else x.type.shape[d] for d in range(rank))
    return ctx.emit(Slice(starts, steps, shape), x)


def normalise_axis(axis: int, rank: int) -> int:
    """``axis`` counted from 0.

    Raises ValueError when there is no such dimension.
    """
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis}; required -{rank} to {rank - 1}")
    return axis + rank if axis < 0 else axis
