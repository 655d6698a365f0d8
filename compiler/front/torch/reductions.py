"""Reductions, running sums, sorting."""

from collections.abc import Sequence

import numpy as np

from ...dtypes import DType
from ...graph.formulas import Term, widened
from ...graph.operators.elementwise import UnaryFunction as U
from ...graph.operators.reductions import ArgReduce, Cumulative, ReduceFunction
from ...graph.operators.sorting import Sort
from .context import Context, Converter, Number
from .views import axis_of

__all__ = ["REDUCTIONS"]

Dims = int | Sequence[int] | None


def _axes(x: Term, dim: Dims) -> tuple[int, ...]:
    """Dimensions from 0; all where none is given."""
    if dim is None or dim == ():
        return tuple(range(x.rank))
    given = (dim,) if isinstance(dim, int) else dim
    return tuple(axis_of(each, x.rank) for each in given) if x.rank else ()


def _reduced(x: Term, function: ReduceFunction, dim: Dims, keepdim: bool) -> Term:
    axes = _axes(x, dim)
    return x.reduce(function, axes, keepdim) if axes else x


def total(
    context: Context, x: Term, dim: Dims = None, keepdim: bool = False, dtype: DType | None = None
) -> Term:
    """The sum."""
    return _reduced(x.cast(context.dtype), ReduceFunction.SUM, dim, keepdim)


def product(
    context: Context, x: Term, dim: Dims = None, keepdim: bool = False, dtype: DType | None = None
) -> Term:
    """The product."""
    return _reduced(x.cast(context.dtype), ReduceFunction.PRODUCT, dim, keepdim)


def mean(
    context: Context, x: Term, dim: Dims = None, keepdim: bool = False, dtype: DType | None = None
) -> Term:
    """The mean."""
    given = widened(x.cast(context.dtype))
    axes = _axes(x, dim)
    count = int(np.prod([x.shape[axis] for axis in axes]))
    if not count:
        return given.reduce(ReduceFunction.SUM, axes, keepdim) / 0.0
    return (given.reduce(ReduceFunction.SUM, axes, keepdim) / count).cast(context.dtype)


def _extreme(function: ReduceFunction) -> Converter:
    def convert(context: Context, x: Term, dim: Dims = None, keepdim: bool = False) -> Term:
        return _reduced(x, function, dim, keepdim)

    return convert


def _placed(function: ReduceFunction) -> Converter:
    """The extreme along one dimension, and its place."""

    def convert(context: Context, x: Term, dim: int, keepdim: bool = False) -> tuple[Term, Term]:
        return _reduced(x, function, dim, keepdim), _place(context, function, x, dim, keepdim)

    return convert


def _place(
    context: Context, function: ReduceFunction, x: Term, dim: int | None, keepdim: bool
) -> Term:
    if dim is None or x.rank == 0:
        flat = context.emitted(ArgReduce(function, 0), x.reshape(-1))
        return flat.reshape(*(1,) * x.rank) if keepdim else flat
    axis = axis_of(dim, x.rank)
    found = context.emitted(ArgReduce(function, axis), x)
    return found.unsqueeze(axis) if keepdim else found


def _argument(function: ReduceFunction) -> Converter:
    def convert(context: Context, x: Term, dim: int | None = None, keepdim: bool = False) -> Term:
        return _place(context, function, x, dim, keepdim)

    return convert


def any_of(context: Context, x: Term, dim: Dims = None, keepdim: bool = False) -> Term:
    """True if any element is not 0."""
    return _reduced(x.cast(DType.BOOL), ReduceFunction.MAX, dim, keepdim).cast(context.dtype)


def all_of(context: Context, x: Term, dim: Dims = None, keepdim: bool = False) -> Term:
    """True if no element is 0."""
    return _reduced(x.cast(DType.BOOL), ReduceFunction.MIN, dim, keepdim).cast(context.dtype)


def _moments(
    context: Context, x: Term, dim: Dims, correction: Number, keepdim: bool
) -> tuple[Term, Term]:
    """Variance and mean."""
    axes = _axes(x, dim)
    given = widened(x)
    count = int(np.prod([x.shape[axis] for axis in axes]))
    centre = given.sum(*axes, keep=True) / max(count, 1) if axes else given
    apart = given - centre
    squares = _reduced(apart * apart, ReduceFunction.SUM, axes, keepdim)
    shape = squares.shape
    left = count - correction
    variance = squares / float(left) if left > 0 else squares / 0.0
    return variance.cast(x.dtype), centre.reshape(*shape).cast(x.dtype)


def variance(
    context: Context,
    x: Term,
    dim: Dims = None,
    unbiased: bool = True,
    keepdim: bool = False,
    correction: Number | None = None,
) -> Term:
    """The mean square of the distance from the mean; ``count - correction`` divides."""
    return _moments(context, x, dim, _correction(unbiased, correction), keepdim)[0]


def _correction(unbiased: bool, correction: Number | None) -> Number:
    return int(unbiased) if correction is None else correction


