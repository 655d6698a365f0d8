"""Quantising a float value of the model: the integer operator it comes to.

Source of the scales: ONNX Runtime's QLinear operators, each float32 operation in the order written.
"""

from dataclasses import replace

import numpy as np

from dovetail.isa.requantize import WIDE_LIMIT

from ...ir import GraphBuilder
from ...operators.integer.conversions import Quantize
from ...operators.integer.residual import MOST_FACTOR, RequantizeAdd
from ...operators.integer.rules import Pair
from ...operators.integer.values import Add, Lookup, Multiply, Requantize, Softmax
from ...operators.integer.windows import AveragePool2d, Pad
from ...operators.movement import Reshape
from .average_within import average_within
from .channel_constants import in_levels, with_whole_bias
from .functions import code_points, table_of
from .layouts import grouped, images, is_as_made, join_tensors, permuted, to_model_order
from .masks import quantize_masked
from .movement import moved
from .resampling import quantize_resampled
from .state import State, UnrecognisedError
from .values import (
    F32,
    Accumulated,
    Added,
    Array,
    Averaged,
    ByChannel,
    Floating,
    Function,
    Integer,
    Joined,
    Masked,
    Moved,
    Multiplied,
    Products,
    Real,
    Resampled,
    Softmaxed,
    Sum,
    Totals,
    Value,
    identity_order,
    int8_limits,
)
from .windows import undivided

__all__ = ["quantize", "requantized", "sum_of"]

MOST_STEPS = 1 << 31

MATRICES = identity_order(5)
"""How scores of windows and heads are stored, [1, windows, heads, T, T]."""

ROWS_RANK = 3
"""Dimensions of rows of channels, [N, T, C]."""


def quantize(
    state: State, value: Value, scale: np.float32, zero_point: int, stem: str, origin: str
) -> Integer:
    """QuantizeLinear of ``value``: add the operators, the last with a name from ``stem``.

    zero_point: of int8.  Raises UnrecognisedError for a value that has no integer operator.
    """
    graph = state.builder
    match value:
        case Floating(name=name, permutation=permutation):
            operator = Quantize(float(scale), zero_point)
            return Integer(graph.node(operator, (name,), stem, origin), permutation)
        case Accumulated():
            return _requantize(state, value, scale, zero_point, stem, origin)
        case Added():
            return _requantize_added(state, value, scale, zero_point, stem, origin)
        case Products():
            return _requantize_products(state, value, scale, zero_point, stem, origin)
        case Sum():
            return _add(graph, value, scale, zero_point, stem, origin)
        case Multiplied():
            return _multiply(graph, value, scale, zero_point, stem, origin)
        case Totals():
            means = undivided(state, value, origin)
            return quantize(state, means, scale, zero_point, stem, origin)
        case Averaged():
            return _average(graph, value, scale, zero_point, stem, origin)
        case Resampled():
            return quantize_resampled(state, value, scale, zero_point, stem, origin)
        case Joined(parts=parts, axis=axis):
            tensors = [
                quantize(state, part, scale, zero_point, f"{stem}/part", origin) for part in parts
            ]
            return join_tensors(graph, tensors, axis, stem, origin)
        case Masked():
            return quantize_masked(state, value, scale, zero_point, stem, origin)
        case Softmaxed(real=real):
            softmax = Softmax(float(real.scale), real.zero_point, float(scale), zero_point)
            x = to_model_order(graph, real.tensor, origin)
            name = graph.node(softmax, (x,), stem, origin)
            return Integer(name, identity_order(len(real.tensor.permutation)))
        case Real(tensor=tensor):
            if value.scale == scale and value.zero_point == zero_point:
                return tensor
            same = Function(tensor, code_points(value))
            return _lookup(state, same, scale, zero_point, stem, origin)
        case Function():
            return _lookup(state, value, scale, zero_point, stem, origin)
        case Moved():
            return _moved(state, value, scale, zero_point, stem, origin)
        case ByChannel(scales=scales):
            raise UnrecognisedError(f"an activation with {scales.size} scales; required one")
        case _:
            raise UnrecognisedError(
                f"cannot quantise a {type(value).__name__}; required the result of a supported "
                "operator on quantised tensors"
            )


def _moved(
    state: State, value: Moved, scale: np.float32, zero_point: int, stem: str, origin: str
) -> Integer:
    tensor = quantize(state, value.value, scale, zero_point, stem, origin)
    found: Value = Real(tensor, scale, zero_point)
    for node in value.moves:
        found = moved(state, node, found)
    assert isinstance(found, Real)
    return found.tensor


def _requantize(
    state: State, value: Accumulated, scale: np.float32, zero_point: int, stem: str, origin: str
) -> Integer:
    low, high = int8_limits(value.low, value.high, scale, zero_point)
    value, steps = in_levels(state, value, scale, (low - zero_point, high - zero_point))
    total, graph = sum_of(state, value), state.builder
    operator = Requantize(zero_point, low, high)
    name = requantized(graph, total, operator, steps, scale, stem, origin)
    return _as_rows(graph, name, value, stem, origin)


