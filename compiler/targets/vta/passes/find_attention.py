"""Attention of a token, or of several, over a cache, as it stands in a graph of integer layers.

K = Concatenate(past keys, key), V = Concatenate(past values, value) along positions
RowProducts(q, K), Requantize, then Lookup and Add(mask or bias) in any order, RowSoftmax,
RowProducts(..., V transposed), Requantize, Dense(Reshape(...))

K and V may be picked for each head of queries: several of them then are rows of one head of keys.
"""

from collections.abc import Iterator
from itertools import permutations
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.frozen import frozen

from ....graph.ir import Graph, Node
from ....graph.operators.integer.products import Dense, RowProducts
from ....graph.operators.integer.softmax import RowSoftmax
from ....graph.operators.integer.values import Add, Lookup, Requantize
from ....graph.operators.movement import Concatenate, Reshape, Transpose
from .lane_elements import is_move

__all__ = ["Attention", "Cache", "Step", "find_attention"]


@frozen
class Cache:
    """Tensors of runs before, and of this one, with a position for each token.

    order: of their dimensions, as [..., heads, positions, size].
    """

    past: str
    new: str
    order: tuple[int, ...]

    def shape(self, graph: Graph, name: str) -> tuple[int, int, int]:
        """Heads, positions and size of one of them."""
        *heads, positions, size = (graph.types[name].shape[axis] for axis in self.order)
        return prod(heads), positions, size


@frozen
class Step:
    """A node between scores and softmax: a table, or a sum with what is given, as a mask.

    given: which operand of the sum that is; None for a table.
    """

    node: Node
    given: int | None = None


@frozen
class Attention:
    """Nodes from the first product to the dense layer behind the last.

    shape: heads of keys, rows of queries for each and a token, elements of a head.  past: positions
    before.  tokens: of this run.  apart: each row's tokens follow each other, as where heads of
    queries share one of keys; else the rows of each token do.
    steps: between scores and softmax, the first of them first.
    """

    shape: tuple[int, int, int]
    past: int
    tokens: int
    apart: bool
    keys: Cache
    values: Cache
    scores: Node
    finish: Node
    steps: tuple[Step, ...]
    softmax: Node
    mix: Node
    result: Node
    dense: Node

    def rows(self, elements: NDArray[Any], size: int) -> NDArray[Any]:
        """Elements of rows of queries, scores or results, of ``size`` each: [heads, tokens, rows,
        size].
        """
        if self.apart:
            return elements.reshape(-1, self.shape[1], self.tokens, size).swapaxes(1, 2)
        return elements.reshape(-1, self.tokens, self.shape[1], size)


def find_attention(graph: Graph) -> Iterator[Attention]:
    """Each that stands so, all tensors between read by the next node alone."""
    for node in graph.nodes:
        if isinstance(node.operator, RowProducts):
            found = _behind(graph, node)
            if found is not None:
                yield found


def _behind(graph: Graph, mix: Node) -> Attention | None:
    """The attention whose last product is ``mix``."""
    softmax = _beneath(graph, mix.inputs[0])
    if softmax is None or not isinstance(softmax.operator, RowSoftmax):
        return None
    result = _reader(graph, mix)
    if result is None or not isinstance(result.operator, Requantize):
        return None
    dense = _reader(graph, result)
    while dense is not None and isinstance(dense.operator, Reshape | Transpose):
        dense = _reader(graph, dense)
    if dense is None or not isinstance(dense.operator, Dense):
        return None
    steps = list[Step]()
    node = _beneath(graph, softmax.inputs[0])
    while node is not None and isinstance(node.operator, Add | Lookup):
        inside = [_is_score(graph, name) for name in node.inputs]
        if sum(inside) != 1:
            return None
        given = 1 - inside.index(True)
        steps.insert(0, Step(node, given if isinstance(node.operator, Add) else None))
        node = _beneath(graph, node.inputs[1 - given])
    if node is None or not isinstance(node.operator, Requantize):
        return None
    scores = _beneath(graph, node.inputs[0])
    if scores is None or not isinstance(scores.operator, RowProducts):
        return None
    keys = _cache(graph, scores.inputs[1], turned=False)
    values = _cache(graph, mix.inputs[1], turned=True)
    if keys is None or values is None:
        return None
    *outer, parts, rows, size = (1, *graph.types[scores.inputs[0]].shape)
    (heads, past, _), made = keys.shape(graph, keys.past), graph.types[dense.output]
    tokens = keys.shape(graph, keys.new)[1]
    apart = parts != heads
    if apart and rows != tokens:
        return None
    rows = rows * parts // heads
    if (
        set(outer) != {1}
        or values.shape(graph, values.past) != (heads, past, size)
        or values.shape(graph, values.new) != (heads, tokens, size)
        or rows % tokens
        or made.elements != tokens * made.shape[-1]
    ):
        return None
    return Attention(
        (heads, rows // tokens, size), past, tokens, apart, keys, values, scores, node,
        tuple(steps), softmax, mix, result, dense,
    )  # fmt: skip


def _reader(graph: Graph, node: Node) -> Node | None:
    """The one node that reads a node's result; None where there are several, or it is an output."""
    readers = graph.consumers(node.output)
    return readers[0] if len(readers) == 1 and node.output not in graph.outputs else None


def _beneath(graph: Graph, name: str) -> Node | None:
    """The node that makes a tensor which one other node reads, where nothing but Reshape is between
    them, and rows stay rows; None for any other tensor.
    """
    node = graph.producer(name)
    while node is not None and _reader(graph, node) is not None:
        if not isinstance(node.operator, Reshape):
            return node
        if graph.types[node.inputs[0]].shape[-1] != graph.types[name].shape[-1]:
            break
        node = graph.producer(node.inputs[0])
    return None


def _is_score(graph: Graph, name: str) -> bool:
    """True if a tensor is scores, perhaps after some steps."""
    node = graph.producer(name)
    while node is not None and isinstance(node.operator, Lookup | Reshape):
        node = graph.producer(node.inputs[0])
    if node is not None and isinstance(node.operator, Add):
        return any(_is_score(graph, each) for each in node.inputs)
    return node is not None and isinstance(node.operator, Requantize)


def _cache(graph: Graph, name: str, *, turned: bool) -> Cache | None:
    """The cache that a tensor of rows joins with new positions, whatever moves it behind that;
    several heads of queries may share each of its heads.  turned: it is columns.
    """
    moves, node = list[Node](), graph.producer(name)
    while node is not None and is_move(graph, node) and not isinstance(node.operator, Concatenate):
        moves.insert(0, node)
        node = graph.producer(node.inputs[0])
    if node is None or not isinstance(node.operator, Concatenate) or len(node.inputs) != PARTS:
        return None
    shape, axis = graph.types[node.output].shape, node.operator.axis
    whole = places = np.arange(prod(shape)).reshape(shape)
    for each in moves:
        known = (graph.constants[name] for name in each.inputs[1:])
        (places,) = each.operator.evaluate([places, *known])
    places = places.swapaxes(-1, -2) if turned else places
    places = places.reshape(-1, *places.shape[-2:])
    for order in permutations(range(len(shape))):
        if order[-2] != axis or [shape[n] for n in order[-2:]] != [*places.shape[1:]]:
            continue
        own = whole.transpose(order).reshape(-1, *places.shape[1:])
        if np.array_equal(np.repeat(own, len(places) // len(own), 0), places):
            past, new = node.inputs
            return Cache(past, new, order)
    return None


PARTS = 2
"""Tensors that are joined: a cache, and what a run adds."""
