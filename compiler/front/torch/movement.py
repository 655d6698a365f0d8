"""Operators that move elements: other shapes, parts, joins; most of them give views."""

import itertools
from collections.abc import Sequence

import numpy as np

from ...dtypes import DType
from ...errors import UnsupportedOperatorError
from ...graph.formulas import Term, concatenate
from ...graph.operators.elementwise import Bitcast
from ...graph.operators.movement import PadMode, PadTensor, Tile
from .context import Context, Converter, Number

__all__ = ["MOVEMENT", "MOVEMENT_VIEWS", "axis_of", "pad_by"]


def axis_of(dim: int, rank: int) -> int:
    """A dimension counted from 0.  Raises IndexError when there is none."""
    if not -max(rank, 1) <= dim < max(rank, 1):
        raise IndexError(f"dimension {dim} of {rank}")
    return dim % max(rank, 1)


def same(context: Context, x: Term, **_: object) -> Term:
    """The tensor itself."""
    return x


def view(context: Context, x: Term, size: Sequence[int] = (), **given: Sequence[int]) -> Term:
    """The same elements in another shape."""
    return x.reshape(*(given.get("shape") or size))


def view_as(context: Context, x: Term, other: Term) -> Term:
    """In the shape of another tensor."""
    return x.reshape(*other.shape)


def view_dtype(context: Context, x: Term, dtype: DType) -> Term:
    """The bits as another type of the same size."""
    return context.emitted(Bitcast(dtype), x)


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


def permute(context: Context, x: Term, dims: Sequence[int]) -> Term:
    """Dimension i is dimension ``dims[i]``."""
    return x.transpose(*(axis_of(dim, x.rank) for dim in dims))


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


def expand_as(context: Context, x: Term, other: Term) -> Term:
    """In the shape of another tensor."""
    return x.expand(*other.shape)


def squeeze(context: Context, x: Term, dim: int | Sequence[int] | None = None) -> Term:
    """Without dimensions of 1, all or some."""
    if dim is None:
        dims = tuple(range(x.rank))
    else:
        dims = tuple(axis_of(n, x.rank) for n in ((dim,) if isinstance(dim, int) else dim))
    return x.reshape(*(size for n, size in enumerate(x.shape) if size != 1 or n not in dims))


def unsqueeze(context: Context, x: Term, dim: int) -> Term:
    """A dimension of 1 more."""
    return x.unsqueeze(axis_of(dim, x.rank + 1))


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
    context: Context,
    x: Term,
    sections: int = 1,
    dim: int = 0,
    indices: Sequence[int] | None = None,
) -> tuple[Term, ...]:
    """Parts whose sizes differ by 1 at most, or that begin at indices."""
    axis = axis_of(dim, x.rank)
    size = x.shape[axis]
    if indices is None:
        each, more = divmod(size, sections)
        return split(context, x, dim=dim, split_sizes=[each + (n < more) for n in range(sections)])
    edges = [0, *indices, size]
    pairs = itertools.pairwise(edges)
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


def cat(context: Context, tensors: Sequence[Term], dim: int = 0) -> Term:
    """One after the other; empty lists are left out."""
    kept = [each for each in tensors if each.shape != (0,)] or list(tensors[:1])
    return concatenate([each.cast(context.dtype) for each in kept], dim)


def stack(context: Context, tensors: Sequence[Term], dim: int = 0) -> Term:
    """One after the other, along a new dimension."""
    axis = axis_of(dim, tensors[0].rank + 1)
    return cat(context, [each.unsqueeze(axis) for each in tensors], axis)


def repeat(context: Context, x: Term, repeats: Sequence[int] = (), **given: Sequence[int]) -> Term:
    """The tensor again and again, along each dimension."""
    counts = tuple(given.get("dims") or repeats)
    rank = max(len(counts), x.rank)
    x = x.reshape(*(1,) * (rank - x.rank), *x.shape)
    return context.emitted(Tile((*(1,) * (rank - len(counts)), *counts)), x)


def flip(context: Context, x: Term, dims: Sequence[int]) -> Term:
    """In reverse order."""
    return x.flip(*(axis_of(dim, x.rank) for dim in dims)) if x.rank else x


def roll(context: Context, x: Term, shifts: Sequence[int], dims: Sequence[int] = ()) -> Term:
    """Shifted around."""
    if not dims:
        return roll(context, x.reshape(-1), shifts, (0,)).reshape(*x.shape)
    for shift, dim in zip(shifts, dims, strict=True):
        axis = axis_of(dim, x.rank)
        size = x.shape[axis]
        at = -shift % size if size else 0
        if at:
            x = concatenate([x.slice(axis, at, size), x.slice(axis, 0, at)], axis)
    return x


