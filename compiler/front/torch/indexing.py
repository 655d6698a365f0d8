"""Operators that read and write where integer tensors say."""

from collections.abc import Sequence

import numpy as np

from ...dtypes import DType
from ...errors import UnsupportedOperatorError
from ...graph.formulas import Term, concatenate
from ...graph.operators.indexing import (
    GatherNd,
    ScatterElements,
    ScatterFunction,
    ScatterNd,
)
from .context import Context, Converter, Number
from .movement import axis_of, bounds
from .promotion import as_term

__all__ = ["INDEXING"]


def index_select(context: Context, x: Term, dim: int, index: Term) -> Term:
    """Indices of one dimension."""
    if not x.rank:
        return x
    return x.take(index.reshape(-1), axis_of(dim, x.rank))


def embedding(
    context: Context,
    weight: Term,
    indices: Term,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Term:
    """A row for each index."""
    return weight.take(indices, 0)


def gather(context: Context, x: Term, dim: int, index: Term, sparse_grad: bool = False) -> Term:
    """``x[i, index[i, j]]`` along a dimension."""
    if not index.tensor.type.elements:
        return x.constant(np.zeros(index.shape), x.dtype)
    if not x.rank or not index.rank:
        return x.reshape(-1).take(index, 0).reshape(*index.shape)
    axis = axis_of(dim, x.rank)
    return _within(x, index, axis).take_elements(index, axis)


def _within(x: Term, index: Term, axis: int) -> Term:
    """What of ``x`` the index reads: other dimensions are as large as its own."""
    for n, size in enumerate(index.shape):
        if n != axis and size < x.shape[n]:
            x = x.slice(n, 0, size)
    return x


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
    from ...graph.operators.elementwise import BinaryFunction

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


def _pieces(
    context: Context, x: Term, indices: Sequence[Term | None]
) -> tuple[list[int], Term, tuple[int, ...]]:
    """Indexed dimensions, the indices of elements in the last dimension, their common shape.

    A bool index stands for the positions where it holds, which must be known.
    """
    axes, parts, axis = list[int](), list[Term](), 0
    for each in indices:
        if each is None:
            axis += 1
        elif each.dtype in (DType.BOOL, DType.UINT8):
            places = np.nonzero(context.known_value(each))
            for line in places:
                axes.append(axis)
                parts.append(context.term(line, DType.INT64))
                axis += 1
        else:
            axes.append(axis)
            parts.append(each.cast(DType.INT64))
            axis += 1
    if any(axis >= x.rank for axis in axes):
        raise IndexError(f"indices of {axis} dimensions for {x.rank}")
    common = np.broadcast_shapes(*(each.shape for each in parts))
    columns = [each.expand(*common).unsqueeze(len(common)) for each in parts]
    return axes, concatenate(columns, -1), common


def index(context: Context, x: Term, indices: Sequence[Term | None]) -> Term:
    """NumPy's indexing by integer tensors."""
    axes, places, common = _pieces(context, x, indices)
    rest = [n for n in range(x.rank) if n not in axes]
    if len(axes) == 1:
        return x.take(places.reshape(*common), axes[0])
    found = context.emitted(GatherNd(), x.transpose(*axes, *rest), places)
    if axes != list(range(axes[0], axes[0] + len(axes))):
        return found
    first, wide = axes[0], len(common)
    order = [*range(wide, wide + first), *range(wide), *range(wide + first, found.rank)]
    return found.transpose(*order)


def index_put(
    context: Context,
    x: Term,
    indices: Sequence[Term | None],
    values: Term,
    accumulate: bool = False,
    unsafe: bool = False,
) -> Term:
    """``x`` with values where NumPy's indexing reads; or values added."""
    if len(indices) == 1 and _is_mask(context, indices[0]) and values.tensor.type.elements == 1:
        assert indices[0] is not None
        mask = indices[0].reshape(*indices[0].shape, *(1,) * (x.rank - indices[0].rank))
        value = values.reshape().cast(x.dtype)
        return mask.where(x + value if accumulate else value, x, x.dtype)
    axes, places, common = _pieces(context, x, indices)
    rest = [n for n in range(x.rank) if n not in axes]
    order = [*axes, *rest]
    moved = x.transpose(*order)
    sizes = [x.shape[n] for n in rest]
    together = axes == list(range(axes[0], axes[0] + len(axes)))
    first = axes[0] if together else 0
    shape = (*sizes[:first], *common, *sizes[first:])
    full = values.cast(x.dtype).reshape(*(1,) * (len(shape) - values.rank), *values.shape)
    full = full.expand(*shape)
    turned = [*range(first, first + len(common)), *range(first)]
    updates = full.transpose(*turned, *range(len(turned), full.rank))
    function = ScatterFunction.ADD if accumulate else ScatterFunction.REPLACE
    written = context.emitted(ScatterNd(function), moved, places, updates)
    return written.transpose(*(order.index(n) for n in range(x.rank)))


def _is_mask(context: Context, index: Term | None) -> bool:
    return index is not None and index.dtype == DType.BOOL and not context.known(index.tensor)


def masked_fill(context: Context, x: Term, mask: Term, value: Term | Number) -> Term:
    """``value`` where the mask holds."""
    shape = np.broadcast_shapes(x.shape, mask.shape)
    given = as_term(context, value, x.dtype).reshape()
    return mask.where(given, x.expand(*shape), x.dtype)


def masked_scatter(context: Context, x: Term, mask: Term, source: Term) -> Term:
    """Elements of the source, one after the other, where the mask holds."""
    from ...graph.operators.reductions import Cumulative, ReduceFunction

    flat = mask.expand(*x.shape).reshape(-1)
    counted = context.emitted(Cumulative(ReduceFunction.SUM, 0), flat.cast(DType.INT64)) - 1
    taken = source.reshape(-1).take(counted.maximum(0), 0)
    return flat.where(taken, x.reshape(-1), x.dtype).reshape(*x.shape)


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
    from .cells import inserted
    from .movement import diagonal

    return inserted(x, lambda base: diagonal(context, base, offset, dim1, dim2), src.cast(x.dtype))


def take(context: Context, x: Term, index: Term) -> Term:
    """Elements by their row-major numbers."""
    return x.reshape(-1).take(index, 0)


def nonzero(context: Context, x: Term) -> Term:
    """Where it is not 0, of a tensor that is known."""
    return context.term(np.argwhere(context.known_value(x)), DType.INT64)


def item(context: Context, x: Term) -> Number:
    """The number of a tensor that is known."""
    value = context.known_value(x)
    if value.size != 1:
        raise UnsupportedOperatorError(f"{context.where}: the number of {value.size} elements")
    found: Number = value.reshape(()).item()
    return found


INDEXING: dict[str, Converter] = {
    "aten._local_scalar_dense": item,
    "aten._unsafe_index": index,
    "aten._unsafe_index_put": index_put,
    "aten.diagonal_scatter": diagonal_scatter,
    "aten.embedding": embedding,
    "aten.gather": gather,
    "aten.index": index,
    "aten.index_add": index_add,
    "aten.index_copy": index_copy,
    "aten.index_fill": index_fill,
    "aten.index_put": index_put,
    "aten.index_select": index_select,
    "aten.item": item,
    "aten.masked_fill": masked_fill,
    "aten.masked_scatter": masked_scatter,
    "aten.nonzero": nonzero,
    "aten.scatter": scatter,
    "aten.scatter_add": scatter_add,
    "aten.scatter_reduce": scatter_reduce,
    "aten.select_scatter": select_scatter,
    "aten.slice_scatter": slice_scatter,
    "aten.take": take,
    "aten.take_along_dim": gather,
}
