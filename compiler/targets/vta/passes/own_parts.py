"""Give each part of a concatenation a tensor that it may be written in place of.

The accelerator makes the parts of a concatenation along channels where they are in it, so that none
is copied.  That takes tensors that a layer makes, that are part of one concatenation only, and that
no layer making another part of it, and no product of two activations, reads.  Sums and products of
two images are not written between columns of other parts.  All others are copied:

    Concatenate(x, y)  ->  Concatenate(MaxPool2d(x) of one pixel, y)

Slices that are not read in place are copied too.  Each node is visited once, so the pass ends.
"""

from collections.abc import Mapping

from dovetail.isa.frozen import frozen

from ....dtypes import DType
from ....graph.ir import Graph, GraphBuilder, Node
from ....graph.operators.assembly import Assemble
from ....graph.operators.indexing import Gather
from ....graph.operators.integer.norm import RowNorm
from ....graph.operators.integer.products import Conv2d, RowProducts
from ....graph.operators.integer.residual import RequantizeAdd
from ....graph.operators.integer.values import Lookup
from ....graph.operators.integer.windows import AveragePool2d, MaxPool2d, Upsample2d
from ....graph.operators.movement import Concatenate, Reshape, Slice
from ....graph.types import TensorType
from ..operators import AnyAdd, AnyMultiply, AnyRequantize

__all__ = ["OwnParts", "is_channel_concatenation", "is_channel_slice", "is_copy", "is_operand"]

POOLS = (MaxPool2d, AveragePool2d, Upsample2d)
MADE = (
    AnyRequantize,
    RequantizeAdd,
    AnyAdd,
    AnyMultiply,
    *POOLS,
    Lookup,
    RowNorm,
    Assemble,
    Gather,
)
"""Operators whose results layers of the accelerator make."""

COPY = MaxPool2d((1, 1), (1, 1), (0, 0, 0, 0))


def is_channel_concatenation(node: Node, kind: TensorType) -> bool:
    """True if ``node``, whose result has type ``kind``, joins the channels of an image."""
    joins = isinstance(node.operator, Concatenate) and node.operator.axis == 3
    return joins and _is_image(kind)


def is_channel_slice(node: Node, types: Mapping[str, TensorType]) -> bool:
    """True if ``node`` cuts channels out of an image.  types: of the graph's tensors."""
    operator = node.operator
    if not isinstance(operator, Slice) or not _is_image(kind := types[node.inputs[0]]):
        return False
    whole = operator.shape[:3] == kind.shape[:3] and not any(operator.starts[:3])
    return whole and operator.steps[3] == 1


def is_copy(node: Node) -> bool:
    """True if ``node`` copies some pixels of an image as they are."""
    operator = node.operator
    return (
        isinstance(operator, AveragePool2d)
        and (operator.kernel, operator.scale) == ((1, 1), 1.0)
        and operator.x_zero_point == operator.zero_point == 0
    )


def is_operand(graph: Graph, node: Node) -> bool:
    """True if a node copies rows of an image that are but first operands of products."""
    readers = graph.consumers(node.output)
    products = all(isinstance(each.operator, RowProducts) for each in readers)
    weights = any(node.output in each.inputs[1:] for each in readers)
    return is_copy(node) and products and not weights and node.output not in graph.outputs


def _is_image(kind: TensorType) -> bool:
    return kind.rank == 4 and kind.shape[0] == 1 and kind.dtype == DType.INT8


@frozen
class OwnParts:
    """See the module's docstring.

    lanes: of a block; without them, no image counts as one block.
    """

    lanes: int = 0
    name: str = "own_parts"

    def run(self, graph: Graph) -> Graph:
        """The rewritten graph; ``graph`` itself when there is nothing to copy."""
        joins = [
            node
            for node in graph.nodes
            if is_channel_concatenation(node, graph.types[node.output])
            or isinstance(node.operator, Assemble)
        ]
        if not joins:
            return graph
        uses = [name for node in joins for name in node.inputs]
        builder = GraphBuilder.over(graph)
        for node in graph.nodes:
            if node not in joins:
                builder.nodes.append(node)
                continue
            inputs = tuple(
                builder.node(COPY, (name,), f"{node.output}/part", node.origin)
                if _needs_copy(graph, name, node, uses, self.lanes)
                else name
                for name in node.inputs
            )
            builder.nodes.append(Node(node.operator, inputs, node.output, node.origin))
        return builder.build(graph.outputs)


def _needs_copy(graph: Graph, name: str, join: Node, uses: list[str], lanes: int) -> bool:
    producer = graph.producer(name)
    if producer is None or uses.count(name) > 1:
        return True
    if not isinstance(producer.operator, MADE):
        return True
    if _is_multiplied(graph, name):
        return True
    part, whole = graph.types[name].shape, graph.types[join.output].shape
    single = part[1] == 1 and part[3] <= lanes
    wider = part[1:3] != whole[1:3] and not single
    if isinstance(join.operator, Assemble) and wider and _has_two_operands(graph, producer):
        # Rows of both operands of such a layer, and of its result, are equally far apart; and so
        # are blocks.
        return True
    others = (other for other in join.inputs if other != name)
    return any(name in _reads(graph, other) for other in others)


def _is_multiplied(graph: Graph, name: str) -> bool:
    """True if a product of two activations reads ``name``, perhaps by another name."""
    return any(
        isinstance(each.operator, RowProducts)
        or (isinstance(each.operator, Reshape) and _is_multiplied(graph, each.output))
        for each in graph.consumers(name)
    )


def _has_two_operands(graph: Graph, node: Node) -> bool:
    """True if the layer that makes the result of ``node`` reads two images."""
    if isinstance(node.operator, Lookup):
        before = graph.producer(node.inputs[0])
        return before is not None and _has_two_operands(graph, before)
    return isinstance(node.operator, RequantizeAdd | AnyAdd | AnyMultiply)


def _reads(graph: Graph, name: str) -> set[str]:
    """Tensors that the layer that makes ``name`` may read."""
    found: set[str] = set()
    pending = [name]
    while pending:
        node = graph.producer(pending.pop())
        if node is None:
            continue
        found |= set(node.inputs)
        if isinstance(node.operator, Lookup | AnyRequantize | RequantizeAdd):
            pending.append(node.inputs[0])
        elif isinstance(node.operator, Assemble):
            pending += node.inputs
        elif isinstance(node.operator, AnyAdd):
            pending += [
                each
                for each in node.inputs
                if isinstance(getattr(graph.producer(each), "operator", None), AnyRequantize)
            ]
        elif not isinstance(node.operator, Conv2d):
            continue
    return found
