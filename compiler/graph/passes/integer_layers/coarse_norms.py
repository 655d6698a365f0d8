"""Normalisations of rows that a model quantises inside: LayerNormalization as single operators,
each result but two in bytes.

    v = x - mean(x);  m = QuantizeLinear(mean(v ** 2));  a = QuantizeLinear(m + epsilon)
    QuantizeLinear(v / sqrt(a))

of a dequantised x, over any one dimension, with Transposes anywhere; or with v = x, as RMSNorm.
ONNX Runtime's quantiser leaves LayerNormalization so from what torch exports before opset 17, and
RMSNorm from any.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dovetail.isa.frozen import frozen

from ...ir import Graph, Node
from ...operators.elementwise import BinaryFunction, UnaryFunction
from ...operators.integer.norm import MOST_SHIFT, RowNorm, deviation_steps
from ...operators.movement import Transpose
from ...operators.quantization import DequantizeLinear, QuantizeLinear
from ...operators.reductions import Reduce, ReduceFunction
from .layouts import permuted
from .norms import Formulas, only_for
from .state import QuantizedAs, State, UnrecognisedError
from .values import F32, Array, Integer, Real, identity_order

__all__ = ["CoarseNorm", "find_coarse_norms", "quantize_coarse_norm"]

B, U = BinaryFunction, UnaryFunction
MOST_PARTS = 1 << 11
"""Parts of a step of the result that an element of 20 bits counts in, at most; at least half."""
LEAST = 128
"""Taken from unsigned numbers of 8 bits, to keep them in int8."""


@frozen
class CoarseNorm:
    """x: the dequantised tensor, whose dimension ``axis`` rows are along.  centred: less its mean.

    squares, divisor: the nodes that quantise m and a.  epsilon: float32.
    moved: dimension i of the result is dimension ``moved[i]`` of x.  origin: of the result.
    """

    x: str
    axis: int
    centred: bool
    squares: Node
    divisor: Node
    epsilon: float
    moved: tuple[int, ...]
    origin: str


@dataclass(slots=True)
class _Path:
    """A tensor, and where the dimensions of one behind it are: i is its dimension ``moved[i]``."""

    formulas: Formulas
    name: str
    moved: tuple[int, ...]

    def back(self) -> "_Path":
        """Before all Transposes that make the tensor."""
        while (node := self.formulas.graph.producer(self.name)) is not None:
            if not isinstance(node.operator, Transpose):
                break
            self.formulas.used.add(node.output)
            order = node.operator.permutation
            self.moved = tuple(order[i] for i in self.moved)
            self.name = node.inputs[0]
        return self

    def bytes(self) -> Node | None:
        """The node that quantises what the tensor is dequantised of; then goes before it."""
        graph = self.back().formulas.graph
        dequantized = graph.producer(self.name)
        if dequantized is None or not isinstance(dequantized.operator, DequantizeLinear):
            return None
        self.name = dequantized.inputs[0]
        node = graph.producer(self.back().name)
        if node is None or not isinstance(node.operator, QuantizeLinear):
            return None
        self.formulas.used |= {dequantized.output, node.output}
        self.name = node.inputs[0]
        self.back()
        return node

    def mean(self) -> int | None:
        """The dimension that the tensor is the mean over; then goes before it."""
        divided = self.back().formulas.made(self.name, B.DIV)
        node = self.formulas.graph.producer(divided[0]) if divided is not None else None
        if divided is None or node is None or not isinstance(node.operator, Reduce):
            return None
        shape, axes = self.formulas.graph.types[node.inputs[0]].shape, node.operator.axes
        wanted = Reduce(ReduceFunction.SUM, axes, True)
        if len(axes) != 1 or node.operator != wanted:
            return None
        if self.formulas.number(divided[1]) != shape[axes[0]]:
            return None
        self.formulas.used.add(node.output)
        self.name = node.inputs[0]
        return axes[0]


def find_coarse_norms(graph: Graph) -> tuple[dict[str, CoarseNorm], frozenset[str]]:
    """As ``find_norms``."""
    found: dict[str, CoarseNorm] = {}
    passed: set[str] = set()
    for node in graph.nodes:
        if isinstance(node.operator, QuantizeLinear):
            formulas = Formulas(graph, set())
            norm = _norm(formulas, node.inputs[0])
            if norm is not None:
                found[node.inputs[0]] = norm
                passed |= formulas.used
    return found, only_for(graph, found, passed)


def _norm(formulas: Formulas, name: str) -> CoarseNorm | None:
    graph = formulas.graph
    divided, result = formulas.made(name, B.DIV), graph.producer(name)
    if divided is None or result is None or divided[0] in graph.constants:
        return None
    order = identity_order(graph.types[name].rank)
    above = _Path(formulas, divided[0], order).back()
    less = formulas.made(above.name, B.SUB)
    below = _Path(formulas, divided[1], order).back()
    root = formulas.made(below.name, U.SQRT)
    if root is None or graph.types[above.name].rank != len(order):
        return None
    x = above.name if less is None else less[0]
    if less is not None:
        mean = _Path(formulas, less[1], order)
        axis = mean.mean()
        if axis is None or (mean.name, mean.moved) != (x, order):
            return None
    below.name = root[0]
    divisor = below.bytes()
    total = formulas.with_constant(below.name, B.ADD) if divisor is not None else None
    if divisor is None or total is None or total[1].size != 1:
        return None
    below.name = total[0]
    squares = below.bytes()
    place = below.moved
    over = below.mean() if squares is not None else None
    base = formulas.square(below.name) if over is not None else None
    if squares is None or over is None or base is None:
        return None
    # Rows are along one dimension of x on both ways to the quotient.
    row = below.moved.index(over) if place == below.moved else None
    below.name = base
    below.back()
    if row is None or below.name != above.name or below.moved != above.moved:
        return None
    maker, along = graph.producer(x), below.moved[row]
    if less is not None and along != axis:
        return None
    if maker is None or not isinstance(maker.operator, DequantizeLinear):
        return None
    epsilon = float(total[1].reshape(-1)[0])
    return CoarseNorm(
        x, along, less is not None, squares, divisor, epsilon, above.moved, result.origin
    )


def quantize_coarse_norm(state: State, norm: CoarseNorm, node: Node) -> Integer:
    """The operator of a normalisation that ``node`` quantises.

    Raises UnrecognisedError.
    """
    real, kind = state.values[norm.x], state.quantized_as(node)
    if not isinstance(real, Real):
        raise UnrecognisedError("its input is not bytes")
    graph, stem, rank = state.builder, node.output, len(norm.moved)
    order = real.tensor.permutation
    if order[-1] != norm.axis:
        order = (*(each for each in range(rank) if each != norm.axis), norm.axis)
    x = permuted(graph, real.tensor, order, norm.origin)
    channels = graph.types[x].shape[-1]
    about = None if norm.centred else real.zero_point
    steps = deviation_steps(channels, about)
    if not steps:
        raise UnrecognisedError(f"rows of {channels} elements, which are too long")
    squares, divisor = (state.quantized_as(each) for each in (norm.squares, norm.divisor))
    scales = (each.scale for each in (squares, divisor, kind))
    m_scale, a_scale, y_scale = (float(each) for each in scales)
    step = float(real.scale) / steps
    ratio = step / (np.sqrt(a_scale) * y_scale)
    shift = int(np.floor(np.log2(ratio * MOST_PARTS)))
    if not 0 <= shift <= MOST_SHIFT:
        raise UnrecognisedError(f"a normalisation that scales by {ratio:.3g}")
    share = step**2 / (channels * m_scale)
    inputs = (
        x,
        graph.constant(f"{stem}/bias", np.zeros(channels, np.int32)),
        graph.constant(f"{stem}/scale", np.full(channels, ratio / 2.0**shift, F32)),
        graph.constant(f"{stem}/table", _table(squares, divisor, norm.epsilon)),
    )
    operator = RowNorm(LEAST, kind.zero_point, about, float(F32(share)), shift)
    name = graph.node(operator, inputs, stem, norm.origin)
    places: Mapping[int, int] = {axis: place for place, axis in enumerate(norm.moved)}
    return Integer(name, tuple(places[axis] for axis in order), kind.unsigned)


def _table(squares: QuantizedAs, divisor: QuantizedAs, epsilon: float) -> Array:
    """Divisors, less ``LEAST``, by 255 less the steps of the mean of squares: int8."""
    steps = np.arange(255, -1, -1)
    byte = np.clip(steps + squares.zero_point, -128, 127) - squares.zero_point
    real = byte.astype(F32) * squares.scale + F32(epsilon)
    found = np.clip(np.rint(real / divisor.scale) + divisor.zero_point, -128, 127)
    less = np.maximum(found - divisor.zero_point, 0) - LEAST
    return less.astype(np.int8)
