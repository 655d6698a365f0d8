"""Operators that write to a part of a tensor."""

import numpy as np

from ...dtypes import DType
from ...graph.formulas import Term, concatenate
from ...graph.operators.elementwise import BinaryFunction
from ...graph.operators.indexing import ScatterElements, ScatterFunction
from .cells import inserted
from .context import Context, Converter, Number
from .promotion import as_term
from .views import axis_of, bounds, diagonal

__all__ = ["SCATTERING"]


FUNCTIONS = {
    "add": ScatterFunction.ADD, "amax": ScatterFunction.MAX, "amin": ScatterFunction.MIN,
    "multiply": ScatterFunction.MULTIPLY, "prod": ScatterFunction.MULTIPLY,
    "sum": ScatterFunction.ADD,
}  # fmt: skip


def _scattered(
    context: Context, x: Term, dim: int, index: Term, src: Term, function: ScatterFunction
) -> Term:
    if not index.tensor.type.elements:
        return x
    if not x.rank:
        one = _scattered(context, x.reshape(1), 0, index.reshape(1), src.reshape(-1), function)
        return one.reshape()
    axis = axis_of(dim, x.rank)
    for n, size in enumerate(index.shape):
        src = src.slice(n, 0, size)
    return context.emitted(ScatterElements(axis, function), x, index, src.cast(x.dtype))


def scatter(
    context: Context,
    x: Term,
    dim: int,
    index: Term,
    src: Term | None = None,
    value: Number = 0,
    reduce: str | None = None,
) -> Term:
    """``x`` with values at ``x[i, index[i, j]]``."""
    given = as_term(context, value, x.dtype).expand(*index.shape) if src is None else src
    function = FUNCTIONS[reduce] if reduce else ScatterFunction.REPLACE
    return _scattered(context, x, dim, index, given, function)


def scatter_add(context: Context, x: Term, dim: int, index: Term, src: Term) -> Term:
    """``x`` with values added at ``x[i, index[i, j]]``."""
    return _scattered(context, x, dim, index, src, ScatterFunction.ADD)


def scatter_reduce(
    context: Context,
    x: Term,
    dim: int,
    index: Term,
    src: Term,
    reduce: str,
    include_self: bool = True,
) -> Term:
    """As ``scatter``; with ``include_self`` false, what was there does not count."""
    if reduce == "mean":
        return _scattered_mean(context, x, dim, index, src, include_self)
    if not include_self:
        start = _neutral(x.dtype)[reduce]
        blank = x.constant(start, x.dtype).expand(*index.shape) if index.rank else x.lift(start)
        x = _scattered(context, x, dim, index, blank, ScatterFunction.REPLACE)
    return _scattered(context, x, dim, index, src, FUNCTIONS[reduce])


def _scattered_mean(
    context: Context, x: Term, dim: int, index: Term, src: Term, include_self: bool
) -> Term:
    ones = x.constant(1, x.dtype).expand(*index.shape)
    start = x.constant(int(include_self), x.dtype).expand(*x.shape)
    counts = _scattered(context, start, dim, index, ones, ScatterFunction.ADD)
    blank = x if include_self else scatter(context, x, dim, index)
    sums = _scattered(context, blank, dim, index, src, ScatterFunction.ADD)
    if include_self:
        return _quotient(sums, counts)
    return (counts > 0).where(_quotient(sums, counts.maximum(1)), x, x.dtype)


def _quotient(sums: Term, counts: Term) -> Term:
    if sums.dtype.is_float:
        return sums / counts
    return sums.binary(BinaryFunction.FLOORDIV, counts)


def _neutral(dtype: DType) -> dict[str, Number]:
    if dtype.is_float:
        low, high = float("-inf"), float("inf")
    elif dtype == DType.BOOL:
        low, high = 0, 1
    else:
        low, high = int(np.iinfo(str(dtype)).min), int(np.iinfo(str(dtype)).max)
    return {"sum": 0, "prod": 1, "amax": low, "amin": high}


def index_add(
    context: Context, x: Term, dim: int, index: Term, source: Term, alpha: Number = 1
) -> Term:
    """``x`` with slices of the source added at indices of a dimension."""
    return _placed(context, x, dim, index, source * alpha, ScatterFunction.ADD)


def index_copy(context: Context, x: Term, dim: int, index: Term, source: Term) -> Term:
    """``x`` with slices of the source at indices of a dimension."""
    return _placed(context, x, dim, index, source, ScatterFunction.REPLACE)


def index_fill(context: Context, x: Term, dim: int, index: Term, value: Term | Number) -> Term:
    """``x`` with a number at indices of a dimension."""
    given = as_term(context, value, x.dtype).reshape()
    axis = axis_of(dim, x.rank)
    shape = [index.tensor.type.elements if n == axis else s for n, s in enumerate(x.shape)]
    return _placed(context, x, dim, index, given.expand(*shape), ScatterFunction.REPLACE)


def _placed(
    context: Context, x: Term, dim: int, index: Term, source: Term, function: ScatterFunction
) -> Term:
    if not x.rank:
        return _placed(context, x.reshape(1), 0, index, source.reshape(1), function).reshape()
    axis = axis_of(dim, x.rank)
    line = index.reshape(*(-1 if n == axis else 1 for n in range(x.rank)))
    places = line.expand(*source.shape)
    if not source.tensor.type.elements:
        return x
    return context.emitted(ScatterElements(axis, function), x, places, source.cast(x.dtype))


def select_scatter(context: Context, x: Term, src: Term, dim: int, index: int) -> Term:
    """``x`` with one index of a dimension replaced."""
    axis = axis_of(dim, x.rank)
    at = index + x.shape[axis] if index < 0 else index
    return slice_scatter(context, x, src.unsqueeze(axis), axis, at, at + 1)


def slice_scatter(
    context: Context,
    x: Term,
    src: Term,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Term:
    """``x`` with ``x[start:end:step]`` of a dimension replaced."""
    axis = axis_of(dim, x.rank)
    first, last = bounds(x.shape[axis], start, end)
    src = src.cast(x.dtype)
    if step == 1:
        parts = [x.slice(axis, 0, first), src, x.slice(axis, last, x.shape[axis])]
        return concatenate([each for each in parts if each.shape[axis]] or [x], axis)
    context.require_room(x.shape[axis])
    return index_copy(context, x, axis, context.term(range(first, last, step), DType.INT64), src)


def diagonal_scatter(
    context: Context, x: Term, src: Term, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Term:
    """``x`` with a diagonal replaced."""
    return inserted(x, lambda base: diagonal(context, base, offset, dim1, dim2), src.cast(x.dtype))


SCATTERING: dict[str, Converter] = {
    "aten.diagonal_scatter": diagonal_scatter,
    "aten.index_add": index_add,
    "aten.index_copy": index_copy,
    "aten.index_fill": index_fill,
    "aten.scatter": scatter,
    "aten.scatter_add": scatter_add,
    "aten.scatter_reduce": scatter_reduce,
    "aten.select_scatter": select_scatter,
    "aten.slice_scatter": slice_scatter,
}
