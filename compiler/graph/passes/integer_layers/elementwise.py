"""Operators on each element: sums of tensors, biases, clips, and functions of one tensor."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from ...ir import Node
from ...operators.elementwise import Binary, BinaryFunction, Where
from ...operators.integer.products import ConvTranspose2d
from .channel_constants import with_bias, with_factor
from .channel_scales import limited
from .constant_tensors import as_tensor
from .functions import is_common, recognise_function
from .layouts import inverted, model_shape
from .repetition import repeated
from .resampling import weighted
from .state import State, UnrecognisedError
from .values import (
    NCHW_TO_NHWC,
    Accumulated,
    Added,
    Averaged,
    ByChannel,
    Foreign,
    Integer,
    Masked,
    Multiplied,
    Real,
    RealConstant,
    Sum,
    Totals,
    Value,
    WindowSums,
    identity_order,
)
from .windows import divided, scaled_mean

__all__ = ["recognise_elementwise"]


MATRICES = identity_order(4)
"""How matrices of a batch are stored."""
Clipped = Accumulated | Added | Sum | Multiplied
"""Values that may be clipped before they are quantised."""
LIMITS = (BinaryFunction.MAX, BinaryFunction.MIN)


def recognise_elementwise(state: State, node: Node) -> Value:
    """Any element-wise operator, as far as one of the forms above is what it computes."""
    values = [state.values.get(name) for name in node.inputs]
    if isinstance(node.operator, Binary):
        found = _pair(state, node, node.operator.function)
        if found is not None:
            return found
    if isinstance(node.operator, Where) and (masked := _masked(state, node)) is not None:
        return masked
    for value in values:
        if isinstance(value, Foreign):
            raise UnrecognisedError(value.reason)
    return recognise_function(state, node)


def _masked(state: State, node: Node) -> Masked | None:
    """A dequantised tensor where a condition that is computed holds, and elsewhere one number."""
    condition, kept, other = node.inputs
    real, number = state.values.get(kept), state.array(other)
    if state.array(condition) is not None or not isinstance(real, Real):
        return None
    if number is None or number.size != 1 or real.tensor.unsigned:
        return None
    if state.source.types[kept].shape != state.source.types[node.output].shape:
        return None
    return Masked(real, condition, float(number.reshape(-1)[0]))


def _pair(state: State, node: Node, function: BinaryFunction) -> Value | None:
    """A sum, a product, a clip or a mean; None for all else."""
    left, right = node.inputs
    a, b = _tensors(state, node)
    if isinstance(a, Integer | ByChannel) and function in LIMITS:
        return limited(state, node, a, state.constant(right, "the limit"))
    resampled = weighted(state, node, function)
    if resampled is not None:
        return resampled
    if isinstance(a, Real) and isinstance(b, Real) and function in JOINING:
        return (
            None
            if is_common(state, a.tensor, b.tensor)
            else JOINING[function](state, a, b, node.origin)
        )
    if function is BinaryFunction.DIV and isinstance(a, WindowSums | Totals):
        return divided(state, a, state.constant(right, "the number of elements"), node.origin)
    if isinstance(a, Averaged) and function is BinaryFunction.MUL:
        return scaled_mean(state, a, state.constant(right, "the factor"), node.origin)
    if isinstance(b, Clipped):
        a, b, left, right = b, a, right, left
    if not isinstance(a, Clipped):
        return None
    if function in LIMITS:
        limit = state.array(right)
        if limit is None or limit.size != 1:
            return None
        number = float(limit.reshape(-1)[0])
        if np.isnan(number):
            raise UnrecognisedError(f"a limit of {number}; required a number")
        return _clipped(a, function, number)
    constant = b if isinstance(b, RealConstant) else state.array(right)
    if function is BinaryFunction.ADD and isinstance(a, Accumulated) and constant is not None:
        return with_bias(state, node, a, constant)
    if function is BinaryFunction.MUL and isinstance(a, Accumulated) and _is_free(a):
        factor = state.array(right)
        if factor is not None:
            return with_factor(state, node, a, factor)
    if function is BinaryFunction.ADD and isinstance(a, Accumulated) and isinstance(b, Real):
        return _residual(state, node, a, b)
    raise UnrecognisedError(
        f"{function.value} of the result of node {a.origin!r} and another; required that it is "
        "quantised first"
        if isinstance(a, Accumulated)
        else f"{function.value} of a sum or product; required that it is quantised first"
    )


def _is_free(value: Clipped) -> bool:
    """True if a value is not clipped yet."""
    return (value.low, value.high) == (-np.inf, np.inf)


def _tensors(state: State, node: Node) -> tuple[Value | None, Value | None]:
    """The operands; a constant with an element for each of the other's pixels is a tensor too, and
    so is one for all channels, or all matrices; or for some of these, as the biases of heads are.
    """
    found = [state.values.get(name) for name in node.inputs]
    for own, other in ((0, 1), (1, 0)):
        constant, tensor = found[own], found[other]
        if not isinstance(constant, RealConstant) or not isinstance(tensor, Real):
            continue
        shape, whole = constant.values.shape, model_shape(state.builder, tensor.tensor)
        masks = len(shape) == 4 and shape == (whole[0], 1, *whole[2:])
        if not _has_pixels(shape):
            continue
        if shape != whole and not masks:
            if not _fits(shape, whole) or constant.scales.size > 1:
                continue
            repeated_values = np.ascontiguousarray(np.broadcast_to(constant.values, whole))
            constant = replace(constant, values=repeated_values)
        found[own] = as_tensor(state, constant, node.inputs[own])
    return found[0], found[1]


def _has_pixels(shape: tuple[int, ...]) -> bool:
    """True if a tensor of this shape is more than a row: two dimensions above 1."""
    return sum(size > 1 for size in shape) > 1


def _fits(shape: tuple[int, ...], whole: tuple[int, ...]) -> bool:
    """True if a tensor of this shape is repeated to ``whole``."""
    last = whole[len(whole) - len(shape) :]
    return len(shape) <= len(whole) and all(
        size in (1, of) for size, of in zip(shape, last, strict=True)
    )


def _clipped(value: Clipped, function: BinaryFunction, limit: float) -> Clipped:
    """The later of two limits holds where they contradict each other."""
    pick = max if function is BinaryFunction.MAX else min
    return replace(value, low=pick(value.low, limit), high=pick(value.high, limit))


def _sum(state: State, a: Real, b: Real, origin: str) -> Sum:
    """The sum of two tensors, each repeated to the shape of the result."""
    shape = np.broadcast_shapes(*(model_shape(state.builder, each.tensor) for each in (a, b)))
    wholes = [each.tensor for each in (a, b) if model_shape(state.builder, each.tensor) == shape]
    order = wholes[0].permutation if wholes and wholes[0].permutation == MATRICES else NCHW_TO_NHWC
    first, second = (repeated(state, each.tensor, shape, origin, order) for each in (a, b))
    return Sum(replace(a, tensor=first), replace(b, tensor=second))


def _residual(state: State, node: Node, a: Accumulated, b: Real) -> Added:
    """Sums of products and a tensor, as quantisers leave them that do not quantise in between."""
    shape = state.source.types[node.output].shape
    clipped = not _is_free(a)
    if isinstance(a.operator, ConvTranspose2d):
        raise UnrecognisedError(
            f"add of the result of node {a.origin!r}, a ConvTranspose, and another; required that "
            "it is quantised first"
        )
    if clipped or any(state.source.types[name].shape != shape for name in node.inputs):
        raise UnrecognisedError(
            f"add of the {'clipped ' if clipped else ''}result of node {a.origin!r} and another, "
            "perhaps repeated; required that it is quantised first"
        )
    return Added(a, b)


def _difference(state: State, a: Real, b: Real, origin: str) -> Sum:
    """The sum with ``-b``: its bytes with all bits turned, about the zero point turned likewise."""
    minus = Real(inverted(state.builder, b.tensor, origin), b.scale, -1 - b.zero_point)
    return _sum(state, a, minus, origin)


def _product(state: State, a: Real, b: Real, origin: str) -> Multiplied:
    """The product of two tensors, one or both of them repeated to the shape of the result."""
    given = (a, b)
    once = tuple(replace(r, tensor=state.expanded.get(r.tensor.name, r.tensor)) for r in given)
    result = np.broadcast_shapes(*(model_shape(state.builder, each.tensor) for each in given))
    # Only one of two that are repeated has to be.
    for pair, n in ((once, 0), (once, 1), (given, 0), (given, 1)):
        a, b = pair[n], once[1 - n]
        if model_shape(state.builder, a.tensor) == result:
            break
    else:
        a, b = sorted(once, key=lambda each: model_shape(state.builder, each.tensor)[1:2])
        known = {each.tensor.name for each in once} & state.builder.constants.keys()
        if not known and _is_gated(*(model_shape(state.builder, each.tensor) for each in (a, b))):
            # The gate has as many channels then.
            a = replace(a, tensor=repeated(state, a.tensor, result, origin))
    whole, part = (model_shape(state.builder, each.tensor) for each in (a, b))
    if len(whole) != len(part) or any(
        size not in (1, of) for size, of in zip(part, whole, strict=True)
    ):
        raise UnrecognisedError(
            f"multiplies shapes {list(whole)} and {list(part)}; required one that is repeated to "
            "the other"
        )
    if len(part) == 4:
        # A word holds a block of channels: one for all would be as many words as any.
        tensor = repeated(state, b.tensor, (*whole[:2], *part[2:]), origin)
        b = replace(b, tensor=tensor)
    return Multiplied(a, b)


def _is_gated(gate: tuple[int, ...], channels: tuple[int, ...]) -> bool:
    """True for a gate of an image's pixels, and a number for each channel."""
    return len(gate) == len(channels) == 4 and gate[1] == 1 and channels[2:] == (1, 1)


JOINING: Mapping[BinaryFunction, Callable[[State, Real, Real, str], Value]] = {
    BinaryFunction.ADD: _sum,
    BinaryFunction.MUL: _product,
    BinaryFunction.SUB: _difference,
}
"""Operators that join two tensors."""
