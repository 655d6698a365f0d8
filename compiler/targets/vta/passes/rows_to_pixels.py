"""Products of rows as convolutions of pixels, and what follows as layers of images.

    Dense(x[..., N, C])           ->  Reshape(Conv2d(Reshape(x))), each row a pixel
    Dense(Reshape(x[1, H, W, C])) ->  Reshape(Conv2d(x)), where the Reshape only counts pixels
    Dense(Reshape(x[1, H, W, C])) ->  Conv2d of one row of pixels, where products of heads read
                                      these in another order
    f(Reshape(x))                 ->  Reshape(f(x)) of the same channels: Requantize, Lookup, Add,
                                      Multiply, RowNorm, RowSoftmax, Conv2d of 1x1; of what is added
                                      or multiplied, one operand may be no image yet
    RowNorm(x[..., N, C])         ->  Reshape(RowNorm(Reshape(x))), each row a pixel
    TensorNorm(x[1, N, C])        ->  the same
    Lookup(move(x))               ->  move(Lookup(x)): Transpose, Reshape to no image, all of them
    Concatenate(x[1, N, C], ...)  ->  Reshape(Concatenate(Reshape(x), ...)), rows behind each other
                                      or beside each other; x[1, C] likewise
    Multiply(x[1, N, C], y)       ->  Reshape(Multiply(Reshape(x), Reshape(y))), y of one row, or of
                                      one channel, which is repeated
    Slice(x[1, N, C])             ->  Reshape(Slice(Reshape(x))), channels of each row

Every step takes away a Dense, RowNorm or TensorNorm of several rows, or moves a Reshape one node
nearer to the outputs, so the pass ends.
"""

from math import prod

import numpy as np

from ....graph.ir import Node
from ....graph.operators.indexing import Gather
from ....graph.operators.integer.norm import RowNorm
from ....graph.operators.integer.products import Conv2d, Dense
from ....graph.operators.integer.residual import RequantizeAdd
from ....graph.operators.integer.softmax import RowSoftmax
from ....graph.operators.integer.tensor_norm import TensorNorm
from ....graph.operators.integer.values import Lookup
from ....graph.operators.movement import Concatenate, Reshape, Slice, Transpose
from ....graph.rewrite import Rewriter, Rewriting
from ..operators import AnyAdd, AnyMultiply, AnyRequantize
from .rows_of_images import ROWS_OF_IMAGES, is_image, makes_rows, shaped

__all__ = ["ROWS_TO_PIXELS"]


def _merge(rewriter: Rewriter, node: Node) -> str | None:
    if not isinstance(node.operator, Reshape):
        return None
    before = shaped(rewriter, node.inputs[0])
    if before is None:
        return None
    if rewriter.graph.types[before.inputs[0]].shape == node.operator.shape:
        return before.inputs[0]
    return rewriter.builder.node(node.operator, before.inputs, node.output, node.origin)


def _convolve(rewriter: Rewriter, node: Node) -> str | None:
    operator, builder, types = node.operator, rewriter.builder, rewriter.graph.types
    x, shape = node.inputs[0], types[node.inputs[0]].shape
    if not isinstance(operator, Dense) or prod(shape[:-1]) == 1:
        return None
    before = shaped(rewriter, x)
    if before is not None and not makes_rows(rewriter, node):
        x = before.inputs[0]
    elif len(shape) != 4 or shape[0] != 1:
        pixels = Reshape((1, 1, prod(shape[:-1]), shape[-1]))
        x = builder.node(pixels, (x,), f"{node.output}/x", node.origin)
    weights = rewriter.graph.constants[node.inputs[1]]
    kernel = builder.constant(f"{node.output}/kernel", weights.reshape(len(weights), 1, 1, -1))
    zero_points = (operator.zero_point, operator.weight_zero_point)
    conv = Conv2d((1, 1), (0, 0, 0, 0), 1, *zero_points)
    inputs = (x, kernel, node.inputs[2])
    out = builder.node(conv, inputs, f"{node.output}/conv", node.origin)
    if types[node.output].shape == builder.types[out].shape:
        return out
    return builder.node(Reshape(types[node.output].shape), (out,), node.output, node.origin)


def _sink(rewriter: Rewriter, node: Node) -> str | None:
    operator, types = node.operator, rewriter.graph.types
    places = (0, 1) if isinstance(operator, AnyAdd | AnyMultiply) else (0,)
    if isinstance(operator, RequantizeAdd):
        places = (0, 2)
    operands = [node.inputs[place] for place in places]
    one_by_one = _is_of_pixels(rewriter, node) and not makes_rows(rewriter, node)
    layers = AnyAdd | AnyMultiply | AnyRequantize | RequantizeAdd | Lookup | RowNorm | RowSoftmax
    if isinstance(operator, TensorNorm):
        one_by_one = types[node.output].shape[0] == 1
    if not isinstance(operator, layers) and not one_by_one:
        return None
    before = [shaped(rewriter, name) for name in operands]
    found = [each.inputs[0] for each in before if each is not None]
    if not found or len({types[name].shape for name in operands}) > 1:
        return None
    # Another image of as many pixels is moved to the places of one that a layer makes.
    shape = types[min(found, key=lambda name: _is_moved(rewriter, name))].shape
    inputs = list(node.inputs)
    for place, each, name in zip(places, before, operands, strict=True):
        if each is not None and types[each.inputs[0]].shape == shape:
            inputs[place] = each.inputs[0]
        elif is_image(types[node.output].shape) and name not in rewriter.graph.constants:
            return None
        else:
            inputs[place] = _image(rewriter, name, shape, node.origin)
    inner = rewriter.builder.node(operator, tuple(inputs), f"{node.output}/image", node.origin)
    return rewriter.builder.node(
        Reshape(types[node.output].shape), (inner,), node.output, node.origin
    )


