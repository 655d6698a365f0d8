"""Functions of one byte or of 16 bits, which become tables of all their values."""

from collections.abc import Callable

import numpy as np

from ...dtypes import DType
from ...graph.formulas import Term
from ...graph.ir import Array
from ...graph.operators.integer.fixed_point import half_away, scaled
from ...graph.operators.integer.values import Lookup
from .node import Node
from .quantized import limits_of, quantize_multiplier
from .schema import Quantization

__all__ = ["by_float", "by_samples", "interpolated", "rescaled", "sampled", "tabled"]

F32 = np.float32
SAMPLES = 512


def tabled(node: Node, x: Term, function: Callable[[Array], Array]) -> Term:
    """Integers of the node's result, limited to their type.

    function: of the int64 values that elements of ``x``, bytes or int16, have, all of them.
    """
    dtype = node.result().dtype
    low, high = limits_of(x.dtype)
    values = np.clip(function(np.arange(low, high + 1, dtype=np.int64)), *limits_of(dtype))
    if x.dtype == DType.INT16:
        return node.constant(values, dtype).take(x.cast(DType.INT64) - low, 0)
    shift = 128 if dtype == DType.UINT8 else 0
    table = node.constant(values - shift, DType.INT8)
    return node.stored(node.emit(Lookup(), node.signed(x), table), dtype)


def rescaled(x: Array, given: Quantization, wanted: Quantization) -> Array:
    """Integers of one scale and zero point as those of another."""
    factors = quantize_multiplier(given.scale / wanted.scale)
    return scaled(x - given.zero_point, *factors) + wanted.zero_point


def by_float(node: Node, function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """A function of float32 between the scales of a node's input and result.

    Source: TensorFlow Lite, ``LUTPopulate``.
    """
    given, wanted = node.scale(0), node.result_scale()
    inverse = np.float32(1) / np.float32(wanted.scale)

    def table(values: Array) -> Array:
        with np.errstate(all="ignore"):
            real = np.float32(given.scale) * (values - given.zero_point).astype(np.float32)
            quotient = half_away(function(real).astype(np.float32) * inverse)
            return np.clip(quotient + np.float32(wanted.zero_point), -(1 << 30), 1 << 30)

    return table


def sampled(
    function: Callable[[Array], Array], given: tuple[float, int], wanted: tuple[float, int]
) -> Array:
    """A function of float32 at 513 places of the range of int16, as int64 in that of int16.

    Each is moved so that half way to the next one the straight line is not too far off.  given,
    wanted: scale and zero point.  Source: TensorFlow Lite, ``LUTPopulateInt16``.
    """
    (low, high), (first, last) = (
        [F32(scale) * F32(end - zero) for end in limits_of(DType.INT16)]
        for scale, zero in (given, wanted)
    )
    step, inverse = (high - low) / F32(SAMPLES), F32(65536) / (last - first)
    with np.errstate(all="ignore"):
        places = low + np.arange(SAMPLES, dtype=F32) * step
        here, middle, after = (
            function(each).astype(F32) * inverse
            for each in (places, places + step / F32(2), places + step)
        )
        ends = half_away(function(np.array([high], F32)).astype(F32) * inverse)
    line = half_away((after + half_away(here)) / F32(2))
    values = half_away(here) - half_away((line - half_away(middle)) / F32(2))
    return np.clip(np.concatenate([values, ends]), *limits_of(DType.INT16)).astype(np.int64)


def interpolated(values: Array, table: Array) -> Array:
    """Between the two nearest of ``sampled``; values: of int16."""
    place, rest = (values >> 7) + 256, values & 127
    base = table[place]
    return np.asarray(base + (((table[place + 1] - base) * rest + 64) >> 7))


def by_samples(node: Node, function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """As ``by_float``; of int16 by samples."""
    if node.term(0).dtype != DType.INT16:
        return by_float(node, function)
    given, wanted = node.scale(0), node.result_scale()
    table = sampled(function, (given.scale, given.zero_point), (wanted.scale, wanted.zero_point))
    return lambda values: interpolated(values, table)
