"""Products of two tensors that are turned afterwards, as the products with operands exchanged.

    Transpose(Requantize(RowProducts(x, y)))  ->  Transpose'(Requantize(RowProducts(y, x)))
    Transpose(Reshape(Transpose?(Requantize(RowProducts(x, y)))))
        ->  Reshape'(Transpose'(Requantize(RowProducts(y, x))))

where rows would become channels: the accelerator makes channels along lanes, and cannot move them
to pixels.  Each step takes away a Transpose of that kind, so it ends.
"""

from collections.abc import Sequence

from ....graph.ir import Graph, Node
from ....graph.operators.integer.products import RowProducts
from ....graph.operators.integer.values import Requantize
from ....graph.operators.movement import Reshape, Transpose
from ....graph.rewrite import Rewriter, rewrite
from .axis_groups import axis_groups

__all__ = ["turn_products"]


def turn_products(graph: Graph) -> Graph:
    """The rewritten graph; ``graph`` itself when nothing matches."""
    return rewrite(graph, (_turn, _turn_reshaped))


def _turn(rewriter: Rewriter, node: Node) -> str | None:
    if not isinstance(node.operator, Transpose):
        return None
    return _turned(rewriter, node.inputs[0], node.operator.permutation, node)


def _turn_reshaped(rewriter: Rewriter, node: Node) -> str | None:
    before = rewriter.producer(node.inputs[0])
    if not isinstance(node.operator, Transpose) or before is None:
        return None
    if not isinstance(before.operator, Reshape):
        return None
    (name,) = before.inputs
    permutation = _raised(rewriter, before, node.operator.permutation)
    first = rewriter.producer(name)
    if permutation is None or first is None:
        return None
    if isinstance(first.operator, Transpose):
        (name,) = first.inputs
        permutation = [first.operator.permutation[axis] for axis in permutation]
    turned = _turned(rewriter, name, permutation, node)
    if turned is None:
        return None
    image = Reshape(rewriter.graph.types[node.output].shape)
    return rewriter.builder.node(image, (turned,), node.output, node.origin)


def _raised(rewriter: Rewriter, node: Node, permutation: Sequence[int]) -> list[int] | None:
    """The order of axes before the Reshape ``node`` that ``permutation`` is behind it; None where
    it separates axes that were one.
    """
    before, after = (rewriter.graph.types[name].shape for name in (node.inputs[0], node.output))
    groups = axis_groups(before, after)
    wanted = [axis for axis in permutation if after[axis] > 1]
    found = [axis for axis, size in enumerate(before) if size == 1]
    for joined, split in sorted(groups or (), key=lambda group: wanted.index(group[1][0])):
        first = wanted.index(split[0])
        if wanted[first : first + len(split)] != split:
            return None
        found += joined
    return None if groups is None else found


def _turned(rewriter: Rewriter, name: str, permutation: Sequence[int], node: Node) -> str | None:
    """The products ``name`` in the order ``permutation``, made with operands exchanged; None where
    rows do not become channels.
    """
    rank = len(permutation)
    if permutation[-1] != rank - 2:
        return None
    product = _exchanged(rewriter, name)
    if product is None:
        return None
    other = {rank - 1: rank - 2, rank - 2: rank - 1}
    turned = tuple(other.get(axis, axis) for axis in permutation)
    if turned == tuple(range(rank)):
        return product
    made = f"{node.output}/turned"
    return rewriter.builder.node(Transpose(turned), (product,), made, node.origin)


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
