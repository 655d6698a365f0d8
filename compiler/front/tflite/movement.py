"""Converters of what moves elements."""

from collections.abc import Callable
from math import prod

import numpy as np

from ...dtypes import DType
from ...graph.formulas import Term, concatenate
from ...graph.operators.integer.windows import Pad
from ...graph.operators.movement import Slice
from .node import BYTES, Converter, Node
from .quantization import dequantised, quantised
from .quantized import signed_zero

__all__ = ["MOVEMENT", "moved"]


def moved(node: Node, x: Term, move: Callable[[Term], Term]) -> Term:
    """The result of an operator that moves elements; uint8 that layers made int8 stays so."""
    if x.dtype == DType.UINT8 and x.tensor.name in node.context.signed:
        return node.stored(move(node.signed(x)), x.dtype)
    return move(x)


def convert_reshape(node: Node) -> Term:
    """Another shape; one size may be -1."""
    shape = node.integers(1) if node.optional(1) is not None else node.attribute("new_shape", ())
    return moved(node, node.term(0), lambda x: x.reshape(*shape))


def convert_squeeze(node: Node) -> Term:
    """Without some dimensions of 1, or all."""
    x = node.term(0)
    chosen = {node.axis(axis, x.rank) for axis in node.attribute("squeeze_dims", ())}
    chosen = chosen or {axis for axis, size in enumerate(x.shape) if size == 1}
    shape = [size for axis, size in enumerate(x.shape) if axis not in chosen]
    return moved(node, x, lambda x: x.reshape(*shape))


def convert_expand_dims(node: Node) -> Term:
    """With one more dimension of 1."""
    x = node.term(0)
    (axis,) = node.integers(1)
    place = node.axis(axis, x.rank + 1)
    return moved(node, x, lambda x: x.unsqueeze(place))


def convert_transpose(node: Node) -> Term:
    """Dimensions in another order."""
    x = node.term(0)
    order = tuple(node.axis(axis, x.rank) for axis in node.integers(1))
    return moved(node, x, lambda x: x.transpose(*order))


def convert_concatenation(node: Node) -> Term:
    """Tensors one after the other; bytes of other scales are brought to the result's."""
    terms, dtype = node.terms(), node.result().dtype
    axis = node.axis(node.attribute("axis"), terms[0].rank)
    wanted = node.result().quantization
    if dtype == DType.UINT8 and wanted is not None:
        given = [node.scale(place) for place in range(len(terms))]
        same = [
            (each.scale, each.zero_point) == (wanted.scale, wanted.zero_point) for each in given
        ]
        terms = tuple(
            x if equal else quantised(dequantised(node, x, scale), wanted, dtype)
            for x, scale, equal in zip(terms, given, same, strict=True)
        )
        if any(x.tensor.name in node.context.signed for x in terms):
            return node.stored(concatenate([node.signed(x) for x in terms], axis), dtype)
    return concatenate(terms, axis)


def _parts(node: Node, x: Term, axis: int, sizes: tuple[int, ...]) -> tuple[Term, ...]:
    node.require(min(sizes, default=0) >= 0 and sum(sizes) == x.shape[axis], "sizes that fit")
    ends = np.cumsum(sizes).tolist()

    def part(size: int, end: int) -> Term:
        return moved(node, x, lambda x: x.slice(axis, end - size, end))

    return tuple(part(size, end) for size, end in zip(sizes, ends, strict=True))


