"""Operators whose results share the elements of their first argument."""

from collections.abc import Sequence
from itertools import pairwise
from operator import index

import numpy as np

from ...errors import UnsupportedOperatorError
from ...graph.formulas import Term
from ...graph.operators.elementwise import Bitcast
from .context import Context, Converter

__all__ = ["VIEWS", "axis_of", "bounds", "diagonal", "same", "transpose"]


def axis_of(dim: int, rank: int) -> int:
    """A dimension counted from 0.

    Raises IndexError when there is none, TypeError for a number that is not whole.
    """
    dim = index(dim)
    if not -max(rank, 1) <= dim < max(rank, 1):
        raise IndexError(f"dimension {dim} of {rank}")
    return dim % max(rank, 1)


def same(context: Context, x: Term, **_: object) -> Term:
    """The tensor itself."""
    return x


def dropout(context: Context, x: Term, p: float, train: bool) -> Term:
    """The tensor itself, unless in training."""
    if train and p:
        raise UnsupportedOperatorError(f"{context.where}: dropout in training; use model.eval()")
    return x


def view(context: Context, x: Term, size: Sequence[int] = (), **given: Sequence[int]) -> Term:
    """The same elements in another shape."""
    return x.reshape(*(given.get("shape") or size))


def view_as(context: Context, x: Term, other: Term) -> Term:
    """In the shape of another tensor."""
    return x.reshape(*other.shape)


def unflatten(context: Context, x: Term, dim: int, sizes: Sequence[int]) -> Term:
    """One dimension as several."""
    axis = axis_of(dim, x.rank)
    rest = x.shape[axis] // max(-int(np.prod(sizes)), 1)
    given = (rest if size == -1 else size for size in sizes)
    return x.reshape(*x.shape[:axis], *given, *x.shape[axis + 1 :])


def flatten(context: Context, x: Term, start_dim: int = 0, end_dim: int = -1) -> Term:
    """Several dimensions as one."""
    if x.rank == 0:
        return x.reshape(1)
    first, last = axis_of(start_dim, x.rank), axis_of(end_dim, x.rank)
    middle = int(np.prod(x.shape[first : last + 1]))
    return x.reshape(*x.shape[:first], middle, *x.shape[last + 1 :])


def transpose(context: Context, x: Term, dim0: int, dim1: int) -> Term:
    """Two dimensions exchanged."""
    order = list(range(x.rank))
    if not order:
        return x
    a, b = axis_of(dim0, x.rank), axis_of(dim1, x.rank)
    order[a], order[b] = order[b], order[a]
    return x.transpose(*order)


def matrix_transpose(context: Context, x: Term) -> Term:
    """The last two dimensions exchanged."""
    return transpose(context, x, -2, -1) if x.rank > 1 else x


def numpy_t(context: Context, x: Term) -> Term:
    """All dimensions in reverse order."""
    return x.transpose(*reversed(range(x.rank)))


def movedim(
    context: Context, x: Term, source: int | Sequence[int], destination: int | Sequence[int]
) -> Term:
    """Dimensions moved, the others in order."""
    pairs = [
        [axis_of(dim, x.rank) for dim in ((each,) if isinstance(each, int) else each)]
        for each in (source, destination)
    ]
    rest = iter(axis for axis in range(x.rank) if axis not in pairs[0])
    placed = dict(zip(pairs[1], pairs[0], strict=True))
    return x.transpose(*(placed[n] if n in placed else next(rest) for n in range(x.rank)))


def expand(context: Context, x: Term, size: Sequence[int], implicit: bool = False) -> Term:
    """Dimensions of 1 repeated; -1 leaves one as it is."""
    new = len(size) - x.rank
    shape = [x.shape[n - new] if want == -1 else want for n, want in enumerate(size)]
    return x.expand(*shape)


def squeeze(context: Context, x: Term, dim: int | Sequence[int] | None = None) -> Term:
    """Without dimensions of 1, all or some."""
    if dim is None:
        dims = tuple(range(x.rank))
    else:
        dims = tuple(axis_of(n, x.rank) for n in ((dim,) if isinstance(dim, int) else dim))
    return x.reshape(*(size for n, size in enumerate(x.shape) if size != 1 or n not in dims))


def select(context: Context, x: Term, dim: int, index: int) -> Term:
    """One index of a dimension, which vanishes."""
    axis = axis_of(dim, x.rank)
    at = index + x.shape[axis] if index < 0 else index
    part = x.slice(axis, at, at + 1)
    return part.reshape(*x.shape[:axis], *x.shape[axis + 1 :])


def bounds(size: int, start: int | None, end: int | None) -> tuple[int, int]:
    """As Python's slices."""
    first, last, _ = slice(start, end).indices(size)
    return first, max(first, last)


