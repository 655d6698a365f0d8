"""Float sums of a dense layer's results times computed factors: rotary positions left in float.

    QuantizeLinear(a * cos - b * sin)  ->  ScaledSum(a and b, factors of the step of a sum)

``a`` and ``b`` are parts of what a dense layer makes of each row, before it is quantised; cosines
and sines are computed for each run.  Movements between sum and quantisation move the bytes instead.
Which sums these are is decided here alone: all targets compute what this pass leaves.
"""

from collections.abc import Iterator, Mapping
from math import prod

import numpy as np

from dovetail.isa.frozen import frozen

from ....dtypes import DType
from ...ir import Graph, Node
from ...operators.contractions import Contract, Convolution
from ...operators.elementwise import Binary, BinaryFunction
from ...operators.integer.products import Dense
from ...operators.integer.scaled_sum import FRACTION_BITS, ScaledSum
from ...operators.movement import Concatenate, Reshape, Slice, Transpose
from ...operators.quantization import DequantizeLinear, QuantizeLinear
from .channel_constants import with_whole_bias
from .kept import in_model_form
from .quantize import sum_of
from .state import State, UnrecognisedError
from .values import F32, Accumulated, Array, Integer, identity_order

__all__ = ["Rotations", "find_scaled_sums", "quantize_scaled_sums"]

B = BinaryFunction
TERMS = 2
MATRIX = 2
"""Axes of what a dense layer makes of several rows."""
LAYERED = (Contract, Convolution, DequantizeLinear, QuantizeLinear)
"""Operators whose tensors are those of layers."""


@frozen
class Rotations:
    """Sums of scaled terms by the tensors that are quantised, and the nodes that only they need.

    terms: of each sum, by its own name: what is moved of a dense layer, and the factor; the second
    factor counts negative in a difference.
    """

    roots: frozenset[str]
    terms: Mapping[str, tuple[tuple[str, str], ...]]
    inside: frozenset[str]


def find_scaled_sums(graph: Graph) -> Rotations:
    """All of a graph."""
    layered: set[str] = set()
    for node in graph.nodes:
        own = isinstance(node.operator, LAYERED) and not graph.constants.keys() >= set(node.inputs)
        if own or layered.intersection(node.inputs):
            layered.update(node.outputs)
    finder = _Finder(graph, frozenset(layered))
    roots: set[str] = set()
    terms: dict[str, tuple[tuple[str, str], ...]] = {}
    passed: set[str] = set()
    for node in graph.nodes:
        if not isinstance(node.operator, QuantizeLinear):
            continue
        found = dict[str, tuple[tuple[str, str], ...]]()
        seen = set[str]()
        if finder.moved(node.inputs[0], found, seen):
            roots.add(node.inputs[0])
            terms |= found
            passed |= seen
    kept = set(graph.outputs)
    for node in reversed(graph.nodes):
        quantises = isinstance(node.operator, QuantizeLinear) and node.inputs[0] in roots
        if node.output not in passed or kept.intersection(node.outputs):
            kept.update(node.inputs[1:] if quantises else node.inputs)
    return Rotations(frozenset(roots), terms, frozenset(passed - kept))


@frozen
class _Finder:
    """layered: tensors that depend on products, or on bytes."""

    graph: Graph
    layered: frozenset[str]

    def moved(
        self, name: str, found: dict[str, tuple[tuple[str, str], ...]], seen: set[str]
    ) -> bool:
        """True if ``name`` holds sums of two scaled terms, perhaps moved or joined."""
        node = self.graph.producer(name)
        if node is None or self.graph.types[name].dtype != DType.FLOAT32:
            return False
        seen.add(name)
        if isinstance(node.operator, Reshape | Transpose | Concatenate):
            return all(self.moved(each, found, seen) for each in node.inputs)
        terms = self.terms(node, seen)
        if terms is None:
            return False
        found[name] = terms
        return True

    def terms(self, node: Node, seen: set[str]) -> tuple[tuple[str, str], ...] | None:
        """The sums and factors that ``node`` adds or subtracts the products of."""
        operator = node.operator
        if not isinstance(operator, Binary) or operator.function not in (B.ADD, B.SUB):
            return None
        found = []
        for name in node.inputs:
            product = self.graph.producer(name)
            if product is None or product.operator != Binary(B.MUL):
                return None
            pairs = [pair for pair in (product.inputs, product.inputs[::-1]) if self.is_sum(*pair)]
            shapes = {self.graph.types[each].shape for each in (name, node.output)}
            if len(pairs) != 1 or len(shapes | {self.graph.types[pairs[0][0]].shape}) != 1:
                return None
            seen.update((name, *self.path(pairs[0][0])))
            found.append((pairs[0][0], pairs[0][1]))
        return tuple(found)

    def is_sum(self, name: str, factor: str) -> bool:
        """True if ``name`` holds elements of a dense layer's row, and no layer makes ``factor``."""
        dense = self.graph.producer(list(self.path(name))[-1])
        if dense is None or not isinstance(dense.operator, Contract):
            return False
        shape = self.graph.types[dense.output].shape
        made = [self.graph.producer(each) for each in dense.inputs]
        quantised = all(
            each is not None and isinstance(each.operator, DequantizeLinear) for each in made
        )
        computed = factor not in self.graph.constants and factor not in self.layered
        rows = {self.graph.types[each].shape[:1] for each in (factor, *self.path(name))}
        alike = len(shape) == MATRIX and rows == {shape[:1]}
        return quantised and computed and (prod(shape[:-1]) == 1 or alike)

    def path(self, name: str) -> Iterator[str]:
        """``name``, and what it is moved of."""
        yield name
        while (node := self.graph.producer(name)) is not None:
            if not isinstance(node.operator, Reshape | Transpose | Slice):
                return
            (name,) = node.inputs
            yield name


