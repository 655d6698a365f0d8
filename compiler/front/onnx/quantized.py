"""Converters of quantisation, and of products of quantised tensors in int32."""

import numpy as np
import onnx

from ...dtypes import DType
from ...errors import ModelError, UnsupportedOperatorError
from ...graph.operators.elementwise import BinaryFunction, Bitcast
from .context import Converter, ImportContext
from .contractions import convolution_attributes, convolve, matmul
from .element_types import type_name
from .formulas import Inputs, Term, optional_term, term
from .integer.onnx_state import OnnxNode
from .narrow import INTEGER_RANGES, NARROW_TYPES, decode, encode

__all__ = ["QUANTIZED", "saturated"]

OUTPUTS: dict[int, DType] = {
    onnx.TensorProto.INT8: DType.INT8,
    onnx.TensorProto.UINT8: DType.UINT8,
    onnx.TensorProto.INT16: DType.INT16,
    onnx.TensorProto.UINT16: DType.UINT16,
}

FEWEST_CHANNELS = 8
"""For convolutions of bytes, which fill up to 16 channels."""


def saturated(x: Term, dtype: DType) -> Term:
    """Rounded half to even, clipped to the range of an integer type, converted."""
    limits = np.iinfo(str(dtype))
    return x.rint().clip(float(limits.min), float(limits.max)).cast(dtype)


def _aligned(node: OnnxNode, value: Term, x: Term) -> Term:
    """Scales or zero points so that they broadcast to ``x``: one, one an index of axis, blocks."""
    if value.tensor.type.elements == 1 and value.rank < 2:
        return value.reshape()
    axis = node.integer("axis", 1) % x.rank
    block = node.integer("block_size", 0)
    if value.rank == 1:
        shape = [1] * x.rank
        shape[axis] = value.shape[0]
        return value.reshape(*shape)
    if value.rank != x.rank or not block:
        raise ModelError(f"{node}: scales {value.shape} for {x.shape}")
    indices = np.arange(x.shape[axis]) // block
    return value.take(indices, axis)