def _requantize_added(
    state: State, value: Added, scale: np.float32, zero_point: int, stem: str, origin: str
) -> Integer:
    """Both terms in steps of which the added tensor's are whole numbers, and so few that no result
    within its limits needs more than 20 bits of one.
    """
    sums, other, graph = with_whole_bias(state, value.value), value.other, state.builder
    total = sum_of(state, sums)
    kind = graph.types[total]
    r = permuted(graph, other.tensor, sums.permutation, origin)
    if graph.types[r].shape != kind.shape:
        r = graph.node(Reshape(kind.shape), (r,), f"{stem}/added", origin)
    ratio = float(other.scale) / float(scale)
    low, high = int8_limits(value.low, value.high, scale, zero_point)
    least = low - zero_point - (127 - other.zero_point) * ratio
    most = high - zero_point + (128 + other.zero_point) * ratio
    reach = max(-least, most) + 1
    factor = min(int(ratio * WIDE_LIMIT / reach), MOST_FACTOR)
    if factor < 1:
        raise UnrecognisedError(
            f"adds a tensor whose scale of {other.scale} is {ratio:.3g} steps of the result; "
            f"required at least {reach / WIDE_LIMIT:.3g}"
        )
    step = F32(ratio / factor)
    operator = RequantizeAdd(factor, float(step), other.zero_point, zero_point, low, high)
    steps = (sums.x_scale * sums.w_scales).astype(np.float64) / (float(scale) * float(step))
    scales = np.broadcast_to(steps.astype(F32), kind.shape[-1:]).copy()
    if not np.isfinite(scales).all():
        raise UnrecognisedError(f"a result's scale of {scale}: a step of the sum is too many of it")
    inputs = total, graph.constant(f"{stem}/scale", scales), r
    return _as_rows(graph, graph.node(operator, inputs, stem, origin), sums, stem, origin)


def _as_rows(graph: GraphBuilder, name: str, value: Accumulated, stem: str, origin: str) -> Integer:
    """Requantised sums, rows without the height that they have as images."""
    count, *size = graph.types[name].shape
    more = 1 + len(size) - len(value.permutation)
    if more:
        name = graph.node(Reshape((count, *size[more:])), (name,), stem, origin)
    return Integer(name, value.permutation)


def _requantize_products(
    state: State, value: Products, scale: np.float32, zero_point: int, stem: str, origin: str
) -> Integer:
    graph = state.builder
    key = (value.operator, value.x, value.y)
    if key not in state.sums:
        inputs = (value.x, value.y)
        state.sums[key] = graph.node(value.operator, inputs, f"{value.stem}/sum", value.origin)
    operator = Requantize(zero_point, -128, 127)
    steps = np.asarray(value.scale)
    name = requantized(graph, state.sums[key], operator, steps, scale, stem, origin)
    return Integer(name, identity_order(graph.types[name].rank))


def requantized(
    graph: GraphBuilder,
    total: str,
    operator: Requantize,
    steps: Array,
    scale: np.float32,
    stem: str,
    origin: str,
) -> str:
    """The sums ``total``, one step of which is ``steps``, one or one a channel, in steps of
    ``scale``.
    """
    with np.errstate(over="ignore"):
        ratio = (steps / scale).astype(F32)
    if not np.isfinite(ratio).all():
        raise UnrecognisedError(f"a result's scale of {scale}: a step of the sum is too many of it")
    channels = graph.types[total].shape[-1]
    scales = graph.constant(f"{stem}/scale", np.broadcast_to(ratio, (channels,)).copy())
    return graph.node(operator, (total, scales), stem, origin)


def sum_of(state: State, value: Accumulated) -> str:
    """The int32 sum of products and a bias of whole steps; one for all that quantise it."""
    key = (value.operator, value.x, value.weights, value.bias.tobytes())
    if key not in state.sums:
        graph = state.builder
        bias = graph.constant(f"{value.stem}/bias", value.bias.astype(np.int32))
        inputs = (value.x, value.weights, bias)
        name = graph.node(value.operator, inputs, f"{value.stem}/sum", value.origin)
        state.sums[key] = name
    return state.sums[key]


def _add(
    graph: GraphBuilder, value: Sum, scale: np.float32, zero_point: int, stem: str, origin: str
) -> Integer:
    a, b = value.a, value.b
    _require_reach(255 * (float(a.scale) + float(b.scale)), scale)
    low, high = int8_limits(value.low, value.high, scale, zero_point)
    operator = Add(
        a_ratio=float(a.scale / scale),
        b_ratio=float(b.scale / scale),
        a_zero_point=a.zero_point,
        b_zero_point=b.zero_point,
        zero_point=zero_point,
        low=low,
        high=high,
        unsigned=a.tensor.unsigned and b.tensor.unsigned,
    )
    matrices = all(each.tensor.permutation == MATRICES for each in (a, b))
    if not matrices and (pair := images(graph, (a.tensor, b.tensor), origin)):
        return grouped(graph, graph.node(operator, pair, stem, origin), a.tensor, origin)
    order = _common_order(graph, a.tensor, b.tensor)
    operands = tuple(permuted(graph, each.tensor, order, origin) for each in (a, b))
    return Integer(graph.node(operator, operands, stem, origin), order)