def quantize_scaled_sums(
    state: State, found: Rotations, name: str, scale: np.float32, zero_point: int, stem: str
) -> Integer:
    """The bytes of ``name``, of ``found.roots``.

    Raises UnrecognisedError where a dense layer is not one of integers.
    """
    made = _Quantizing(state, found, scale, zero_point, stem)
    return Integer(made.bytes_of(name), identity_order(state.source.types[name].rank))


@frozen
class _Quantizing:
    state: State
    found: Rotations
    scale: np.float32
    zero_point: int
    stem: str

    def bytes_of(self, name: str) -> str:
        """The bytes of a float tensor of the model, moved as it is."""
        if name in self.found.terms:
            return self.summed(name)
        node = self.state.producers[name]
        parts = tuple(self.bytes_of(each) for each in node.inputs)
        return self.state.builder.node(node.operator, parts, self.stem, node.origin)

    def summed(self, name: str) -> str:
        """One sum of scaled terms."""
        node, builder = self.state.producers[name], self.state.builder
        shape, origin = self.state.source.types[name].shape, node.origin
        sums, factors = [], []
        for number, (term, factor) in enumerate(self.found.terms[name]):
            times = self.state.producers[node.inputs[number]].origin
            total, steps = self.moved(term)
            subtracts = number and node.operator == Binary(B.SUB)
            ratio = steps.astype(np.float64) / float(self.scale) * 2.0**FRACTION_BITS
            ratio = (-ratio if subtracts else ratio).astype(F32)
            if not np.isfinite(ratio).all():
                raise UnrecognisedError(f"a result's scale of {self.scale} is too small for a sum")
            given = in_model_form(self.state, factor)
            constant = builder.constant(f"{name}/steps", ratio)
            scaled = builder.node(Binary(B.MUL), (given, constant), f"{name}/factors", times)
            row = Reshape((shape[0], prod(shape[1:])) if shape else (1, 1))
            sums.append(builder.node(row, (total,), f"{name}/sums", origin))
            factors.append(builder.node(row, (scaled,), f"{name}/factors", times))
        joined = (
            builder.node(Concatenate(1), tuple(each), f"{name}/terms", by)
            for each, by in ((sums, origin), (factors, times))
        )
        operator = ScaledSum(self.zero_point, TERMS)
        result = builder.node(operator, tuple(joined), f"{name}/bytes", origin)
        return builder.node(Reshape(shape), (result,), self.stem, origin)

    def moved(self, name: str) -> tuple[str, Array]:
        """Sums of int32 as the model moves its floats, and the step of each, float32."""
        state, value = self.state, self.state.values.get(name)
        if isinstance(value, Accumulated):
            if not isinstance(value.operator, Dense) or not np.isinf((value.low, value.high)).all():
                raise UnrecognisedError("terms that no dense layer alone makes")
            value = with_whole_bias(state, value)
            total = sum_of(state, value)
            steps = np.asarray(value.x_scale * value.w_scales, F32)
            return total, np.broadcast_to(steps, state.builder.types[total].shape)
        node = state.producers[name]
        if not isinstance(node.operator, Reshape | Transpose | Slice):
            raise UnrecognisedError("terms that no dense layer of integers makes")
        below, steps = self.moved(node.inputs[0])
        (steps,) = node.operator.evaluate([steps])
        place = list(node.outputs).index(name)
        assert place == 0
        return state.builder.node(node.operator, (below,), f"{name}/sums", node.origin), steps
