"""Normalisations of rows between bytes: where a model's formula is LayerNormalization, RMSNorm or a
division by the length of a row.

    QuantizeLinear((x - mean(x)) / sqrt(mean((x - mean(x)) ** 2) + epsilon) * scale + bias)
    QuantizeLinear(x / sqrt(mean(x ** 2) + epsilon) * scale)
    QuantizeLinear(x / max(sqrt(sum(x ** 2)), least))

of a dequantised x and constants, over the last dimension, however it divides and squares; lengths,
which need no constants, over any.  A least length is at most that of a row of one step, so it never
counts.  Which
normalisations these are is decided here alone: all targets compute what this pass leaves.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from dovetail.isa.frozen import frozen

from ....dtypes import DType
from ...ir import Graph, Node
from ...operators.elementwise import Binary, BinaryFunction, Unary, UnaryFunction, Where
from ...operators.integer.norm import MOST_EPSILON, RowNorm, deviation_steps, wide_steps
from ...operators.movement import Expand
from ...operators.quantization import DequantizeLinear, QuantizeLinear
from ...operators.reductions import Reduce, ReduceFunction
from .image_norms import image_epsilon, image_of_rows, is_uniform, normalised_image
from .layouts import permuted
from .state import State, UnrecognisedError
from .values import F32, Array, Integer, Real, identity_order

__all__ = ["Formulas", "Norm", "find_norms", "only_for", "quantize_norm"]

B, U = BinaryFunction, UnaryFunction
MOST_BIAS = 1 << 30


@frozen(eq=False)
class Norm:
    """x: the dequantised tensor.  scale, bias: float32[C].  centred: its mean is taken away.

    origin: of the node that makes the result.  least: of the length of a row that is divided by it.
    axis: the dimension of x that rows are along.
    """

    x: str
    scale: Array
    bias: Array
    epsilon: float
    centred: bool
    origin: str
    least: float = 0.0
    axis: int = -1


@dataclass(slots=True)
class Formulas:
    """Reads the formulas of a graph backwards; ``used`` are the nodes that were passed."""

    graph: Graph
    used: set[str]

    def made(self, name: str, function: object) -> Sequence[str] | None:
        """The operands of the element-wise node that makes ``name``."""
        node = self.graph.producer(name)
        if node is None or not isinstance(node.operator, Binary | Unary):
            return None
        if node.operator.function is not function:
            return None
        self.used.add(node.output)
        return node.inputs

    def constant(self, name: str) -> Array | None:
        """The value of the constant ``name``, dequantised if need be; None of what is computed."""
        constants, node = self.graph.constants, self.graph.producer(name)
        if node is None or not isinstance(node.operator, DequantizeLinear):
            return constants.get(name)
        if any(each not in constants for each in node.inputs):
            return None
        return node.operator.evaluate([constants[each] for each in node.inputs])[0]

    def number(self, name: str) -> float | None:
        """A constant of one element."""
        array = self.constant(name)
        return float(array.reshape(-1)[0]) if array is not None and array.size == 1 else None

    def with_constant(self, name: str, function: object) -> tuple[str, Array] | None:
        """The other operand, and the constant one."""
        operands = self.made(name, function)
        if operands is None:
            return None
        for own, other in (operands, operands[::-1]):
            array = self.constant(other)
            if array is not None:
                return own, array
        return None

    def mean(self, name: str) -> str | None:
        """The tensor of which ``name`` is the mean, over the last dimension."""
        divided = self.made(name, B.DIV)
        found = self.total(divided[0]) if divided is not None else None
        if divided is None or found is None:
            return None
        whole, axis = found
        if axis != self.graph.types[whole].rank - 1:
            return None
        return whole if self.number(divided[1]) == self.graph.types[whole].shape[-1] else None

    def total(self, name: str) -> tuple[str, int] | None:
        """The tensor of which ``name`` is the sum, and over which dimension."""
        node = self.graph.producer(name)
        if node is None or not isinstance(node.operator, Reduce):
            return None
        axes = node.operator.axes
        if len(axes) != 1 or node.operator != Reduce(ReduceFunction.SUM, axes, True):
            return None
        self.used.add(node.output)
        return node.inputs[0], axes[0]

    def square(self, name: str) -> str | None:
        """The tensor of which ``name`` is the square."""
        product, power = self.made(name, B.MUL), self.made(name, B.POW)
        if product is not None and product[0] == product[1]:
            return product[0]
        if power is not None and self.number(power[1]) == 2:
            return power[0]
        return None

    def over_deviation(self, name: str) -> tuple[str, float] | None:
        """``v`` and epsilon of ``v / sqrt(mean(v ** 2) + epsilon)``."""
        quotient, product = self.made(name, B.DIV), self.made(name, B.MUL)
        if quotient is not None:
            return self.deviation(quotient[0], quotient[1])
        for v, inverse in (product, product[::-1]) if product is not None else ():
            parts = self.made(inverse, B.DIV)
            if parts is not None and self.number(parts[0]) == 1:
                return self.deviation(v, parts[1])
        return None

    def deviation(self, v: str, name: str) -> tuple[str, float] | None:
        """``v`` and epsilon, where ``name`` is ``sqrt(mean(v ** 2) + epsilon)``."""
        root = self.made(name, U.SQRT)
        total = self.with_constant(root[0], B.ADD) if root is not None else None
        if total is None or total[1].size != 1:
            return None
        squares = self.mean(total[0])
        if squares is None or self.square(squares) != v:
            return None
        return v, float(total[1].reshape(-1)[0])

    def length(self, name: str) -> tuple[str, float, int] | None:
        """``v``, a least length and the dimension of ``v / max(sqrt(sum(v ** 2)), least)``.

        Or of ``v / where(sqrt(sum(v ** 2)) == 0, 1, sqrt(sum(v ** 2)))``, as LpNormalization.
        """
        divided = self.made(name, B.DIV)
        if divided is None:
            return None
        root, least = divided[1], 0.0
        node = self.graph.producer(root)
        if node is not None and isinstance(node.operator, Expand):
            self.used.add(node.output)
            root = node.inputs[0]
        if node is not None and isinstance(node.operator, Where):
            condition, one, root = node.inputs
            equal = self.made(condition, B.EQ)
            if equal is None or equal[0] != root or self.number(equal[1]) != 0:
                return None
            if self.number(one) != 1:
                return None
            self.used.add(node.output)
        limited = self.with_constant(root, B.MAX)
        if limited is not None and limited[1].size == 1:
            root, least = limited[0], float(limited[1].reshape(-1)[0])
        parts = self.made(root, U.SQRT)
        squares = self.total(parts[0]) if parts is not None else None
        if squares is None or self.square(squares[0]) != divided[0]:
            return None
        return divided[0], least, squares[1]

    def norm(self, name: str) -> Norm | None:
        """The normalisation that ``name`` is."""
        found = self.length(name)
        if found is not None:
            x, least, axis = found
            size = self.graph.types[name].shape[axis]
            scale, bias = np.full(size, 1 / np.sqrt(size), F32), np.zeros(size, F32)
            maker = self.graph.producer(name)
            origin = maker.origin if maker is not None else name
            return Norm(x, scale, bias, 0.0, False, origin, least, axis)
        return self.scaled_norm(name)

    def scaled_norm(self, name: str) -> Norm | None:
        """As ``norm``, where rows are divided by their deviation."""
        shape, maker = self.graph.types[name].shape, self.graph.producer(name)
        channels = shape[-1:]
        origin = maker.origin if maker is not None else name
        moved = self.with_constant(name, B.ADD)
        name, bias = moved or (name, np.zeros(channels, F32))
        scaled = self.with_constant(name, B.MUL)
        name, scale = scaled or (name, np.ones(channels, F32))
        found = self.over_deviation(name)
        scale, bias = (each.reshape(-1)[:1] if _is_one(each) else each for each in (scale, bias))
        if found is None or any(not _of_channels(each, channels) for each in (scale, bias)):
            return None
        v, epsilon = found
        if self.graph.types[v].shape != shape:
            return None
        scale, bias = (np.broadcast_to(each.reshape(-1), channels) for each in (scale, bias))
        less = self.made(v, B.SUB)
        if less is not None and self.mean(less[1]) == less[0]:
            return Norm(less[0], scale, bias, epsilon, True, origin)
        return Norm(v, scale, bias, epsilon, False, origin)


def _is_one(array: Array) -> bool:
    """True if all elements are the same, so that it does not matter which are along rows."""
    return array.size > 1 and bool((array == array.reshape(-1)[0]).all())


def _of_channels(array: Array, channels: tuple[int, ...]) -> bool:
    return (
        array.dtype == np.float32
        and array.size in (1, *channels)
        and (array.size == 1 or array.shape[-1:] == channels)
    )


def find_norms(graph: Graph) -> tuple[dict[str, Norm], frozenset[str]]:
    """Each normalisation by the tensor that it makes, and the results of the nodes that only they
    need.
    """
    found: dict[str, Norm] = {}
    passed: set[str] = set()
    for node in graph.nodes:
        if not isinstance(node.operator, QuantizeLinear):
            continue
        formulas = Formulas(graph, set())
        kind = graph.types[node.inputs[0]]
        norm = formulas.norm(node.inputs[0]) if kind.rank and kind.dtype == DType.FLOAT32 else None
        maker = graph.producer(norm.x) if norm is not None else None
        if norm is None or maker is None or not isinstance(maker.operator, DequantizeLinear):
            continue
        if _fits(graph, maker, norm, len(norm.scale)):
            found[node.inputs[0]] = norm
            passed |= formulas.used
    return found, only_for(graph, found, passed)


def only_for(graph: Graph, found: Collection[str], passed: Collection[str]) -> frozenset[str]:
    """Results among ``passed`` that only the nodes that quantise ``found`` need."""
    kept = set(graph.outputs)
    for node in reversed(graph.nodes):
        own = node.output
        quantises = isinstance(node.operator, QuantizeLinear) and node.inputs[0] in found
        needed = node.inputs[1:] if quantises else node.inputs
        if own not in passed or own in kept:
            kept.update(needed)
    return frozenset(set(passed) - kept)


def _epsilon(norm: Norm, x_scale: float, channels: int, about: int | None) -> int:
    """The epsilon in units of the sum of squares."""
    return round(norm.epsilon / x_scale**2 * deviation_steps(channels, about) ** 2 * channels)


def _about(graph: Graph, maker: Node, norm: Norm) -> int | None:
    """The zero point of the int8 that are normalised, if no mean is taken away."""
    if norm.centred:
        return None
    zero_point = graph.constants[maker.inputs[2]] if len(maker.inputs) > 2 else np.zeros(1)
    unsigned = graph.types[maker.inputs[0]].dtype == DType.UINT8
    return int(np.clip(int(zero_point.reshape(-1)[0]) - 128 * unsigned, -128, 127))


def _fits(graph: Graph, maker: Node, norm: Norm, channels: int) -> bool:
    """True if rows are short enough, and epsilon and bias are numbers of the operator's."""
    if any(each not in graph.constants for each in maker.inputs[1:]):
        return False
    about = _about(graph, maker, norm)
    scale = graph.constants[maker.inputs[1]]
    if scale.size != 1 or not (float(scale.reshape(-1)[0]) > 0):
        return False
    if not all(np.isfinite(each).all() for each in (norm.scale, norm.bias)) or norm.epsilon < 0:
        return False
    step = float(scale.reshape(-1)[0])
    if norm.least > step:
        return False
    if _image_epsilon(norm, step) is not None:
        return True
    if not deviation_steps(channels, about):
        return False
    return _epsilon(norm, step, channels, about) <= MOST_EPSILON