def _common_order(graph: GraphBuilder, *tensors: Integer) -> tuple[int, ...]:
    """How two tensors are stored where they are added: as one is stored that a layer made; if both
    are, or none, as the one that is not in the model's order.  Rows that layers made, some along
    channels and some not, as in mixers: as the first one, which is the sum so far.
    """
    if len({each.permutation for each in tensors}) == 1:
        return tensors[0].permutation
    made = [tensor for tensor in tensors if is_as_made(graph, tensor.name)]
    if len(made) > 1 and len(made[0].permutation) == ROWS_RANK:
        return made[0].permutation
    orders = [each.permutation for each in (made if len(made) == 1 else tensors)]
    return next((order for order in orders if order != identity_order(len(order))), orders[0])


def _multiply(
    graph: GraphBuilder,
    value: Multiplied,
    scale: np.float32,
    zero_point: int,
    stem: str,
    origin: str,
) -> Integer:
    a, b = value.a, value.b
    _require_reach(255 * 255 * float(a.scale) * float(b.scale), scale)
    low, high = int8_limits(value.low, value.high, scale, zero_point)
    operator = Multiply(
        ratio=float(F32(a.scale * b.scale) / scale),
        a_zero_point=a.zero_point,
        b_zero_point=b.zero_point,
        zero_point=zero_point,
        low=low,
        high=high,
        unsigned=a.tensor.unsigned and b.tensor.unsigned,
    )
    if pair := images(graph, (a.tensor, b.tensor), origin):
        return grouped(graph, graph.node(operator, pair, stem, origin), a.tensor, origin)
    right = permuted(graph, b.tensor, a.tensor.permutation, origin)
    name = graph.node(operator, (a.tensor.name, right), stem, origin)
    return replace(a.tensor, name=name, unsigned=operator.unsigned)


def _require_reach(reach: float, scale: np.float32) -> None:
    """Raise UnrecognisedError where results, before they are clipped, would leave int32.

    ONNX Runtime converts them to int32 first: there they turn into the least number, and its result
    is not that of the formula.
    """
    if reach / float(scale) >= MOST_STEPS:
        raise UnrecognisedError(
            f"its operands reach {reach:.3g}, {reach / float(scale):.3g} steps of the result's "
            f"scale {scale:.3g}; required below 2**31"
        )


def _average(
    graph: GraphBuilder, value: Averaged, scale: np.float32, zero_point: int, stem: str, origin: str
) -> Integer:
    """Where the scales agree, zero points only move the sum: ties round as those of the mean.

    A mean half way between two int8 values may still differ by one from ONNX Runtime's, whose
    float32 sum depends on the order of its terms.
    """
    real = value.real
    x = permuted(graph, real.tensor, value.permutation, origin)
    if any(value.pads) and value.counts:
        x = graph.node(Pad(value.pads, real.zero_point), (x,), f"{stem}/pad", origin)

    def pool(kernel: Pair) -> AveragePool2d:
        area = F32(kernel[0] * kernel[1])
        if value.rounds_mean and real.scale == scale:
            shift, added, factor = real.zero_point - zero_point, 0, F32(1) / area
        else:
            shift, added, factor = real.zero_point, zero_point, real.scale / (scale * area)
        return AveragePool2d(kernel, value.strides, shift, added, float(factor))

    if not value.counts:
        return Integer(average_within(graph, value, pool, x, stem, origin), value.permutation)
    name = graph.node(pool(value.kernel), (x,), stem if value.keeps else f"{stem}/mean", origin)
    if value.keeps:
        return Integer(name, value.permutation)
    shape = graph.types[name].shape
    name = graph.node(Reshape((shape[0], shape[3])), (name,), stem, origin)
    return Integer(name, identity_order(2))


def _lookup(
    state: State, function: Function, scale: np.float32, zero_point: int, stem: str, origin: str
) -> Integer:
    graph, tensor, axis = state.builder, function.tensor, function.axis
    table = table_of(function, scale, zero_point)
    if axis is not None and tensor.permutation[-1] != axis:
        order = (*(each for each in range(len(tensor.permutation)) if each != axis), axis)
        name = permuted(graph, tensor, order, origin)
        tensor = replace(tensor, name=name, permutation=order)
    constant = graph.constant(f"{stem}/table", table)
    name = graph.node(Lookup(), (tensor.name, constant), stem, origin)
    state.tables[name] = tensor.name, table, axis
    return replace(tensor, name=name)
