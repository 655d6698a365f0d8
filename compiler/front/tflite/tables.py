"""Functions of one byte, which become tables of 256 bytes."""

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

__all__ = ["by_float", "rescaled", "tabled"]


def tabled(node: Node, x: Term, function: Callable[[Array], Array]) -> Term:
    """Bytes of the node's result, limited to their type.

    function: of the int64 values that bytes of ``x`` have, all 256.
    """
    dtype = node.result().dtype
    low, high = limits_of(x.dtype)
    values = np.clip(function(np.arange(low, high + 1, dtype=np.int64)), *limits_of(dtype))
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
