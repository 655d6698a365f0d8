"""Operators that read and write where integer tensors say."""

from collections.abc import Sequence

import numpy as np

from ...dtypes import DType
from ...errors import UnsupportedOperatorError
from ...graph.formulas import Term, concatenate
from ...graph.operators.indexing import GatherNd, ScatterFunction, ScatterNd
from ...graph.operators.reductions import Cumulative, ReduceFunction
from .context import Context, Converter, Number
from .promotion import as_term
from .views import axis_of

__all__ = ["INDEXING"]


def index_select(context: Context, x: Term, dim: int, index: Term) -> Term:
    """Indices of one dimension."""
    if not x.rank:
        return x
    return x.take(index.reshape(-1), axis_of(dim, x.rank))


def gather(context: Context, x: Term, dim: int, index: Term, sparse_grad: bool = False) -> Term:
    """``x[i, index[i, j]]`` along a dimension."""
    if not index.tensor.type.elements:
        return x.constant(np.zeros(index.shape), x.dtype)
    if not x.rank or not index.rank:
        return x.reshape(-1).take(index, 0).reshape(*index.shape)
    axis = axis_of(dim, x.rank)
    return _within(x, index, axis).take_elements(index, axis)


def _within(x: Term, index: Term, axis: int) -> Term:
    """The part of ``x`` that the index reads: other dimensions have the index's sizes."""
    for n, size in enumerate(index.shape):
        if n != axis and size < x.shape[n]:
            x = x.slice(n, 0, size)
    return x


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
    mask = indices[0] if len(indices) == 1 else None
    if mask is not None and _is_mask(context, mask):
        return _put_where(context, x, mask, values.cast(x.dtype), accumulate)
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


def _is_mask(context: Context, index: Term) -> bool:
    return index.dtype == DType.BOOL and not context.known(index.tensor)


def _put_where(context: Context, x: Term, mask: Term, values: Term, accumulate: bool) -> Term:
    """``x`` with values, one after the other, where the mask of its first dimensions holds."""
    rest = x.shape[mask.rank :]
    if values.rank > len(rest) and values.shape[0] != 1:
        flat = mask.reshape(-1).cast(DType.INT64)
        place = context.emitted(Cumulative(ReduceFunction.SUM, 0), flat) - 1
        values = values.take(place.maximum(0), 0).reshape(*mask.shape, *values.shape[1:])
    values = values.expand(*x.shape) if values.rank > len(rest) else values
    chosen = mask.reshape(*mask.shape, *(1,) * len(rest))
    return chosen.where(x + values if accumulate else values, x, x.dtype)


def masked_fill(context: Context, x: Term, mask: Term, value: Term | Number) -> Term:
    """``value`` where the mask holds."""
    shape = np.broadcast_shapes(x.shape, mask.shape)
    given = as_term(context, value, x.dtype).reshape()
    return mask.where(given, x.expand(*shape), x.dtype)


def masked_scatter(context: Context, x: Term, mask: Term, source: Term) -> Term:
    """Elements of the source, one after the other, where the mask holds."""
    x = x.expand(*np.broadcast_shapes(x.shape, mask.shape))
    flat = mask.expand(*x.shape).reshape(-1)
    counted = context.emitted(Cumulative(ReduceFunction.SUM, 0), flat.cast(DType.INT64)) - 1
    taken = source.reshape(-1).take(counted.maximum(0), 0)
    return flat.where(taken, x.reshape(-1), x.dtype).reshape(*x.shape)


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
    "aten.gather": gather,
    "aten.index": index,
    "aten.index_put": index_put,
    "aten.index_select": index_select,
    "aten.item": item,
    "aten.masked_fill": masked_fill,
    "aten.masked_scatter": masked_scatter,
    "aten.nonzero": nonzero,
    "aten.take": lambda context, x, index: x.reshape(-1).take(index, 0),
    "aten.take_along_dim": gather,
}
