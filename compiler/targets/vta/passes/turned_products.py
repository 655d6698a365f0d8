"""Products of two tensors that are turned afterwards, as the products with operands exchanged.

    Transpose(Requantize(RowProducts(x, y)))           ->  Transpose'(Requantize(RowProducts(y, x)))
    Transpose(Reshape(Requantize(RowProducts(x, y))))  ->  Reshape'(Requantize(RowProducts(y, x))),
                                                           of several heads with a Transpose before

where rows would become channels: the accelerator makes channels along lanes, and cannot move them
to pixels.  Each step takes away a Transpose of that kind, so it ends.
"""

from math import prod

from ....graph.ir import Graph, Node
from ....graph.operators.integer.products import RowProducts
from ....graph.operators.integer.values import Requantize
from ....graph.operators.movement import Reshape, Transpose
from ....graph.rewrite import Rewriter, rewrite

__all__ = ["turn_products"]

TO_NHWC = Transpose((0, 2, 3, 1))


def turn_products(graph: Graph) -> Graph:
    """The rewritten graph; ``graph`` itself when nothing matches."""
    return rewrite(graph, (_turn, _turn_image))


def _turn(rewriter: Rewriter, node: Node) -> str | None:
    operator, shape = node.operator, rewriter.graph.types[node.inputs[0]].shape
    rank = len(shape)
    if not isinstance(operator, Transpose) or operator.permutation[-1] != rank - 2:
        return None
    product = _exchanged(rewriter, node.inputs[0])
    if product is None:
        return None
    other = {rank - 1: rank - 2, rank - 2: rank - 1}
    turned = Transpose(tuple(other.get(axis, axis) for axis in operator.permutation))
    return rewriter.builder.node(turned, (product,), node.output, node.origin)


def _turn_image(rewriter: Rewriter, node: Node) -> str | None:
    if node.operator != TO_NHWC:
        return None
    before = rewriter.producer(node.inputs[0])
    if before is None or not isinstance(before.operator, Reshape):
        return None
    *outer, rows, columns = rewriter.graph.types[before.inputs[0]].shape
    _, channels, height, width = before.operator.shape
    heads = prod(outer)
    if (heads * rows, columns) != (channels, height * width):
        return None
    product = _exchanged(rewriter, before.inputs[0])
    if product is None:
        return None
    if heads > 1:
        # Each pixel's channels are those of all heads.
        apart = Reshape((1, heads, columns, rows))
        product = rewriter.builder.node(apart, (product,), f"{node.output}/heads", node.origin)
        beside = Transpose((0, 2, 1, 3))
        product = rewriter.builder.node(beside, (product,), f"{node.output}/beside", node.origin)
    image = Reshape((1, height, width, channels))
    return rewriter.builder.node(image, (product,), node.output, node.origin)


def _exchanged(rewriter: Rewriter, name: str) -> str | None:
    """The bytes of ``name`` with their last two dimensions exchanged; None where no product alone
    makes them, all with one scale.
    """
    builder, graph = rewriter.builder, rewriter.graph
    finish = rewriter.producer(name)
    total = rewriter.producer(finish.inputs[0]) if finish is not None else None
    if finish is None or total is None or not isinstance(finish.operator, Requantize):
        return None
    products = total.operator
    if not isinstance(products, RowProducts) or min(graph.types[name].shape[-2:]) == 1:
        return None
    x, y = (graph.types[each].shape[:-2] for each in total.inputs)
    scale = graph.constants[finish.inputs[1]]
    if x != y or (scale != scale[0]).any():
        return None
    exchanged = RowProducts(products.y_zero_point, products.x_zero_point)
    sums = builder.node(exchanged, total.inputs[::-1], f"{name}/turned", total.origin)
    count = graph.types[name].shape[-2]
    scales = builder.constant(f"{name}/scale", scale[:1].repeat(count))
    return builder.node(finish.operator, (sums, scales), f"{name}/turned", finish.origin)
