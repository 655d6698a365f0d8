"""Attention as one operator, where only its softmax reads its scores.

    softmax(contract(q, k) * scale + bias) -> p;  contract(p, v)  ->  attention(q, k, v, bias)

Between product and softmax there may be constant factors and divisors, then sums with tensors that
broadcast to the scores, then choices between scores and a constant, one of each at most.  Operands
are read as they are before they are transposed, and the result is stored as a transpose after it
would leave it.  Scores of fewer than ``FEWEST`` rows stay as they are: there is little to keep out
of memory.  So do those of wide values.

Each attention takes the place of a softmax, so the pass ends.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np

from dovetail.isa.frozen import frozen

from ...dtypes import DType
from ...errors import GraphError
from ..ir import Graph, Node
from ..operators.attention import Attention
from ..operators.contractions import Axis, Contract
from ..operators.elementwise import Binary, BinaryFunction, Where
from ..operators.movement import Transpose
from ..operators.rows import SoftmaxRows
from ..rebuild import replaced
from .eliminate_dead import EliminateDead

__all__ = ["FuseAttention"]

FEWEST = 16
WIDEST = 256
"""Numbers of a value: a row of the result stays in registers."""


@dataclass(slots=True)
class _Scores:
    """The nodes between a product and its softmax, found from the softmax on."""

    scale: float = 1.0
    bias: str | None = None
    chosen: str | None = None
    other: float = 0.0


@frozen
class FuseAttention:
    """See the module's docstring."""

    name: str = "fuse_attention"

    def run(self, graph: Graph) -> Graph:
        """The rewritten graph; ``graph`` itself when nothing matches."""
        matcher = _Matcher(graph)
        found = dict(
            matcher.turned(node, *each) for node in graph.nodes if (each := matcher.attention(node))
        )
        if not found:
            return graph
        return EliminateDead().run(replaced(graph, found))


