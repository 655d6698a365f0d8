"""Constants of channels that sums of products are multiplied by or added to: biases, and what is
left of a normalisation.

A product's scales take in a factor.  A bias is whole steps of the sum at the end; weights of few
bits are multiplied by a whole number first, so that its steps are finer.  A network of two bits,
whose results depend on each step of a sum, would feel it otherwise.
"""

from dataclasses import replace

import numpy as np

from ....errors import ModelError
from ...bounds import check_accumulator
from ...ir import Node
from ...operators.integer.products import Conv2d, ConvTranspose2d, Dense
from .state import State, UnrecognisedError
from .steps import NEAR, levels_kept
from .values import F32, Accumulated, Array, RealConstant

__all__ = ["check_sums", "in_levels", "with_bias", "with_factor", "with_whole_bias"]

INT32_MAX = (1 << 31) - 1
UNFELT = 1 << 16
"""How much larger than all products of a channel a bias is that hides them."""
WHOLE = 1e-3
"""Part of a step by which a bias may be other than whole ones."""
ALONE = 1 << 20
"""Steps of a bias that has no products beside it."""
LEAST, MOST = float(np.finfo(F32).tiny), float(np.finfo(F32).max)
NIBBLE, MULTIPLIER = 7, 16
"""Largest weight of 4 bits, and the largest number that nibbles are multiplied by."""


def with_factor(state: State, node: Node, value: Accumulated, factor: Array) -> Accumulated:
    """The sum times a constant of each channel.

    A channel with a negative factor has its weights' signs changed.  Raises UnrecognisedError for
    other constants, and for weights that have no other sign in int8.
    """
    factors = np.broadcast_to(_by_channel(value, factor, "multiplies with"), value.bias.shape)
    factors = factors.astype(np.float64)
    if not np.isfinite(factors).all():
        raise UnrecognisedError(f"a factor {factors[~np.isfinite(factors)][0]}; required a number")
    scales = value.w_scales * np.abs(factors)
    if (scales > MOST).any():
        raise UnrecognisedError(f"a factor {np.abs(factors).max():.3g} of a sum is too large")
    # A number too small for float32 adds nothing.
    signs = np.where(scales < LEAST, 0, np.sign(factors)).astype(np.int64)
    weights = value.weights
    if (signs <= 0).any():
        if value.operator.weight_zero_point:
            raise UnrecognisedError(
                "multiplies the sum by a factor that is not positive, and its weights have a zero "
                "point; required weights about 0"
            )
        weights = _times(state, value, signs)
    scales = np.where(signs, scales, value.w_scales).astype(F32)
    return replace(value, weights=weights, bias=value.bias * signs, w_scales=scales)


def with_bias(
    state: State, node: Node, value: Accumulated, bias: RealConstant | Array
) -> Accumulated:
    """The sum with a constant added to each channel.

    Raises UnrecognisedError when it is none of channels.
    """
    if not np.isinf([value.low, value.high]).all():
        raise UnrecognisedError("adds a constant to what is clipped; required a quantised tensor")
    if isinstance(bias, RealConstant) and _in_steps(value, bias):
        steps = _by_channel(value, bias.values, "adds").astype(np.int64) - bias.zero_points
    else:
        given = bias.real() if isinstance(bias, RealConstant) else bias
        if isinstance(bias, RealConstant) and bias.values.dtype == np.int32:
            _require_whole(value, bias, _by_channel(value, given, "adds"))
        floats = _by_channel(value, given, "adds")
        value = _without_silent(state, value, floats)
        steps = _steps(floats, value.x_scale * value.w_scales, node.origin)
    total = value.bias + np.broadcast_to(steps, value.bias.shape)
    weights = state.builder.constants[value.weights]
    check_sums(value.operator, weights, np.rint(total), value.origin)
    return replace(value, bias=total)


def _require_whole(value: Accumulated, bias: RealConstant, floats: Array) -> None:
    """Raise UnrecognisedError for an int32 bias in other steps than the sum's, unless it is whole
    ones of these: ONNX Runtime adds it in floats.
    """
    scales = value.x_scale * value.w_scales
    steps = floats.astype(np.float64) / scales
    if np.abs(steps - np.rint(steps)).max(initial=0) > WHOLE:
        raise UnrecognisedError(
            f"bias scale {float(bias.scales[0])!r} is not the product "
            f"{float(np.ravel(scales)[0])!r} of input scale and weight scale"
        )


def _in_steps(value: Accumulated, bias: RealConstant) -> bool:
    """True for a bias of int32 whose scale is that of the sum, or which is 0: layers may share one
    of zeros, whose scale is that of one of them.
    """
    zero = not (bias.values.reshape(-1).astype(np.int64) - bias.zero_points).any()
    scales = value.x_scale * value.w_scales
    same = bias.scales.size in (1, scales.size) or scales.size == 1
    return bias.values.dtype == np.int32 and (
        zero or (same and np.allclose(bias.scales, scales, rtol=1e-3, atol=0))
    )


