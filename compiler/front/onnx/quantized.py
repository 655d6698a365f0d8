"""Converters of quantisation, and of operators on quantised tensors.

Quantising and dequantising are operators of the graph, and an operator on quantised tensors is the
one on real tensors between them: passes tell from that what can be computed by integers.
"""

from collections.abc import Callable

import numpy as np
import onnx

from ...dtypes import DType
from ...errors import ModelError, UnsupportedOperatorError
from ...graph.formulas import Term, concatenate, saturated
from ...graph.operators.quantization import STORED, DequantizeLinear, QuantizeLinear
from ...graph.products import matmul
from .blocks import weights_of_blocks
from .context import Converter, ImportContext
from .contractions import convert_gemm, convolution_attributes, convolve
from .element_types import type_name
from .elementwise import convert_activation
from .inputs import Inputs, finite_term, optional_term, require_one, term
from .narrow import INTEGER_RANGES, NARROW_TYPES, decode, encode
from .node import OnnxNode
from .normalisations import convert_softmax
from .windows import convert_average_pool, convert_global_pool

__all__ = ["QUANTIZED"]

OUTPUTS: dict[int, DType] = {
    onnx.TensorProto.INT8: DType.INT8,
    onnx.TensorProto.UINT8: DType.UINT8,
    onnx.TensorProto.INT16: DType.INT16,
    onnx.TensorProto.UINT16: DType.UINT16,
}