def slice_dim(
    context: Context,
    x: Term,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Term:
    """``x[start:end:step]`` of a dimension."""
    axis = axis_of(dim, x.rank)
    return x.slice(axis, *bounds(x.shape[axis], start, end), step)


def narrow(context: Context, x: Term, dim: int, start: int, length: int) -> Term:
    """``length`` indices of a dimension."""
    first = start + x.shape[dim] if start < 0 else start
    return x.slice(dim, first, first + length)


def split(
    context: Context,
    x: Term,
    split_size: int | Sequence[int] = (),
    dim: int = 0,
    split_sizes: Sequence[int] = (),
) -> tuple[Term, ...]:
    """Parts of one size, the last perhaps smaller, or of given sizes."""
    axis, sizes = axis_of(dim, x.rank), split_sizes or split_size
    if isinstance(sizes, int):
        total = x.shape[axis]
        count = max(-(-total // max(sizes, 1)), 1)
        sizes = [min(sizes, total - n * sizes) for n in range(count)]
    context.require_room(len(sizes))
    ends = np.cumsum(sizes).tolist()
    return tuple(x.slice(axis, end - n, end) for n, end in zip(sizes, ends, strict=True))


def chunk(context: Context, x: Term, chunks: int, dim: int = 0) -> tuple[Term, ...]:
    """So many parts, or fewer."""
    return split(context, x, max(-(-x.shape[axis_of(dim, x.rank)] // chunks), 1), dim)


def tensor_split(
    context: Context, x: Term, sections: int = 1, dim: int = 0, indices: Sequence[int] | None = None
) -> tuple[Term, ...]:
    """Parts whose sizes differ by 1 at most, or that begin at indices."""
    axis = axis_of(dim, x.rank)
    size = x.shape[axis]
    if indices is None:
        each, more = divmod(size, sections)
        return split(context, x, dim=dim, split_sizes=[each + (n < more) for n in range(sections)])
    edges = [0, *indices, size]
    pairs = pairwise(edges)
    return tuple(x.slice(axis, *bounds(size, first, last)) for first, last in pairs)


def unbind(context: Context, x: Term, dim: int = 0) -> tuple[Term, ...]:
    """Every index of a dimension."""
    context.require_room(x.shape[axis_of(dim, x.rank)])
    return tuple(select(context, x, dim, n) for n in range(x.shape[dim]))


def diagonal(context: Context, x: Term, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Term:
    """A diagonal of two dimensions, as the last one."""
    a, b = axis_of(dim1, x.rank), axis_of(dim2, x.rank)
    rows, columns = x.shape[a], x.shape[b]
    length = max(min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns), 0)
    order = [n for n in range(x.rank) if n not in (a, b)]
    moved = x.transpose(*order, a, b).reshape(*(x.shape[n] for n in order), rows * columns)
    first = offset if offset >= 0 else -offset * columns
    if not length:
        return moved.slice(-1, 0, 0)
    return moved.slice(-1, first, first + (length - 1) * (columns + 1) + 1, columns + 1)


def as_strided(
    context: Context,
    x: Term,
    size: Sequence[int],
    stride: Sequence[int],
    storage_offset: int | None = None,
) -> Term:
    """Elements of the storage, which is taken to be the tensor in row-major order."""
    context.require_room(*size)
    places = np.full((), storage_offset or 0, np.int64)
    for count, step in zip(size, stride, strict=True):
        places = np.add.outer(places, np.arange(count) * step)
    return x.reshape(-1).take(places, 0)


def unfold(context: Context, x: Term, dimension: int, size: int, step: int) -> Term:
    """Windows of a dimension, as the last one."""
    if x.rank == 0:
        return x.expand(size)
    axis = axis_of(dimension, x.rank)
    count = (x.shape[axis] - size) // step + 1
    context.require_room(count, size)
    places = np.arange(count)[:, None] * step + np.arange(size)
    return x.take(places, axis).move_axis(axis + 1, x.rank)


VIEWS: dict[str, Converter] = {
    "aten.T": numpy_t,
    "aten.alpha_dropout": dropout,
    "aten.broadcast_to": expand,
    "aten.alias": same,
    "aten.as_strided": as_strided,
    "aten.chunk": chunk,
    "aten.contiguous": same,
    "aten.detach": same,
    "aten.diagonal": diagonal,
    "aten.dropout": dropout,
    "aten.expand": expand,
    "aten.expand_as": lambda context, x, other: x.expand(*other.shape),
    "aten.feature_alpha_dropout": dropout,
    "aten.feature_dropout": dropout,
    "aten.flatten": flatten,
    "aten.lift_fresh": same,
    "aten.mT": matrix_transpose,
    "aten.moveaxis": movedim,
    "aten.movedim": movedim,
    "aten.narrow": narrow,
    "aten.numpy_T": numpy_t,
    "aten.permute": lambda context, x, dims: x.transpose(*(axis_of(dim, x.rank) for dim in dims)),
    "aten.ravel": flatten,
    "aten.reshape": view,
    "aten.reshape_as": view_as,
    "aten.select": select,
    "aten.slice": slice_dim,
    "aten.split": split,
    "aten.split_with_sizes": split,
    "aten.squeeze": squeeze,
    "aten.swapaxes": lambda context, x, axis0, axis1: transpose(context, x, axis0, axis1),
    "aten.swapdims": transpose,
    "aten.t": matrix_transpose,
    "aten.tensor_split": tensor_split,
    "aten.transpose": transpose,
    "aten.unbind": unbind,
    "aten.unflatten": unflatten,
    "aten.unfold": unfold,
    "aten.unsqueeze": lambda context, x, dim: x.unsqueeze(axis_of(dim, x.rank + 1)),
    "aten.view": view,
    "aten.view.dtype": lambda context, x, dtype: context.emitted(Bitcast(dtype), x),
    "aten.view_as": view_as,
    "aten._unsafe_view": view,
}
"""Their results share the elements of their first argument."""