def pad_by(
    x: Term,
    pad: Sequence[int],
    mode: PadMode = PadMode.CONSTANT,
    value: Number = 0,
) -> Term:
    """Before and after, the last dimension first; a negative number cuts."""
    widths = [(0, 0)] * (x.rank - len(pad) // 2)
    widths += [(pad[n], pad[n + 1]) for n in range(len(pad) - 2, -1, -2)]
    for axis, (first, last) in enumerate(widths):
        if first < 0 or last < 0:
            x = x.slice(axis, max(-first, 0), x.shape[axis] - max(-last, 0))
    befores, afters = (tuple(max(each, 0) for each in side) for side in zip(*widths, strict=True))
    if not any((*befores, *afters)):
        return x
    operator = PadTensor(befores, afters, mode)
    return Term(x.context, x.context.emit(operator, x.tensor, x.lift(value).tensor))


def constant_pad(context: Context, x: Term, pad: Sequence[int], value: Number = 0) -> Term:
    """Padded with a number."""
    return pad_by(x, pad, value=value) if x.rank else x


def _pad(mode: PadMode) -> Converter:
    def convert(context: Context, x: Term, padding: Sequence[int]) -> Term:
        return pad_by(x, padding, mode)

    return convert


PADS = {"constant": PadMode.CONSTANT, "reflect": PadMode.REFLECT, "replicate": PadMode.EDGE,
        "circular": PadMode.WRAP}  # fmt: skip


def pad_mode(
    context: Context,
    x: Term,
    pad: Sequence[int],
    mode: str = "constant",
    value: float | None = None,
) -> Term:
    """Padded in any way."""
    if mode not in PADS:
        raise UnsupportedOperatorError(f"{context.where}: padding {mode!r}")
    return pad_by(x, pad, PADS[mode], value or 0)


def shuffle(context: Context, x: Term, groups: int) -> Term:
    """Channels of groups, in turns."""
    parts = x.reshape(x.shape[0], groups, -1, *x.shape[2:])
    return transpose(context, parts, 1, 2).reshape(*x.shape)


def pixel_shuffle(context: Context, x: Term, upscale_factor: int) -> Term:
    """``upscale_factor`` squared channels as one that is larger."""
    r = upscale_factor
    *batch, channels, height, width = x.shape
    parts = x.reshape(-1, channels // (r * r), r, r, height, width).transpose(0, 1, 4, 2, 5, 3)
    return parts.reshape(*batch, channels // (r * r), height * r, width * r)


def pixel_unshuffle(context: Context, x: Term, downscale_factor: int) -> Term:
    """What ``pixel_shuffle`` undoes."""
    r = downscale_factor
    *batch, channels, height, width = x.shape
    parts = x.reshape(-1, channels, height // r, r, width // r, r).transpose(0, 1, 3, 5, 2, 4)
    return parts.reshape(*batch, channels * r * r, height // r, width // r)


def meshgrid(context: Context, tensors: Sequence[Term], indexing: str = "ij") -> tuple[Term, ...]:
    """Coordinates of a grid."""
    sizes = [each.tensor.type.elements for each in tensors]
    found = []
    for axis, each in enumerate(tensors):
        line = each.reshape(*(size if n == axis else 1 for n, size in enumerate(sizes)))
        grid = line.expand(*sizes)
        found.append(transpose(context, grid, 0, 1) if indexing == "xy" else grid)
    return tuple(found)


MOVEMENT_VIEWS: dict[str, Converter] = {
    "aten.T": numpy_t,
    "aten.alias": same,
    "aten.as_strided": as_strided,
    "aten.chunk": chunk,
    "aten.contiguous": same,
    "aten.detach": same,
    "aten.diagonal": diagonal,
    "aten.dropout": same,
    "aten.expand": expand,
    "aten.expand_as": expand_as,
    "aten.feature_dropout": same,
    "aten.flatten": flatten,
    "aten.lift_fresh": same,
    "aten.mT": matrix_transpose,
    "aten.movedim": movedim,
    "aten.narrow": narrow,
    "aten.numpy_T": numpy_t,
    "aten.permute": permute,
    "aten.reshape": view,
    "aten.select": select,
    "aten.slice": slice_dim,
    "aten.split": split,
    "aten.split_with_sizes": split,
    "aten.squeeze": squeeze,
    "aten.t": matrix_transpose,
    "aten.tensor_split": tensor_split,
    "aten.transpose": transpose,
    "aten.unbind": unbind,
    "aten.unflatten": unflatten,
    "aten.unfold": unfold,
    "aten.unsqueeze": unsqueeze,
    "aten.view": view,
    "aten.view.dtype": view_dtype,
    "aten.view_as": view_as,
    "aten._unsafe_view": view,
}
"""Their results share the elements of their first argument."""

MOVEMENT: dict[str, Converter] = {
    **MOVEMENT_VIEWS,
    "aten.cat": cat,
    "aten.channel_shuffle": shuffle,
    "aten.clone": same,
    "aten.concat": cat,
    "aten.constant_pad_nd": constant_pad,
    "aten.flip": flip,
    "aten.lift_fresh_copy": same,
    "aten.meshgrid": meshgrid,
    "aten.pad": pad_mode,
    "aten.pixel_shuffle": pixel_shuffle,
    "aten.pixel_unshuffle": pixel_unshuffle,
    "aten.reflection_pad1d": _pad(PadMode.REFLECT),
    "aten.reflection_pad2d": _pad(PadMode.REFLECT),
    "aten.reflection_pad3d": _pad(PadMode.REFLECT),
    "aten.repeat": repeat,
    "aten.replication_pad1d": _pad(PadMode.EDGE),
    "aten.replication_pad2d": _pad(PadMode.EDGE),
    "aten.replication_pad3d": _pad(PadMode.EDGE),
    "aten.roll": roll,
    "aten.stack": stack,
    "aten.tile": repeat,
    **{
        f"{name}_copy": converter
        for name, converter in MOVEMENT_VIEWS.items()
        if name.count(".") == 1
    },
}
