"""Weights of few bits whose scales belong to blocks along the sum.

Blocks whose scales are small multiples of one number a channel are one int8 tensor with a scale a
channel, exactly: ``(q * k) * S`` for ``q * s``, ``s = k * S``.  So passes and targets know them as
any quantised weights, and the accelerator finds the nibbles in them again.  Other blocks stay
floats.
"""

import numpy as np
from numpy.typing import NDArray

from ...dtypes import DType
from ...errors import ModelError, UnsupportedOperatorError
from ...graph.formulas import Term
from ...graph.operators.quantization import DequantizeLinear
from ...graph.products import matmul
from .context import Converter, ImportContext
from .inputs import Inputs, optional_term, term
from .node import OnnxNode

__all__ = ["BLOCKS", "weights_of_blocks"]

MOST_FACTOR = 16
"""Largest multiple, and most parts of a channel's least scale that are tried as its unit."""

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]


def weights_of_blocks(
    context: ImportContext, values: Ints, scales: Floats, block: int, by_rows: bool
) -> Term:
    """The real tensor of weights int[channels, K], zero points taken away, and float32 scales
    [channels, blocks of K]: [channels, K], or, unless ``by_rows``, [K, channels].
    """
    found = one_scale_a_channel(values, scales, block)
    if found is None:
        each = np.repeat(scales, block, 1)[:, : values.shape[1]]
        real = values.astype(np.float32) * each
        return Term(context, context.constant(real if by_rows else real.T.copy()))
    whole, unit = found
    codes = context.constant(whole if by_rows else whole.T.copy())
    zeros = context.constant(np.zeros(len(unit), np.int8))
    operator = DequantizeLinear(0 if by_rows else 1)
    return Term(context, context.emit(operator, codes, context.constant(unit), zeros))


def one_scale_a_channel(
    values: Ints, scales: Floats, block: int
) -> tuple[NDArray[np.int8], Floats] | None:
    """int8[channels, K] and float32[channels] that dequantise to the very floats of ``values`` and
    ``scales``, as of ``weights_of_blocks``; None when there are none.
    """
    least = scales.min(axis=1, keepdims=True)
    if not (np.isfinite(scales).all() and (least > 0).all()):
        return None
    units, factors = np.zeros_like(least), np.zeros(scales.shape, np.float32)
    for parts in range(MOST_FACTOR, 0, -1):
        unit = least / np.float32(parts)
        ratio = np.rint(scales / np.maximum(unit, np.finfo(np.float32).tiny))
        fits = ((ratio <= MOST_FACTOR) & (ratio * unit == scales)).all(axis=1, keepdims=True)
        units, factors = np.where(fits, unit, units), np.where(fits, ratio, factors)
    if not units.all():
        return None
    width = values.shape[1]
    whole = values * np.repeat(factors.astype(np.int64), block, 1)[:, :width]
    real = values.astype(np.float32) * np.repeat(scales, block, 1)[:, :width]
    fits = np.abs(whole).max(initial=0) <= np.iinfo(np.int8).max
    if not fits or (whole.astype(np.float32) * units != real).any():
        return None
    return whole.astype(np.int8), units[:, 0]


def convert_matmul_nbits(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """com.microsoft MatMulNBits: ``a @ w.T``, w float32[N, K] of 4 bits, in blocks along K.

    Raises UnsupportedOperatorError for other bits, an order of groups, or
    weights that are computed.
    """
    rows, columns = node.integer("N", 0), node.integer("K", 0)
    bits, block = node.integer("bits", 4), node.integer("block_size", 0)
    if bits != 4 or optional_term(context, inputs, 4) is not None:
        raise UnsupportedOperatorError(f"{node}: {bits} bits, or g_idx; required 4 bits without")
    if rows < 1 or columns < 1 or block < 2:
        raise ModelError(f"{node}: N {rows}, K {columns}, block_size {block}; required positive")
    given = [optional_term(context, inputs, place) for place in (1, 2, 3)]
    known = [None if each is None else each.tensor for each in given]
    if known[0] is None or known[1] is None:
        raise ModelError(f"{node}: no weights or no scales")
    if not all(each is None or context.known(each) for each in known):
        raise UnsupportedOperatorError(f"{node}: its weights are computed; required constants")
    blocks = -(-columns // block)
    packed = context.value(known[0]).astype(np.uint8)
    scales = context.value(known[1]).astype(np.float32)
    zeros = np.full((rows, blocks), 8, np.int64)
    if known[2] is not None:
        found = context.value(known[2])
        if found.dtype.kind == "f":
            raise UnsupportedOperatorError(f"{node}: zero points of floats; required uint8")
        zeros = _nibbles(found.astype(np.uint8).reshape(rows, -1))[:, :blocks]
    sizes = packed.size, scales.size
    if sizes != (rows * blocks * block // 2, rows * blocks) or zeros.shape != (rows, blocks):
        raise ModelError(
            f"{node}: {sizes[0]} bytes of weights and {sizes[1]} scales; required "
            f"{rows * blocks * block // 2} and {rows * blocks}"
        )
    values = _nibbles(packed.reshape(rows, -1)) - np.repeat(zeros, block, 1)
    w = weights_of_blocks(
        context, values[:, :columns], scales.reshape(rows, blocks), block, by_rows=False
    )
    a, bias = term(context, node, inputs, 0), optional_term(context, inputs, 5)
    result = matmul(a.cast(DType.FLOAT32), w, DType.FLOAT32)
    result = result if bias is None else result + bias.cast(DType.FLOAT32)
    return (result.cast(a.dtype).tensor,)


def _nibbles(octets: NDArray[np.uint8]) -> Ints:
    """Numbers of 4 bits, two a byte, the lower first: int64[rows, 2 * columns]."""
    both = np.stack([octets & 15, octets >> 4], axis=2)
    return both.reshape(len(octets), -1).astype(np.int64)


BLOCKS: dict[str, Converter] = {"com.microsoft.MatMulNBits": convert_matmul_nbits}
