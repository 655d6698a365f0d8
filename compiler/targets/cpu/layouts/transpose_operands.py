"""Turn computed operands of contractions so that the output's last dimension is contiguous.

    sum(x[m, k] * y[n, k])  ->  sum(x[m, k] * z[k, n]),  z = transpose(y)

Only where each element of the operand is used often enough to pay for the copy.  A turned operand
is not turned again, so the pass ends.
"""

from dataclasses import replace
from math import prod

from dovetail.isa.frozen import frozen

from ....graph.ir import Graph, Node
from ....graph.operators.contractions import Contract
from ....graph.operators.movement import Transpose
from ....graph.rebuild import Rebuilding
from .pack_weights import dot_packed

__all__ = ["TransposeOperands"]

REUSES = 8
"""Products with an element that pay for moving it."""


@frozen
class TransposeOperands:
    """See the module's docstring."""

    name: str = "transpose_operands"

    def run(self, graph: Graph) -> Graph:
        """The rewritten graph; ``graph`` itself when nothing is turned."""
        places = {
            id(node): place for node in graph.nodes if (place := _across(graph, node)) is not None
        }
        if not places:
            return graph
        rebuilding = Rebuilding(graph)
        for node in graph.nodes:
            if id(node) in places:
                _turn(rebuilding, node, places[id(node)])
            else:
                rebuilding.copy(node)
        return rebuilding.build()


def _across(graph: Graph, node: Node) -> int | None:
    """The operand to turn; None for none."""
    operator = node.operator
    if not isinstance(operator, Contract) or len(operator.operands) != 2 or not operator.kept:
        return None
    last = operator.kept[-1]
    uses = [{label for axis in axes for label, _ in axis} for axes in operator.operands]
    if (last in uses[0]) == (last in uses[1]) or operator.sizes[last] < REUSES:
        return None
    place = 0 if last in uses[0] else 1
    axes = operator.operands[place]
    plain = all(len(axis) == 1 and axis[0][1] == 1 for axis in axes)
    labels = [label for axis in axes for label, _ in axis]
    reuses = prod(operator.sizes[label] for label in operator.kept if label not in labels)
    if not plain or len(set(labels)) != len(labels) or labels[-1] == last or reuses < REUSES:
        return None
    constant = node.inputs[place] in graph.constants
    return None if constant or dot_packed(operator, labels) else place


def _turn(rebuilding: Rebuilding, node: Node, place: int) -> None:
    operator = node.operator
    assert isinstance(operator, Contract)
    axes = operator.operands[place]
    labels = [axis[0][0] for axis in axes]
    source = labels.index(operator.kept[-1])
    order = (*(axis for axis in range(len(axes)) if axis != source), source)
    inputs = [rebuilding.tensor(name) for name in node.inputs]
    inputs[place] = rebuilding.builder.node(
        Transpose(order), (inputs[place],), f"{node.inputs[place]}.turned", node.origin
    )
    operands = list(operator.operands)
    operands[place] = tuple(axes[axis] for axis in order)
    turned = replace(operator, operands=tuple(operands))
    result = rebuilding.builder.node(turned, tuple(inputs), node.output, node.origin)
    rebuilding.replace(node, (result,))