def convert_quantize(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """``saturate(rint(x / scale) + zero_point)``."""
    x, scale = (term(context, node, inputs, place) for place in range(2))
    zero = optional_term(context, inputs, 2)
    wanted = node.integer("output_dtype", 0)
    narrow = NARROW_TYPES.get(wanted) if zero is None else zero.tensor.narrow
    computing = DType.FLOAT32
    quotient = x.cast(computing) / _aligned(node, scale, x).cast(computing)
    if narrow is not None and narrow not in INTEGER_RANGES:
        saturate = bool(node.integer("saturate", 1))
        return (encode(context, quotient.tensor, narrow, saturate),)
    if wanted and wanted not in OUTPUTS and narrow is None:
        raise UnsupportedOperatorError(f"{node}: quantises to {type_name(wanted)}")
    quotient = quotient.rint()
    if zero is not None:
        offset = Term(context, decode(context, zero.tensor))
        quotient = quotient + _aligned(node, offset, x).cast(computing)
    if narrow is not None:
        low, high = INTEGER_RANGES[narrow]
        return (encode(context, quotient.clip(low, high).tensor, narrow),)
    dtype = OUTPUTS[wanted] if wanted else DType.UINT8
    return (saturated(quotient, dtype if zero is None else zero.dtype).tensor,)


def convert_dequantize(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """``(x - zero_point) * scale``."""
    x, scale = (term(context, node, inputs, place) for place in range(2))
    zero = optional_term(context, inputs, 2)
    x = Term(context, decode(context, x.tensor))
    if zero is not None:
        zero = Term(context, decode(context, zero.tensor))
    computing = DType.FLOAT32
    value = x.cast(DType.INT32) if not x.dtype.is_float else x.cast(computing)
    if zero is not None:
        value = value - _aligned(node, zero, x).cast(value.dtype)
    result = value.cast(computing) * _aligned(node, scale, x).cast(computing)
    return (result.cast(scale.dtype).tensor,)


def convert_dynamic_quantize(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """uint8 with scale and zero point of the range of ``x`` and 0."""
    x = term(context, node, inputs, 0)
    axes = range(x.rank)
    high = x.max(*axes).maximum(0.0)
    low = -((-x).max(*axes).maximum(0.0))
    scale = (high - low) / 255.0
    scale = scale.equal(0.0).where(1.0, scale, DType.FLOAT32)
    zero = saturated(-low / scale, DType.UINT8)
    y = saturated((x / scale).rint() + zero.cast(DType.FLOAT32), DType.UINT8)
    return y.tensor, scale.tensor, zero.tensor


def _centred(x: Term, zero: Term | None, axis: int | None = None) -> Term:
    """``x - zero_point`` in int32; zero points of a list belong to ``axis``."""
    wide = x.cast(DType.INT32)
    if zero is None or _is_nought(zero):
        return wide
    offset = zero.cast(DType.INT32)
    if zero.tensor.type.elements == 1:
        return wide - offset.reshape()
    if zero.rank == 1 and axis is not None:
        shape = [1] * x.rank
        shape[axis] = -1
        offset = offset.reshape(*shape)
    return wide - offset


def _is_nought(zero: Term) -> bool:
    context = zero.context
    return context.known(zero.tensor) and not context.value(zero.tensor).any()


def _are_bytes(x: Term, zero: Term | None, w: Term, w_zero: Term | None) -> bool:
    """Whether products can be of bytes as they are: constant weights of int8 around 0."""
    scalar = zero is None or zero.tensor.type.elements == 1
    known = w.context.known(w.tensor) and (w_zero is None or _is_nought(w_zero))
    return scalar and known and w.dtype == DType.INT8 and x.dtype in (DType.UINT8, DType.INT8)


def _unsigned(x: Term, zero: Term | None) -> tuple[Term, Term]:
    """uint8 and its zero point, which is 128 more where ``x`` is int8."""
    offset = x.constant(0, DType.INT32) if zero is None else zero.cast(DType.INT32).reshape()
    if x.dtype == DType.UINT8:
        return x, offset
    flipped = x.binary(BinaryFunction.XOR, -128)
    raised = Term(x.context, x.context.emit(Bitcast(DType.UINT8), flipped.tensor))
    return raised, offset + 128


def _product(a: Term, a_zero: Term | None, b: Term, b_zero: Term | None) -> Term:
    """``(a - a_zero) @ (b - b_zero)`` in int32; of bytes, ``a @ b - a_zero * sum(b)``."""
    if b.rank == 2 and _are_bytes(a, a_zero, b, b_zero):
        raised, offset = _unsigned(a, a_zero)
        return matmul(raised, b, DType.INT32) - offset * b.cast(DType.INT32).sum(0)
    a = _centred(a, a_zero, a.rank - 2)
    return matmul(a, _centred(b, b_zero, b.rank - 1), DType.INT32)


def convert_matmul_integer(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """``(a - a_zero_point) @ (b - b_zero_point)`` in int32."""
    a, b = (term(context, node, inputs, place) for place in range(2))
    a_zero, b_zero = (optional_term(context, inputs, place) for place in (2, 3))
    return (_product(a, a_zero, b, b_zero).tensor,)


def _convolution(node: OnnxNode, x: Term, zero: Term | None, w: Term, w_zero: Term | None) -> Term:
    """The convolution of differences from zero points, in int32."""
    strides, dilations, pads = convolution_attributes(node, x, w)
    groups = node.integer("group", 1)
    dense = groups == 1 and min(w.shape[:2]) >= FEWEST_CHANNELS
    if dense and _are_bytes(x, zero, w, w_zero):
        raised, offset = _unsigned(x, zero)
        raised = raised.pad([(0, 0), (0, 0), *pads], offset.cast(DType.UINT8))
        none = ((0, 0),) * len(pads)
        total = convolve(raised, w, strides, dilations, none, 1, DType.INT32)
        sums = w.cast(DType.INT32).sum(*range(1, w.rank))
        return total - (offset * sums).reshape(-1, *(1,) * len(pads))
    x, w = _centred(x, zero), _centred(w, w_zero, 0)
    return convolve(x, w, strides, dilations, pads, groups, DType.INT32)


def convert_conv_integer(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """The convolution of differences from zero points, in int32."""
    x, w = (term(context, node, inputs, place) for place in range(2))
    zeros = [optional_term(context, inputs, place) for place in (2, 3)]
    return (_convolution(node, x, zeros[0], w, zeros[1]).tensor,)


def _requantized(total: Term, scale: Term, zero: Term) -> Term:
    """``saturate(rint(float32(total) * scale) + zero_point)``."""
    product = (total.cast(DType.FLOAT32) * scale).rint()
    return saturated(product + zero.cast(DType.FLOAT32), zero.dtype)


def convert_qlinear_matmul(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """An integer product with scales, requantised."""
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = (
        term(context, node, inputs, place) for place in range(8)
    )
    total = _product(a, a_zero, b, b_zero)
    a_scale, b_scale, y_scale = (each.cast(DType.FLOAT32) for each in (a_scale, b_scale, y_scale))
    if a_scale.rank == 1 and a_scale.shape[0] > 1:
        a_scale = a_scale.reshape(-1, 1)
    scale = a_scale * b_scale / y_scale
    if scale.tensor.type.elements == 1:
        scale = scale.reshape()
    return (_requantized(total, scale, _scalar(y_zero)).tensor,)


def convert_qlinear_conv(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """An integer convolution with a scale for each output channel, requantised."""
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero = (
        term(context, node, inputs, place) for place in range(8)
    )
    total = _convolution(node, x, x_zero, w, w_zero)
    ones = (1,) * (x.rank - 2)
    bias = optional_term(context, inputs, 8)
    if bias is not None:
        total = total + bias.reshape(-1, *ones)
    scale = x_scale.reshape() * w_scale.reshape(-1, *ones) / y_scale.reshape()
    return (_requantized(total, scale, _scalar(y_zero)).tensor,)


def _scalar(value: Term) -> Term:
    return value.reshape() if value.tensor.type.elements == 1 else value


QUANTIZED: dict[str, Converter] = {
    "ConvInteger": convert_conv_integer,
    "DequantizeLinear": convert_dequantize,
    "DynamicQuantizeLinear": convert_dynamic_quantize,
    "MatMulInteger": convert_matmul_integer,
    "QLinearConv": convert_qlinear_conv,
    "QLinearMatMul": convert_qlinear_matmul,
    "QuantizeLinear": convert_quantize,
}