def _is_of_pixels(rewriter: Rewriter, node: Node) -> bool:
    """True if a convolution makes each pixel of one, so that their order does not matter."""
    operator = node.operator
    if not isinstance(operator, Conv2d) or operator.strides != (1, 1) or any(operator.pads):
        return False
    return rewriter.graph.types[node.inputs[1]].shape[1:3] == (1, 1)


def _is_moved(rewriter: Rewriter, name: str) -> bool:
    node = rewriter.graph.producer(name)
    return node is not None and isinstance(node.operator, Transpose | Reshape)


def _raise(rewriter: Rewriter, node: Node) -> str | None:
    builder, shape = rewriter.builder, rewriter.graph.types[node.output].shape
    if not isinstance(node.operator, RowNorm | TensorNorm):
        return None
    alone = shape[0] == 1
    if (alone and len(shape) in (2, 4)) or (not alone and isinstance(node.operator, TensorNorm)):
        return None
    x, *parameters = node.inputs
    pixels = _image(rewriter, x, (1, 1, prod(shape[:-1]), shape[-1]), node.origin)
    inner = builder.node(node.operator, (pixels, *parameters), f"{node.output}/image", node.origin)
    return builder.node(Reshape(shape), (inner,), node.output, node.origin)


def _look_up(rewriter: Rewriter, node: Node) -> str | None:
    graph, builder, chain = rewriter.graph, rewriter.builder, list[Node]()
    if not isinstance(node.operator, Lookup) or graph.types[node.output].rank == 4:
        return None
    x, table = node.inputs
    while (move := graph.producer(x)) and isinstance(move.operator, Transpose | Reshape):
        if len(graph.consumers(x)) > 1 or x in graph.outputs:
            return None
        chain.append(move)
        x = move.inputs[0]
    if not chain or graph.producer(x) is None or graph.types[table].rank > 1:
        return None
    name = builder.node(node.operator, (x, table), f"{node.output}/before", node.origin)
    for move in reversed(chain):
        name = builder.node(move.operator, (name,), move.output, move.origin)
    return name


def _stack(rewriter: Rewriter, node: Node) -> str | None:
    builder, types = rewriter.builder, rewriter.graph.types
    shape = types[node.output].shape
    if not isinstance(node.operator, Concatenate) or len(shape) not in (2, 3) or shape[0] != 1:
        return None
    more = 4 - len(shape)
    images = tuple(
        _image(rewriter, name, (*[1] * more, *types[name].shape), node.origin)
        for name in node.inputs
    )
    joins = Concatenate(node.operator.axis + more)
    whole = builder.node(joins, images, f"{node.output}/image", node.origin)
    return builder.node(Reshape(shape), (whole,), node.output, node.origin)


def _cut(rewriter: Rewriter, node: Node) -> str | None:
    operator, shape = node.operator, rewriter.graph.types[node.inputs[0]].shape
    if not isinstance(operator, Slice) or len(shape) not in (2, 3) or shape[0] != 1:
        return None
    if operator.shape[:-1] != shape[:-1]:
        return None
    more = 4 - len(shape)
    image = _image(rewriter, node.inputs[0], (*[1] * more, *shape), node.origin)
    starts, steps = (*[0] * more, *operator.starts), (*[1] * more, *operator.steps)
    part = Slice(starts, steps, (*[1] * more, *operator.shape))
    name = rewriter.builder.node(part, (image,), f"{node.output}/image", node.origin)
    return rewriter.builder.node(Reshape(operator.shape), (name,), node.output, node.origin)


def _multiply(rewriter: Rewriter, node: Node) -> str | None:
    builder, types = rewriter.builder, rewriter.graph.types
    shape = types[node.output].shape
    shapes = [types[name].shape for name in node.inputs]
    if not isinstance(node.operator, AnyMultiply) or len(shape) != 3 or shape[0] != 1:
        return None
    if len(set(shapes)) == 1 or any(len(each) != 3 for each in shapes):
        return None
    inputs = [_image(rewriter, name, (1, *types[name].shape), node.origin) for name in node.inputs]
    for number, (_, _, channels) in enumerate(shapes):
        if channels < shape[2]:
            firsts = builder.constant(f"{node.output}/firsts", np.zeros(shape[2], np.int64))
            given = inputs[number], firsts
            inputs[number] = builder.node(Gather(3), given, f"{node.output}/alike", node.origin)
    image = builder.node(node.operator, tuple(inputs), f"{node.output}/image", node.origin)
    return builder.node(Reshape(shape), (image,), node.output, node.origin)


def _image(rewriter: Rewriter, name: str, shape: tuple[int, ...], origin: str) -> str:
    """A tensor in another shape; of a constant, one that is known."""
    builder, array = rewriter.builder, rewriter.graph.constants.get(name)
    if array is not None:
        return builder.constant(f"{name}/image", array.reshape(shape))
    return builder.node(Reshape(shape), (name,), f"{name}/image", origin)


ROWS_TO_PIXELS = Rewriting(
    "rows_to_pixels",
    (_merge, _convolve, _sink, _raise, _look_up, _stack, _cut, _multiply, *ROWS_OF_IMAGES),
)