def _image_epsilon(norm: Norm, step: float) -> int | None:
    """The epsilon where all elements may be normalised as an image; None if they may not."""
    if not norm.centred or not is_uniform(norm.scale, norm.bias):
        return None
    return image_epsilon(norm.epsilon, step, len(norm.scale))


def quantize_norm(
    state: State, norm: Norm, scale: np.float32, zero_point: int, stem: str
) -> Integer:
    """The operator of a normalisation."""
    real = state.values[norm.x]
    if not isinstance(real, Real):
        raise UnrecognisedError("its input is not bytes")
    graph, channels = state.builder, len(norm.scale)
    rank = len(real.tensor.permutation)
    order = identity_order(rank)
    if norm.axis not in (-1, rank - 1):
        order = (*(each for each in order if each != norm.axis), norm.axis)
    x = permuted(graph, real.tensor, order, norm.origin)
    image, small = image_of_rows(graph, x), _image_epsilon(norm, float(real.scale))
    if image is not None and small is not None:
        given = small, zero_point, float(scale) / float(norm.scale[0])
        return Integer(normalised_image(graph, image, given, stem, norm.origin), order)
    about = None if norm.centred else real.zero_point
    if not deviation_steps(channels, about):
        raise UnrecognisedError(f"rows of {channels} elements, which are too long")
    step = scale.astype(np.float64) * wide_steps(channels)
    factors = norm.scale.astype(np.float64) / step
    moves = norm.bias.astype(np.float64) / float(scale)
    # A channel that is hardly scaled is its bias: what is added has 31 bits.
    least = np.maximum(np.abs(moves) / MOST_BIAS, float(np.finfo(F32).tiny))
    factors = np.where(np.abs(factors) < least, least, factors)
    inputs = (
        x,
        graph.constant(f"{stem}/bias", np.rint(moves / factors).astype(np.int32)),
        graph.constant(f"{stem}/scale", factors.astype(F32)),
    )
    epsilon = _epsilon(norm, float(real.scale), channels, about)
    operator = RowNorm(epsilon, zero_point, about)
    name = graph.node(operator, inputs, stem, norm.origin)
    return Integer(name, order)