def convert_split(node: Node) -> tuple[Term, ...]:
    """Equal parts of one dimension."""
    x, count = node.term(1), len(node.operation.outputs)
    axis = node.axis(node.integers(0)[0], x.rank)
    node.require(count > 0 and x.shape[axis] % count == 0, f"{count} equal parts of axis {axis}")
    return _parts(node, x, axis, (x.shape[axis] // count,) * count)


def convert_split_v(node: Node) -> tuple[Term, ...]:
    """Parts of given sizes; one may be -1."""
    x, sizes = node.term(0), list(node.integers(1))
    axis = node.axis(node.integers(2)[0], x.rank)
    if -1 in sizes:
        sizes[sizes.index(-1)] = x.shape[axis] - sum(sizes) - 1
    return _parts(node, x, axis, tuple(sizes))


def convert_pack(node: Node) -> Term:
    """Tensors along a new dimension."""
    terms = node.terms()
    axis = node.axis(node.attribute("axis"), terms[0].rank + 1)
    return concatenate([x.unsqueeze(axis) for x in terms], axis)


def convert_unpack(node: Node) -> tuple[Term, ...]:
    """The slices of a dimension, without it."""
    x = node.term(0)
    axis = node.axis(node.attribute("axis"), x.rank)
    node.require(x.shape[axis] == len(node.operation.outputs), "an output for each slice")
    shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    return tuple(x.slice(axis, n, n + 1).reshape(*shape) for n in range(x.shape[axis]))


def convert_slice(node: Node) -> Term:
    """A block that begins at given indices; a size of -1 takes all that follow."""
    x, begins, sizes = node.term(0), node.integers(1), node.integers(2)
    node.require(len(begins) == len(sizes) == x.rank, f"{x.rank} begins and sizes")
    shape = tuple(
        whole - begin if size == -1 else size
        for whole, begin, size in zip(x.shape, begins, sizes, strict=True)
    )
    fits = all(
        begin >= 0 and size >= 0 and begin + size <= whole
        for whole, begin, size in zip(x.shape, begins, shape, strict=True)
    )
    node.require(fits, f"a block [{begins}, {shape}] within it")
    return moved(node, x, lambda x: node.emit(Slice(begins, (1,) * x.rank, shape), x))


def convert_strided_slice(node: Node) -> Term:
    """NumPy's slices: begins, ends, strides, and bits that say which dimensions are otherwise."""
    x = node.term(0)
    begins, ends, strides = (node.integers(place) for place in (1, 2, 3))
    node.require(len(begins) == len(ends) == len(strides) <= 32, "as many begins as ends, strides")

    def has(name: str, place: int) -> bool:
        return bool(node.attribute(f"{name}_mask") >> place & 1)

    count = len(begins)
    added = sum(has("new_axis", place) and not has("ellipsis", place) for place in range(count))
    dots = sum(has("ellipsis", place) for place in range(count))
    node.require(dots <= 1, "at most one ellipsis")
    ranges: list[range] = []
    kept: list[int] = []
    for place in range(count):
        if has("ellipsis", place):
            sizes = x.shape[len(ranges) : x.rank - (count - added - dots) + len(ranges)]
            ranges += map(range, sizes)
            kept += sizes
        elif has("new_axis", place):
            kept.append(1)
        else:
            axis = len(ranges)
            node.require(axis < x.rank and strides[place] != 0, "slices of its dimensions")
            whole, first = range(x.shape[axis]), None if has("begin", place) else begins[place]
            if has("shrink_axis", place):
                node.require(-len(whole) <= begins[place] < len(whole), f"an index of axis {axis}")
                at = whole[begins[place]]
                ranges.append(range(at, at + 1))
                continue
            last = None if has("end", place) else ends[place]
            ranges.append(whole[slice(first, last, strides[place])])
            kept.append(len(ranges[-1]))
    ranges += map(range, rest := x.shape[len(ranges) :])
    operator = Slice(
        tuple(each.start if len(each) else 0 for each in ranges),
        tuple(each.step for each in ranges),
        tuple(map(len, ranges)),
    )
    return moved(node, x, lambda x: node.emit(operator, x).reshape(*kept, *rest))


def _widths(node: Node, rank: int) -> tuple[tuple[int, int], ...]:
    found = node.value(1)
    node.require(found.shape == (rank, 2) and found.min(initial=0) >= 0, f"pads of {rank} by 2")
    return tuple((int(before), int(after)) for before, after in found)


def convert_pad(node: Node) -> Term:
    """A border of zeros, of a value, or of a quantised tensor's zero point."""
    x = node.term(0)
    widths = _widths(node, x.rank)
    given = node.optional(2)
    scale = node.info(0).quantization
    if given is None and x.dtype in BYTES and scale is not None:
        image = x.rank == 4 and x.shape[0] == 1 and widths[0] == widths[3] == (0, 0)
        if image:
            (top, bottom), (left, right) = widths[1:3]
            operator = Pad((top, left, bottom, right), signed_zero(scale, x.dtype))
            return node.stored(node.emit(operator, node.signed(x)), x.dtype)
        return x.pad(widths, node.constant(scale.zero_point, x.dtype))
    if given is None and scale is not None and not x.dtype.is_float:
        return x.pad(widths, node.constant(scale.zero_point, x.dtype))
    return x.pad(widths, 0 if given is None else given.reshape())


def convert_mirror_pad(node: Node) -> Term:
    """A border of mirrored elements, those at the edge once (0) or twice (1)."""
    x = node.term(0)
    symmetric = bool(node.attribute("mode"))
    for axis, width in enumerate(_widths(node, x.rank)):
        size = x.shape[axis]
        node.require(max(width) <= size - (not symmetric), "borders smaller than the tensor")
        if any(width):
            node.context.require_room(size + sum(width))
            places = np.arange(size)
            mirrored = np.pad(places, width, mode="symmetric" if symmetric else "reflect")
            x = x.take(mirrored, axis)
    return x


def convert_tile(node: Node) -> Term:
    """Repeated along each dimension."""
    return node.term(0).tile(*node.integers(1))


def convert_reverse(node: Node) -> Term:
    """In reverse order along axes."""
    x = node.term(0)
    return x.flip(*(node.axis(axis, x.rank) for axis in node.integers(1)))


def convert_space_to_depth(node: Node) -> Term:
    """Blocks of pixels as channels."""
    x, size = node.term(0), node.attribute("block_size")
    node.require(x.rank == 4 and size > 0, "4 dimensions and a block")
    n, h, w, c = x.shape
    node.require(h % size == 0 and w % size == 0, f"blocks of {size}")
    apart = x.reshape(n, h // size, size, w // size, size, c)
    return apart.transpose(0, 1, 3, 2, 4, 5).reshape(n, h // size, w // size, size * size * c)


def convert_depth_to_space(node: Node) -> Term:
    """Channels as blocks of pixels."""
    x, size = node.term(0), node.attribute("block_size")
    node.require(x.rank == 4 and size > 0, "4 dimensions and a block")
    n, h, w, c = x.shape
    node.require(c % (size * size) == 0, f"channels of blocks of {size}")
    apart = x.reshape(n, h, w, size, size, c // (size * size))
    return apart.transpose(0, 1, 3, 2, 4, 5).reshape(n, h * size, w * size, -1)


def convert_space_to_batch(node: Node) -> Term:
    """Blocks of a padded tensor as batches."""
    x, blocks, pads = node.term(0), node.integers(1), node.value(2)
    count = len(blocks)
    fits = x.rank > count and pads.shape == (count, 2) and min(blocks, default=1) > 0
    node.require(fits and pads.min(initial=0) >= 0, "blocks and pads of its dimensions")
    scale = node.info(0).quantization
    zero = scale.zero_point if scale is not None and not x.dtype.is_float else 0
    widths = ((0, 0), *((int(a), int(b)) for a, b in pads), *((0, 0),) * (x.rank - 1 - count))
    x = x.pad(widths, zero)
    inner, rest = x.shape[1 : 1 + count], x.shape[1 + count :]
    node.require(all(s % b == 0 for s, b in zip(inner, blocks, strict=True)), "whole blocks")
    split = [n for s, b in zip(inner, blocks, strict=True) for n in (s // b, b)]
    apart = x.reshape(x.shape[0], *split, *rest)
    order = (
        *range(2, 2 * count + 1, 2), 0, *range(1, 2 * count + 1, 2),
        *range(2 * count + 1, apart.rank),
    )  # fmt: skip
    sizes = (s // b for s, b in zip(inner, blocks, strict=True))
    return apart.transpose(*order).reshape(x.shape[0] * prod(blocks), *sizes, *rest)


def convert_batch_to_space(node: Node) -> Term:
    """Batches as blocks of a tensor, which is cropped."""
    x, blocks, crops = node.term(0), node.integers(1), node.value(2)
    count = len(blocks)
    fits = x.rank > count and crops.shape == (count, 2) and min(blocks, default=1) > 0
    node.require(fits and x.shape[0] % prod(blocks) == 0, "batches of whole blocks")
    batch, inner, rest = x.shape[0] // prod(blocks), x.shape[1 : 1 + count], x.shape[1 + count :]
    apart = x.reshape(*blocks, batch, *inner, *rest)
    pairs = [place for n in range(count) for place in (count + 1 + n, n)]
    whole = apart.transpose(count, *pairs, *range(2 * count + 1, apart.rank))
    sizes = tuple(s * b for s, b in zip(inner, blocks, strict=True))
    result = whole.reshape(batch, *sizes, *rest)
    for axis, (before, after) in enumerate(crops.tolist(), 1):
        node.require(before >= 0 and after >= 0 and before + after <= sizes[axis - 1], "crops")
        result = result.slice(axis, before, sizes[axis - 1] - after)
    return result


MOVEMENT: dict[str, Converter] = {
    "BATCH_TO_SPACE_ND": convert_batch_to_space,
    "BROADCAST_TO": lambda node: node.term(0).expand(*node.integers(1)),
    "CONCATENATION": convert_concatenation,
    "DEPTH_TO_SPACE": convert_depth_to_space,
    "EXPAND_DIMS": convert_expand_dims,
    "MIRROR_PAD": convert_mirror_pad,
    "PACK": convert_pack,
    "PAD": convert_pad,
    "PADV2": convert_pad,
    "RESHAPE": convert_reshape,
    "REVERSE_V2": convert_reverse,
    "SLICE": convert_slice,
    "SPACE_TO_BATCH_ND": convert_space_to_batch,
    "SPACE_TO_DEPTH": convert_space_to_depth,
    "SPLIT": convert_split,
    "SPLIT_V": convert_split_v,
    "SQUEEZE": convert_squeeze,
    "STRIDED_SLICE": convert_strided_slice,
    "TILE": convert_tile,
    "TRANSPOSE": convert_transpose,
    "UNPACK": convert_unpack,
}