def deviation(
    context: Context,
    x: Term,
    dim: Dims = None,
    unbiased: bool = True,
    keepdim: bool = False,
    correction: Number | None = None,
) -> Term:
    """The root of the variance."""
    return variance(context, x, dim, unbiased, keepdim, correction).sqrt()


def variance_mean(
    context: Context,
    x: Term,
    dim: Dims = None,
    unbiased: bool = True,
    keepdim: bool = False,
    correction: Number | None = None,
) -> tuple[Term, Term]:
    """Variance and mean, as ``variance`` has them."""
    return _moments(context, x, dim, _correction(unbiased, correction), keepdim)


def log_sum_exp(context: Context, x: Term, dim: Dims, keepdim: bool = False) -> Term:
    """``log(sum(exp(x)))``, without overflow."""
    x, axes = x.cast(context.dtype), _axes(x, dim)
    if not axes:
        return x
    most = x.max(*axes, keep=True)
    limit = most.unary(U.ISINF).where(0.0, most, most.dtype)
    found = (x - limit).exp().sum(*axes, keep=True).log() + limit
    return found if keepdim else found.reshape(*total(context, x, dim).shape)


def vector_norm(
    context: Context,
    x: Term,
    order: Number = 2,
    dim: Dims = None,
    keepdim: bool = False,
    dtype: DType | None = None,
) -> Term:
    """``sum(|x| ** order) ** (1 / order)``."""
    return norm(context, x, order, dim, keepdim)


def norm(
    context: Context,
    x: Term,
    p: Number | None = 2,
    dim: Dims = None,
    keepdim: bool = False,
    dtype: DType | None = None,
) -> Term:
    """``sum(|x| ** p) ** (1 / p)``; the largest or smallest magnitude for infinities."""
    size, p = widened(x.cast(context.dtype)).abs(), 2 if p is None else p
    if p in (float("inf"), float("-inf")):
        function = ReduceFunction.MAX if p > 0 else ReduceFunction.MIN
        return _reduced(size, function, dim, keepdim).cast(context.dtype)
    if p == 0:
        kept = (size > 0.0).cast(size.dtype)
        return _reduced(kept, ReduceFunction.SUM, dim, keepdim).cast(context.dtype)
    powers = size if p == 1 else size * size if p == 2 else size.power(float(p))
    summed = _reduced(powers, ReduceFunction.SUM, dim, keepdim)
    root = summed if p == 1 else summed.sqrt() if p == 2 else summed.power(1.0 / p)
    return root.cast(context.dtype)


def _running(function: ReduceFunction) -> Converter:
    def convert(context: Context, x: Term, dim: int, dtype: DType | None = None) -> Term:
        given = x.cast(context.dtype)
        if not x.rank:
            return given
        return context.emitted(Cumulative(function, axis_of(dim, x.rank)), given)

    return convert


def sort(
    context: Context, x: Term, dim: int = -1, descending: bool = False, stable: bool | None = None
) -> tuple[Term, Term]:
    """In order along a dimension, and where elements were."""
    if not x.rank:
        return x, context.term(0, DType.INT64)
    return _sorted(context, x, x.shape[axis_of(dim, x.rank)], dim, descending)


def _sorted(context: Context, x: Term, count: int, dim: int, descending: bool) -> tuple[Term, Term]:
    axis = axis_of(dim, x.rank)
    last = x.move_axis(axis, -1)
    pair = context.emit_many(Sort(count, descending), last.tensor)
    values, places = (Term(context, each).move_axis(x.rank - 1, axis) for each in pair)
    return values, places


def argsort(
    context: Context, x: Term, dim: int = -1, descending: bool = False, stable: bool = False
) -> Term:
    """Where elements would come from in order."""
    return sort(context, x, dim, descending)[1]


def topk(
    context: Context, x: Term, k: int, dim: int = -1, largest: bool = True, in_order: bool = True
) -> tuple[Term, Term]:
    """The ``k`` largest or smallest, in order."""
    if not x.rank:
        return x, context.term(0, DType.INT64)
    return _sorted(context, x, k, dim, largest)


MAX, MIN = ReduceFunction.MAX, ReduceFunction.MIN
REDUCTIONS: dict[str, Converter] = {
    "aten.all": all_of,
    "aten.amax": _extreme(MAX),
    "aten.amin": _extreme(MIN),
    "aten.any": any_of,
    "aten.argmax": _argument(MAX),
    "aten.argmin": _argument(MIN),
    "aten.argsort": argsort,
    "aten.cumprod": _running(ReduceFunction.PRODUCT),
    "aten.cumsum": _running(ReduceFunction.SUM),
    "aten.linalg_vector_norm": vector_norm,
    "aten.logsumexp": log_sum_exp,
    "aten.max": _extreme(MAX),
    "aten.max.dim": _placed(MAX),
    "aten.mean": mean,
    "aten.min": _extreme(MIN),
    "aten.min.dim": _placed(MIN),
    "aten.norm": norm,
    "aten.prod": product,
    "aten.sort": sort,
    "aten.std": deviation,
    "aten.sum": total,
    "aten.topk": topk,
    "aten.var": variance,
    "aten.var_mean": variance_mean,
}
