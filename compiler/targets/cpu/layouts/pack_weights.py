"""Lay constant operands of contractions out in the order in which they are read.

    y[m, n] = sum(x[m, k] * w[k, n])  ->  y[m, 16 o + i] = sum(x[m, k] * w[o, k, i])

The last label of the output becomes two, blocks and places in a block, when the constant has it and
the other operand does not; where it does not divide, the constant is only transposed.  A packed
constant is not packed again, so the pass ends.
"""

from collections.abc import Sequence
from math import prod

import numpy as np

from dovetail.isa.frozen import frozen

from ....dtypes import DType
from ....graph.ir import Graph, Node
from ....graph.operators.contractions import Axis, Contract
from ....graph.rebuild import Rebuilding

__all__ = ["PackWeights", "dot_packed"]

REUSES = 4
"""Products that read an element of the constant at least; for fewer, packing changes nothing."""


@frozen
class PackWeights:
    """See the module's docstring."""

    block: int = 16
    name: str = "pack_weights"

    def run(self, graph: Graph) -> Graph:
        """The rewritten graph; ``graph`` itself when there is nothing to pack."""
        places = {
            id(node): place
            for node in graph.nodes
            if (place := _weights(graph, node, self.block)) is not None
        }
        if not places:
            return graph
        rebuilding = Rebuilding(graph)
        for node in graph.nodes:
            if id(node) in places:
                _pack(rebuilding, node, places[id(node)], self.block)
            else:
                rebuilding.copy(node)
        return rebuilding.build()


def _weights(graph: Graph, node: Node, block: int) -> int | None:
    """The operand to pack; None for none."""
    operator = node.operator
    if not isinstance(operator, Contract) or len(operator.operands) != 2 or not operator.kept:
        return None
    constant = [place for place in (0, 1) if node.inputs[place] in graph.constants]
    if len(constant) != 1:
        return None
    (place,) = constant
    axes, others = operator.operands[place], operator.operands[1 - place]
    plain = all(len(axis) == 1 and axis[0][1] == 1 for axis in axes)
    labels = [label for axis in axes for label, _ in axis]
    last = operator.kept[-1]
    reuses = prod(operator.sizes[label] for label in operator.kept if label not in labels)
    if not plain or len(set(labels)) != len(labels) or last not in labels:
        return None
    if dot_packed(operator, labels):
        return None
    if any(label == last for axis in others for label, _ in axis):
        return None
    if _dot_label(graph, node, place, block) is not None:
        return place
    whole = operator.sizes[last] > block and operator.sizes[last] % block == 0
    return place if reuses >= REUSES and (whole or labels[-1] != last) else None


def _dot_label(graph: Graph, node: Node, place: int, block: int) -> int | None:
    """The label that dot products of bytes sum four values of; None where there are none."""
    operator = node.operator
    assert isinstance(operator, Contract)
    kinds = [graph.types[node.inputs[k]].dtype for k in (1 - place, place)]
    if operator.dtype != DType.INT32 or kinds[0] not in (DType.UINT8, DType.INT8):
        return None
    other = operator.operands[1 - place]
    if kinds[1] != DType.INT8 or operator.sizes[operator.kept[-1]] % block or not other:
        return None
    last = other[-1]
    labels = [axis[0][0] for axis in operator.operands[place]]
    if len(last) != 1 or last[0][1] != 1 or last[0][0] not in labels:
        return None
    label = last[0][0]
    uses = [own for axis in other for own, _ in axis].count(label)
    summed = label in operator.summed and uses == 1 and operator.sizes[label] % 4 == 0
    return label if summed and operator.sizes[label] else None


def dot_packed(operator: Contract, labels: Sequence[int]) -> bool:
    """True if an operand's last dimensions are the output's last label and 4 values to sum."""
    last = labels[-2:-1] == [operator.kept[-1]] and labels[-1] not in operator.kept
    return operator.dtype == DType.INT32 and last and operator.sizes[labels[-1]] == 4


def _pack(rebuilding: Rebuilding, node: Node, place: int, block: int) -> None:
    operator = node.operator
    assert isinstance(operator, Contract)
    labels = [axis[0][0] for axis in operator.operands[place]]
    last = operator.kept[-1]
    kept = [label for label in operator.kept if label in labels and label != last]
    order = [*kept, *operator.summed, last]
    order = [label for label in order if label in labels]
    array = rebuilding.graph.constants[node.inputs[place]]
    array = array.transpose([labels.index(label) for label in order])
    array = array[tuple(slice(operator.sizes[label]) for label in order)]
    near = _dot_label(rebuilding.graph, node, place, block)
    size, sizes, output = operator.sizes[last], operator.sizes, operator.output
    if size > block and size % block == 0:
        blocks = len(sizes)
        array = array.reshape(*array.shape[:-1], size // block, block)
        array = np.moveaxis(array, -2, len(kept))
        order = [*kept, blocks, *order[len(kept) :]]
        sizes = (*(block if x == last else own for x, own in enumerate(sizes)), size // block)
        output = tuple(_split(axis, last, blocks, block) for axis in output)
    operands = list(operator.operands)
    if near is not None:
        groups, axis = len(sizes), order.index(near)
        split = array.reshape(*array.shape[:axis], -1, 4, *array.shape[axis + 1 :])
        array = np.moveaxis(split, axis + 1, -1)
        order = [*order[:axis], groups, *order[axis + 1 :], near]
        sizes = (*(4 if x == near else own for x, own in enumerate(sizes)), sizes[near] // 4)
        other = operands[1 - place]
        operands[1 - place] = (*other[:-1], ((groups, 4), (near, 1)))
    packed = rebuilding.builder.constant(node.inputs[place], array)
    operands[place] = tuple(((label, 1),) for label in order)
    inputs = [
        rebuilding.tensor(name) if k != place else packed for k, name in enumerate(node.inputs)
    ]
    result = rebuilding.builder.node(
        Contract(sizes, tuple(operands), output, operator.dtype),
        tuple(inputs),
        node.output,
        node.origin,
    )
    rebuilding.replace(node, (result,))


def _split(axis: Axis, label: int, blocks: int, block: int) -> Axis:
    """``label``, the last of its axis, as blocks and places."""
    if label not in [own for own, _ in axis]:
        return axis
    return (*axis[:-1], (blocks, block), (label, 1))