@frozen
class _Matcher:
    graph: Graph
    _outputs: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_outputs", frozenset(self.graph.outputs))

    def attention(self, last: Node) -> tuple[Attention, tuple[str, ...]] | None:
        """The operator that computes what ``last`` does, and its inputs."""
        if not _is_product(last):
            return None
        softmax = self.only(last.inputs[0])
        if softmax is None or not isinstance(softmax.operator, SoftmaxRows):
            return None
        found = _Scores()
        first = self.only(softmax.inputs[0])
        while first is not None and not isinstance(first.operator, Contract):
            before = self.before(first, found)
            first = self.only(before) if before is not None else None
        if softmax.operator.logarithm or first is None or not _is_product(first):
            return None
        return self.joined(first, last, found)

    def turned(
        self, last: Node, operator: Attention, inputs: tuple[str, ...]
    ) -> tuple[str, tuple[Attention, tuple[str, ...]]]:
        """The tensor that takes the result, and what computes it: that of the only transpose."""
        readers = self.graph.consumers(last.output)
        after = readers[0] if len(readers) == 1 and last.output not in self._outputs else None
        if after is None or not isinstance(after.operator, Transpose):
            return last.output, (operator, inputs)
        output = tuple(operator.output[axis] for axis in after.operator.permutation)
        return after.output, (replace(operator, output=output), inputs)

    def only(self, name: str) -> Node | None:
        """The node that makes a tensor, if one node alone reads it."""
        alone = len(self.graph.consumers(name)) == 1 and name not in self._outputs
        return self.graph.producer(name) if alone else None

    def before(self, node: Node, found: _Scores) -> str | None:
        """The scores that a node changes; what it does is noted in ``found``."""
        shape = self.graph.types[node.output].shape
        scores = [name for name in node.inputs if self.graph.types[name].shape == shape]
        scores = [name for name in scores if self.graph.producer(name)]
        if not scores:
            return None
        match node.operator:
            case Where() if node.inputs[1] in scores and not (found.bias or found.scale != 1.0):
                value = self.number(node.inputs[2])
                if value is None or found.chosen is not None:
                    return None
                found.chosen, found.other = node.inputs[0], value
                return node.inputs[1]
            case Binary(function=BinaryFunction.ADD) if found.scale == 1.0 and not found.bias:
                place = next((n for n in (0, 1) if self.leads_to_product(node.inputs[n])), None)
                if place is None:
                    return None
                found.bias = node.inputs[1 - place]
                return node.inputs[place]
            case Binary(function=BinaryFunction.MUL | BinaryFunction.DIV as function):
                place = 0 if node.inputs[0] in scores else 1
                factor = self.number(node.inputs[1 - place])
                divides = function is BinaryFunction.DIV
                if factor is None or (divides and (place == 1 or not factor)):
                    return None
                found.scale *= 1 / factor if divides else factor
                return node.inputs[place]
            case _:
                return None

    def leads_to_product(self, name: str) -> bool:
        """True if a tensor is the product of queries and keys, perhaps scaled."""
        node = self.only(name)
        while node is not None and isinstance(node.operator, Binary):
            made = [each for each in node.inputs if self.number(each) is None]
            node = self.only(made[0]) if len(made) == 1 else None
        return node is not None and isinstance(node.operator, Contract)

    def number(self, name: str) -> float | None:
        """The value of a constant with one element."""
        array = self.graph.constants.get(name)
        return (
            float(np.asarray(array).reshape(())) if array is not None and array.size == 1 else None
        )

    def joined(
        self, first: Node, last: Node, found: _Scores
    ) -> tuple[Attention, tuple[str, ...]] | None:
        """Both products and what is between them."""
        one, two = first.operator, last.operator
        assert isinstance(one, Contract)
        assert isinstance(two, Contract)
        scores, weights = _labels(one.output, {}), _labels(two.operands[0], {})
        q, k = (_labels(axes, {}) for axes in one.operands)
        if not scores or not weights or len(set(weights)) != len(scores):
            return None
        # Labels of the second product, by those of the first; others come after them.
        names = dict(zip(weights, scores, strict=True))
        names |= {
            each: len(one.sizes) + each for each in range(len(two.sizes)) if each not in names
        }
        v, output = _labels(two.operands[1], names), _labels(two.output, names)
        if q is None or k is None or v is None or output is None:
            return None
        if scores[-1] in q:
            q, k, first = k, q, replace(first, inputs=first.inputs[::-1])
        (queries, q), (keys, k), (values, v) = (
            self.before_transposes(name, labels)
            for name, labels in zip((*first.inputs, last.inputs[1]), (q, k, v), strict=True)
        )
        masks = tuple(name for name in (found.bias, found.chosen) if name is not None)
        operator = Attention(
            *(q, k, v, scores, output),
            *(found.scale, found.bias is not None, found.chosen is not None, found.other),
        )
        inputs = (queries, keys, values, *masks)
        try:
            kinds = tuple(self.graph.types[name] for name in inputs)
            fits = operator.result(kinds) == (self.graph.types[last.output],)
            sizes = operator.sizes(kinds)
            width = prod(sizes[label] for label in operator.columns)
            enough = sizes[operator.row] >= FEWEST and width <= WIDEST
        except GraphError:
            return None
        return (operator, inputs) if fits and enough else None

    def before_transposes(self, name: str, labels: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
        """A tensor as it is before its dimensions are permuted, and its labels."""
        node = self.graph.producer(name)
        while node is not None and isinstance(node.operator, Transpose):
            order = node.operator.permutation
            labels = tuple(labels[order.index(axis)] for axis in range(len(labels)))
            (name,) = node.inputs
            node = self.graph.producer(name)
        return name, labels


def _is_product(node: Node) -> bool:
    operator = node.operator
    return (
        isinstance(operator, Contract)
        and operator.dtype is DType.FLOAT32
        and len(node.inputs) == 2
        and node.inputs[0] != node.inputs[1]
    )


def _labels(axes: tuple[Axis, ...], names: Mapping[int, int]) -> tuple[int, ...] | None:
    """The label of each axis, called as ``names`` says; None where one has not one of step 1."""
    found = []
    for axis in axes:
        if len(axis) != 1 or axis[0][1] != 1:
            return None
        found.append(names.get(axis[0][0], axis[0][0]))
    return tuple(found)