def convert_quantize(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """``saturate(rint(x / scale) + zero_point)``."""
    x, scale = finite_term(context, node, inputs, 0), finite_term(context, node, inputs, 1)
    zero = optional_term(context, inputs, 2)
    wanted = node.integer("output_dtype", 0)
    narrow = NARROW_TYPES.get(wanted) if zero is None else zero.tensor.narrow
    if wanted and wanted not in OUTPUTS and narrow is None:
        raise UnsupportedOperatorError(f"{node}: quantises to {type_name(wanted)}")
    axis = _axis(node, x)
    if narrow is None and scale.rank <= 1 and (zero is None or zero.dtype in STORED):
        if zero is None:
            zero = _zeros(scale, OUTPUTS.get(wanted, DType.UINT8))
        return (_quantized(x, scale, zero, axis).tensor,)
    quotient = x.cast(DType.FLOAT32) / _aligned(context, node, scale, x).cast(DType.FLOAT32)
    if narrow is not None and narrow not in INTEGER_RANGES:
        saturate = bool(node.integer("saturate", 1))
        return (encode(quotient, narrow, saturate).tensor,)
    quotient = quotient.rint()
    if zero is not None:
        offset = decode(zero)
        quotient = quotient + _aligned(context, node, offset, x).cast(DType.FLOAT32)
    if narrow is not None:
        low, high = INTEGER_RANGES[narrow]
        return (encode(quotient.clip(low, high), narrow).tensor,)
    dtype = OUTPUTS[wanted] if wanted else DType.UINT8
    return (saturated(quotient, dtype if zero is None else zero.dtype).tensor,)


def convert_dequantize(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """``(x - zero_point) * scale``."""
    x, scale = term(context, node, inputs, 0), finite_term(context, node, inputs, 1)
    zero = optional_term(context, inputs, 2)
    x = decode(x)
    if zero is not None:
        zero = decode(zero)
    if x.dtype in (*STORED, DType.INT32) and scale.rank <= 1:
        zero = _zeros(scale, x.dtype) if zero is None else zero
        return (_dequantized(x, scale, zero, _axis(node, x)).cast(scale.dtype).tensor,)
    block = node.integer("block_size", 0)
    known = all(each is None or context.known(each.tensor) for each in (x, scale, zero))
    if block and known and x.rank == scale.rank == 2 and scale.dtype is DType.FLOAT32:
        return (_blocks(context, node, (x, scale, zero), block).tensor,)
    value = x.cast(DType.INT32) if not x.dtype.is_float else x.cast(DType.FLOAT32)
    if zero is not None:
        value = value - _aligned(context, node, zero, x).cast(value.dtype)
    result = value.cast(DType.FLOAT32) * _aligned(context, node, scale, x).cast(DType.FLOAT32)
    return (result.cast(scale.dtype).tensor,)


def _blocks(
    context: ImportContext, node: OnnxNode, given: tuple[Term, Term, Term | None], block: int
) -> Term:
    """Constants of two dimensions with scales of blocks along one of them."""
    x, scale = (context.value(each.tensor) for each in given[:2])
    zero = None if given[2] is None else context.value(given[2].tensor)
    by_rows = node.integer("axis", 1) % 2 == 1
    if not by_rows:
        x, scale, zero = x.T, scale.T, None if zero is None else zero.T
    width = -(-x.shape[1] // block)
    if scale.shape != (len(x), width) or (zero is not None and zero.shape != scale.shape):
        raise ModelError(f"{node}: scales {given[1].shape} for {given[0].shape}, blocks of {block}")
    values = x.astype(np.int64)
    if zero is not None:
        values = values - np.repeat(zero.astype(np.int64), block, 1)[:, : x.shape[1]]
    return weights_of_blocks(context, values, scale.astype(np.float32), block, by_rows)


def _axis(node: OnnxNode, x: Term) -> int:
    axis = node.integer("axis", 1)
    return axis % x.rank if x.rank and -x.rank <= axis < x.rank else axis


def _zeros(scale: Term, dtype: DType) -> Term:
    return scale.constant(np.zeros(scale.shape), dtype)


def _quantized(x: Term, scale: Term, zero: Term, axis: int = 0) -> Term:
    operands = x.cast(DType.FLOAT32), scale.cast(DType.FLOAT32), zero
    emitted = x.context.emit(QuantizeLinear(axis), *(each.tensor for each in operands))
    return Term(x.context, emitted)


def _dequantized(x: Term, scale: Term, zero: Term, axis: int = 0) -> Term:
    operands = x, scale.cast(DType.FLOAT32), zero
    emitted = x.context.emit(DequantizeLinear(axis), *(each.tensor for each in operands))
    return Term(x.context, emitted)


def _aligned(context: ImportContext, node: OnnxNode, value: Term, x: Term) -> Term:
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
    context.require_room(x.shape[axis])
    indices = np.arange(x.shape[axis]) // block
    return value.take(indices, axis)


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


def _centred(x: Term, zero: Term | None, axis: int) -> Term:
    """``x - zero_point`` in int32; zero points of a list belong to ``axis``."""
    wide = x.cast(DType.INT32)
    if zero is None or (x.context.known(zero.tensor) and not x.context.value(zero.tensor).any()):
        return wide
    offset = zero.cast(DType.INT32)
    if zero.tensor.type.elements == 1:
        return wide - offset.reshape()
    if zero.rank == 1:
        shape = [1] * x.rank
        shape[axis] = -1
        offset = offset.reshape(*shape)
    return wide - offset


def convert_matmul_integer(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """``(a - a_zero_point) @ (b - b_zero_point)`` in int32."""
    a, b = (term(context, node, inputs, place) for place in range(2))
    a_zero, b_zero = (optional_term(context, inputs, place) for place in (2, 3))
    a, b = _centred(a, a_zero, a.rank - 2), _centred(b, b_zero, b.rank - 1)
    return (matmul(a, b, DType.INT32).tensor,)


def convert_conv_integer(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """The convolution of differences from zero points, in int32."""
    x, w = (term(context, node, inputs, place) for place in range(2))
    zeros = [optional_term(context, inputs, place) for place in (2, 3)]
    require_one(node, f"zero point of {node.inputs[0]!r}", zeros[0])
    x, w = _centred(x, zeros[0], 1), _centred(w, zeros[1], 0)
    attributes = convolution_attributes(node, x, w)
    return (convolve(x, w, *attributes, node.integer("group", 1), DType.INT32).tensor,)


def _operand(
    context: ImportContext, node: OnnxNode, inputs: Inputs, place: int, axis: int | None = None
) -> Term:
    """The real tensor of three inputs: integers, scale, zero point.

    axis: of lists of scales and zero points; without one each is a number.
    """
    x, scale = term(context, node, inputs, place), finite_term(context, node, inputs, place + 1)
    zero = optional_term(context, inputs, place + 2) or _zeros(scale, x.dtype)
    if axis is None:
        require_one(node, f"scale or zero point of {node.inputs[place]!r}", scale, zero)
        axis = 0
    return _dequantized(x, scale, zero, axis % max(x.rank, 1))


def _stored(
    context: ImportContext, node: OnnxNode, inputs: Inputs, place: int, result: Term
) -> Inputs:
    """``result`` quantised as two inputs say: scale, zero point."""
    scale = finite_term(context, node, inputs, place)
    zero = optional_term(context, inputs, place + 1) or _zeros(scale, DType.UINT8)
    require_one(node, "scale or zero point of the result", scale, zero)
    return (_quantized(result, scale, zero).tensor,)


def convert_qlinear_matmul(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """The product of two quantised tensors."""
    a, b = (_operand(context, node, inputs, place, axis) for place, axis in ((0, -2), (3, -1)))
    return _stored(context, node, inputs, 6, matmul(a, b, DType.FLOAT32))


def convert_qlinear_conv(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """The convolution of a quantised tensor, with a bias in units of the sum."""
    x, w = _operand(context, node, inputs, 0), _operand(context, node, inputs, 3, 0)
    attributes = convolution_attributes(node, x, w)
    result = convolve(x, w, *attributes, node.integer("group", 1), DType.FLOAT32)
    bias = optional_term(context, inputs, 8)
    if bias is not None:
        real = _sum_units(context, node, inputs, bias)
        result = result + real.reshape(-1, *(1,) * (result.rank - 2))
    return _stored(context, node, inputs, 6, result)


def _sum_units(context: ImportContext, node: OnnxNode, inputs: Inputs, bias: Term) -> Term:
    """A bias of int32 as a real tensor: its scale is the product of those of the operands."""
    scales = [term(context, node, inputs, place).cast(DType.FLOAT32) for place in (1, 4)]
    scale = scales[0].reshape() * (
        scales[1].reshape() if scales[1].tensor.type.elements == 1 else scales[1]
    )
    return _dequantized(bias, scale, _zeros(scale, DType.INT32))


def convert_qgemm(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """com.microsoft QGemm: a and its, b and its, int32 bias, y's scale and zero point."""
    axis = 0 if node.integer("transB", 0) else 1
    operands = [
        _operand(context, node, inputs, place, own).tensor for place, own in ((0, None), (3, axis))
    ]
    bias = optional_term(context, inputs, 6)
    if bias is not None:
        real = _sum_units(context, node, inputs, bias)
        alpha = node.real("alpha", 1.0)
        operands.append((real if alpha == 1 else real * alpha).tensor)
    result = term(context, node, convert_gemm(context, node, tuple(operands)), 0)
    if optional_term(context, inputs, 7) is None:
        return (result.tensor,)
    return _stored(context, node, inputs, 7, result)


def convert_qlinear_pair(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """com.microsoft QLinearAdd, QLinearMul: a, its scale and zero point, b and its, y's."""
    a, b = (_operand(context, node, inputs, place) for place in (0, 3))
    return _stored(context, node, inputs, 6, a * b if node.kind == "QLinearMul" else a + b)


def convert_qlinear_concat(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """com.microsoft QLinearConcat: y's scale and zero point, then each x and its."""
    parts = [_operand(context, node, inputs, place) for place in range(2, len(inputs), 3)]
    return _stored(context, node, inputs, 0, concatenate(parts, node.integer("axis", 1)))


def convert_qlinear_softmax(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """com.microsoft QLinearSoftmax: x and its, y's; ``opset`` says how ``axis`` is meant."""
    context.opset = node.integer("opset", 13)
    real = _operand(context, node, inputs, 0)
    return _stored(context, node, inputs, 3, _only(context, convert_softmax, node, real))


def convert_qlinear_pool(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """com.microsoft QLinearAveragePool, QLinearGlobalAveragePool: x and its, y's quantisation."""
    if node.integer("channels_last", 0):
        raise UnsupportedOperatorError(f"{node}: channels_last 1; required 0")
    every = node.kind == "QLinearGlobalAveragePool"
    converter = convert_global_pool if every else convert_average_pool
    real = _operand(context, node, inputs, 0)
    return _stored(context, node, inputs, 3, _only(context, converter, node, real))


def convert_qlinear_activation(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """com.microsoft QLinearSigmoid and QLinearLeakyRelu: x and its quantisation, y's."""
    real = _operand(context, node, inputs, 0)
    return _stored(context, node, inputs, 3, _only(context, convert_activation, node, real))


def _only(
    context: ImportContext,
    converter: Callable[[ImportContext, OnnxNode, Inputs], Inputs],
    node: OnnxNode,
    real: Term,
) -> Term:
    """The one result of the operator on a real tensor."""
    kind = node.kind.removeprefix("QLinear")
    plain = OnnxNode(kind, node.name, node.inputs[:1], node.outputs, node.attributes, node.domain)
    return term(context, plain, converter(context, plain, (real.tensor,)), 0)


QUANTIZED: dict[str, Converter] = {
    "ConvInteger": convert_conv_integer,
    "DequantizeLinear": convert_dequantize,
    "DynamicQuantizeLinear": convert_dynamic_quantize,
    "MatMulInteger": convert_matmul_integer,
    "QLinearConv": convert_qlinear_conv,
    "QLinearMatMul": convert_qlinear_matmul,
    "QuantizeLinear": convert_quantize,
    "com.microsoft.DequantizeLinear": convert_dequantize,
    "com.microsoft.QGemm": convert_qgemm,
    "com.microsoft.QLinearAdd": convert_qlinear_pair,
    "com.microsoft.QLinearAveragePool": convert_qlinear_pool,
    "com.microsoft.QLinearConcat": convert_qlinear_concat,
    "com.microsoft.QLinearGlobalAveragePool": convert_qlinear_pool,
    "com.microsoft.QLinearLeakyRelu": convert_qlinear_activation,
    "com.microsoft.QLinearMul": convert_qlinear_pair,
    "com.microsoft.QLinearSigmoid": convert_qlinear_activation,
    "com.microsoft.QLinearSoftmax": convert_qlinear_softmax,
    "com.microsoft.QuantizeLinear": convert_quantize,
}