def _without_silent(state: State, value: Accumulated, bias: Array) -> Accumulated:
    """The sum without the products of channels whose bias is so much larger that none is felt, as
    those that training switched off; in steps of the bias there.
    """
    bias = np.broadcast_to(np.abs(bias), value.bias.shape).astype(np.float64)
    scales = np.broadcast_to(value.w_scales, value.bias.shape).astype(np.float64)
    steps = float(value.x_scale) * scales
    silent = (bias > INT32_MAX * steps) & (bias > UNFELT * steps * _reach(state, value))
    if not silent.any() or value.operator.weight_zero_point:
        return value
    new = np.where(silent, bias / ALONE / float(value.x_scale), scales)
    weights = _times(state, value, np.where(silent, 0, 1))
    moved = value.bias * np.where(silent, scales / new, 1)
    return replace(value, weights=weights, bias=moved, w_scales=new.astype(F32))


def _reach(state: State, value: Accumulated) -> Array:
    """The largest sum of products of each channel, whatever its bytes."""
    weights = state.builder.constants[value.weights].astype(np.int64)
    about = np.abs(weights - value.operator.weight_zero_point)
    return np.asarray(255.0 * about.sum(axis=tuple(range(1, weights.ndim))))


def with_whole_bias(state: State, value: Accumulated) -> Accumulated:
    """The sum with its bias in whole steps, which are finer where the weights leave room."""
    finer = _room(state, value)
    if finer is None:
        return replace(value, bias=np.rint(value.bias))
    fine = replace(value, bias=np.rint(value.bias * finer), weights=_times(state, value, finer))
    return replace(fine, w_scales=(value.w_scales / finer).astype(F32))


def in_levels(
    state: State, value: Accumulated, scale: np.float32, levels: tuple[int, int]
) -> tuple[Accumulated, Array]:
    """As ``with_whole_bias``, with each sum in its own step of ``scale``; and a step of the sum.

    levels: least and greatest result, in such steps.
    """
    finer = _room(state, value)
    if finer is None:
        return with_whole_bias(state, value), value.x_scale * value.w_scales
    ratio = float(value.x_scale) / float(scale) * value.w_scales.astype(np.float64)
    ratio = np.broadcast_to(ratio, value.bias.shape)
    bias, ratios = levels_kept(ratio, value.bias, finer, levels, _reach(state, value))
    return replace(value, bias=bias, weights=_times(state, value, finer)), ratios * float(scale)


def _room(state: State, value: Accumulated) -> Array | None:
    """A whole number to multiply each channel's weights by; None where the bias is in whole steps
    as it is, or no weight leaves room.
    """
    weights = state.builder.constants[value.weights].astype(np.int64)
    most = int(np.abs(weights).max(initial=1))
    finer = NIBBLE // most * MULTIPLIER if most <= NIBBLE else max(127 // most, 1)
    whole = np.array_equal(np.rint(value.bias), value.bias)
    if whole or finer == 1 or value.operator.weight_zero_point:
        return None
    fits = (_reach(state, value) + np.abs(value.bias) + NEAR) * finer < INT32_MAX
    return np.where(fits, finer, 1)


def check_sums(
    operator: Conv2d | ConvTranspose2d | Dense, weights: Array, bias: Array, origin: str
) -> None:
    """Raise UnrecognisedError unless every sum of products and bias fits int32."""
    factors = weights.astype(np.int64) - operator.weight_zero_point
    try:
        check_accumulator(factors, bias.astype(np.int64), operator.zero_point, origin)
    except ModelError as error:
        raise UnrecognisedError(str(error)) from None


def _times(state: State, value: Accumulated, factor: Array | int) -> str:
    """The weights, each channel's multiplied by a whole number; one tensor for all that need it."""
    factors = np.broadcast_to(factor, value.bias.shape)
    key = (value.weights, factors.tobytes())
    if key not in state.sums:
        weights = state.builder.constants[value.weights].astype(np.int64)
        made = weights * factors.reshape(-1, *(1,) * (weights.ndim - 1))
        if made.max(initial=0) > 127 or made.min(initial=0) < -128:
            raise UnrecognisedError(
                "multiplies the sum by a negative factor, and a weight is -128; required at "
                "least -127"
            )
        stored = state.builder.constant(f"{value.weights}/scaled", made.astype(np.int8))
        state.sums[key] = stored
    return state.sums[key]


def _by_channel(value: Accumulated, values: Array, what: str) -> Array:
    """One number, or one a channel, as a list."""
    count, rank = len(value.bias), len(value.permutation)
    aligned = (1,) * (rank - values.ndim) + values.shape
    wanted = tuple(count if axis == value.channel else 1 for axis in range(rank))
    if (values.size != 1 and aligned != wanted) or values.ndim > rank:
        raise UnrecognisedError(
            f"{what} a constant of shape {list(values.shape)}; required one number for each of "
            f"{count} channels"
        )
    return values.reshape(-1)


def _steps(values: Array, scales: Array, origin: str) -> Array:
    """A float bias in units of the sum.

    Raises ModelError for one that is not a number, UnrecognisedError for one beyond int32.
    """
    if not np.isfinite(values).all():
        wrong = values[~np.isfinite(values)][0]
        raise ModelError(f"node {origin!r}: its bias has a value {wrong}; required finite numbers")
    steps = values.astype(np.float64) / scales
    if np.abs(steps).max(initial=0) > INT32_MAX:
        raise UnrecognisedError(
            f"its bias reaches {np.abs(steps).max():.3g} in units of the sum; int32 holds "
            f"{INT32_MAX}"
        )
    return np.asarray(steps)
