"""Products of two tensors' rows as layers of images, where the rows are all pixels in their order.

    Slice(Transpose(Reshape(x[1, H, W, C])))  ->  Reshape(Slice(x)), some channels of all pixels
    RowProducts(Reshape(x[1, H, W, K]), y)    ->  Reshape(RowProducts(x, y)), each pixel a row
    Concatenate(Reshape(x), Reshape(y))       ->  Reshape(Concatenate(x, y)), of channels

The rows of ``y`` stay in one row: in DRAM, where they are weights, the pixels of an image lie so.
"""

from math import prod

import numpy as np

from ....dtypes import DType
from ....graph.ir import Array, Node
from ....graph.operators.integer.products import Conv2d, RowProducts
from ....graph.operators.integer.values import Lookup
from ....graph.operators.movement import Concatenate, Reshape, Slice, Transpose
from ....graph.rewrite import Pattern, Rewriter
from ..operators import AnyRequantize

__all__ = ["ROWS_OF_IMAGES", "is_image", "makes_rows", "shaped"]

MOVES = (Reshape, Slice, Transpose)
READERS = (Conv2d, Lookup, RowProducts)
"""Operators that heads go through."""


def shaped(rewriter: Rewriter, name: str) -> Node | None:
    """The Reshape of an image that makes several rows of its channels; None for another tensor, and
    where the image is one of these itself.
    """
    node, types = rewriter.graph.producer(name), rewriter.graph.types
    if node is None or not isinstance(node.operator, Reshape):
        return None
    before, after = types[node.inputs[0]].shape, types[name].shape
    several = is_image(before) and prod(before[:3]) > 1
    if not several or before[3] != after[-1] or shaped(rewriter, node.inputs[0]) is not None:
        return None
    return node


def is_image(shape: tuple[int, ...]) -> bool:
    """True if ``shape`` is [1, H, W, C]."""
    return len(shape) == 4 and shape[0] == 1


def makes_rows(rewriter: Rewriter, node: Node) -> bool:
    """True if products of two tensors read, in one row, pixels of ``node`` in another order."""
    graph = rewriter.graph
    shape = graph.types[node.output].shape
    pending: list[tuple[str, Array]] = [(node.output, np.arange(prod(shape)).reshape(shape))]
    while pending:
        name, numbers = pending.pop()
        for reader in graph.consumers(name):
            operator = reader.operator
            if isinstance(operator, RowProducts):
                alike = len({graph.types[each].shape[:-2] for each in reader.inputs}) == 1
                rows = numbers.shape[-2] if alike else prod(numbers.shape[:-1])
                matrices = numbers.reshape(-1, rows, numbers.shape[-1])
                if any(_first_channel(each, shape) is None for each in matrices):
                    return True
            elif isinstance(operator, AnyRequantize | Lookup):
                pending.append((reader.output, numbers))
            elif isinstance(operator, MOVES):
                (moved,) = operator.evaluate([numbers])
                pending.append((reader.output, moved))
    return False


def _first_channel(numbers: Array, shape: tuple[int, ...]) -> int | None:
    """The first of the channels that rows, int[T, channels], have of all pixels of an image in
    their order; None if they are something else.

    numbers: of their elements in the image.
    """
    first, channels = int(numbers[0, 0]), shape[-1]
    if first >= channels or len(numbers) != prod(shape[:-1]):
        return None
    wanted = np.add.outer(np.arange(len(numbers)) * channels, np.arange(numbers.shape[1]) + first)
    return first if np.array_equal(numbers, wanted) else None


def _cut(rewriter: Rewriter, node: Node) -> str | None:
    graph, builder, after = rewriter.graph, rewriter.builder, rewriter.graph.types[node.output]
    if after.dtype is not DType.INT8 or after.rank != 4 or after.shape[:2] != (1, 1):
        return None
    if not any(isinstance(each.operator, READERS) for each in graph.consumers(node.output)):
        return None
    chain, name, maker = list[Node](), node.output, graph.producer(node.output)
    while maker is not None and isinstance(maker.operator, MOVES):
        chain.append(maker)
        name = maker.inputs[0]
        maker = graph.producer(name)
    shape = graph.types[name].shape
    if not is_image(shape) or shape[1] == 1 or _is_cut(rewriter, chain, shape):
        return None
    numbers: Array = np.arange(prod(shape)).reshape(shape)
    for each in reversed(chain):
        (numbers,) = each.operator.evaluate([numbers])
    first, count = _first_channel(numbers[0, 0], shape), after.shape[3]
    if first is None:
        return None
    if count < shape[3]:
        part = Slice((0, 0, 0, first), (1, 1, 1, 1), (*shape[:3], count))
        name = builder.node(part, (name,), f"{node.output}/channels", node.origin)
    return builder.node(Reshape(after.shape), (name,), node.output, node.origin)


def _is_cut(rewriter: Rewriter, chain: list[Node], shape: tuple[int, ...]) -> bool:
    """True if a chain, its last node first, is a Reshape of some channels, or is empty."""
    if not chain or not isinstance(chain[0].operator, Reshape):
        return not chain
    cut = [rewriter.graph.types[each.output].shape[:3] == shape[:3] for each in chain[1:]]
    return not cut or cut == [isinstance(chain[1].operator, Slice)]


def _multiply(rewriter: Rewriter, node: Node) -> str | None:
    if not isinstance(node.operator, RowProducts):
        return None
    builder, kind, (x, y) = rewriter.builder, rewriter.graph.types[node.output], node.inputs
    before = shaped(rewriter, x)
    if before is None or rewriter.graph.types[y].shape[:-2] != (1, 1):
        return None
    inputs = before.inputs[0], y
    sums = builder.node(node.operator, inputs, f"{node.output}/image", node.origin)
    return builder.node(Reshape(kind.shape), (sums,), node.output, node.origin)


def _join(rewriter: Rewriter, node: Node) -> str | None:
    types, kind = rewriter.graph.types, rewriter.graph.types[node.output]
    if node.operator != Concatenate(3) or kind.rank != 4:
        return None
    before = [shaped(rewriter, name) for name in node.inputs]
    images = [each.inputs[0] for each in before if each is not None]
    if len(images) < len(before) or len({types[name].shape[:3] for name in images}) > 1:
        return None
    whole = f"{node.output}/image"
    whole = rewriter.builder.node(node.operator, tuple(images), whole, node.origin)
    return rewriter.builder.node(Reshape(kind.shape), (whole,), node.output, node.origin)


ROWS_OF_IMAGES: tuple[Pattern, ...] = (_cut, _multiply, _join)
"""Each step takes away a movement that is no Reshape, or moves a Reshape one node nearer to the
outputs.
"""
