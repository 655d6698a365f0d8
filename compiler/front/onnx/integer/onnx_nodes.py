"""One converter for each ONNX operator."""

from collections.abc import Callable

import numpy as np
from onnx import TensorProto, numpy_helper

from ....errors import ModelError, UnsupportedOperatorError
from .onnx_contractions import (
    convert_conv,
    convert_matmul,
    convert_qgemm,
    convert_qlinear_conv,
    convert_qlinear_matmul,
)
from .onnx_elementwise import (
    convert_add,
    convert_clip,
    convert_mul,
    convert_qlinear_add,
    convert_qlinear_unary,
    convert_relu,
    convert_unary,
)
from .onnx_joins import convert_concat, convert_qlinear_concat, convert_slice, convert_split
from .onnx_movement import convert_identity, convert_pad, convert_reshape, convert_transpose
from .onnx_resize import convert_resize
from .onnx_state import ImportState, OnnxNode
from .onnx_transposed import convert_conv_transpose
from .onnx_windows import (
    convert_average_pool,
    convert_max_pool,
    convert_qlinear_average_pool,
    convert_qlinear_softmax,
    convert_reduce_mean,
    convert_softmax,
)
from .values import F32, Array, Integer, Real

__all__ = ["CONVERTERS", "QUANTIZED_OPERATORS"]


def convert_constant(state: ImportState, node: OnnxNode) -> None:
    """A constant of the model."""
    value = node.attributes.get("value")
    if isinstance(value, TensorProto):
        state.arrays[node.outputs[0]] = numpy_helper.to_array(value)
        return
    name, value = next(iter(node.attributes.items()))
    dtype = {"value_float": F32, "value_floats": F32, "value_int": np.int64, "value_ints": np.int64}
    if name not in dtype:
        raise UnsupportedOperatorError(f"{node}: attribute {name}")
    state.arrays[node.outputs[0]] = np.asarray(value, dtype[name])


def convert_dequantize(state: ImportState, node: OnnxNode) -> None:
    """DequantizeLinear of a constant, or of an integer tensor."""
    name, out = node.inputs[0], node.outputs[0]
    if name in state.arrays:
        zeros: Array = np.zeros(1) if not node.has(2) else state.array(node, 2)
        if node.integer("block_size", 0):
            raise UnsupportedOperatorError(
                f"{node}: blocked scales; required one, or one a channel"
            )
        axis = node.integer("axis", 1)
        state.values[out] = state.constant(node, 0, state.array(node, 1), zeros, axis)
        return
    tensor = state.value(node, 0)
    if not isinstance(tensor, Integer):
        raise ModelError(f"{node}: input {name!r} is not an integer tensor")
    kind = state.quantized_as(node, 1, tensor.unsigned)
    if kind.unsigned != tensor.unsigned:
        found = "uint8" if tensor.unsigned else "int8"
        raise ModelError(f"{node}: input {name!r} is {found}, its zero point is not")
    state.values[out] = Real(tensor, kind.scale, kind.zero_point)


def convert_quantize(state: ImportState, node: OnnxNode) -> None:
    """QuantizeLinear of a constant, or of what the nodes before computed."""
    if node.inputs[0] in state.arrays:
        state.arrays[node.outputs[0]] = _quantized_constant(state, node)
        return
    state.store(node, state.value(node, 0), 1)


def _quantized_constant(state: ImportState, node: OnnxNode) -> Array:
    values, scales = state.array(node, 0), np.atleast_1d(state.array(node, 1)).astype(F32)
    zeros = np.atleast_1d(state.array(node, 2)) if node.has(2) else np.zeros(1, np.uint8)
    if zeros.dtype not in (np.int8, np.uint8):
        raise ModelError(f"{node}: quantises to {zeros.dtype}; required int8 or uint8")
    shape = [1] * values.ndim
    if scales.size > 1:
        shape[node.integer("axis", 1)] = -1
    limits = np.iinfo(zeros.dtype)
    steps = np.rint(values / scales.reshape(shape)) + zeros.astype(np.int64).reshape(shape)
    return np.clip(steps, limits.min, limits.max).astype(zeros.dtype)


CONVERTERS: dict[str, Callable[[ImportState, OnnxNode], None]] = {
    "Abs": convert_unary,
    "Add": convert_add,
    "AveragePool": convert_average_pool,
    "Clip": convert_clip,
    "Concat": convert_concat,
    "Constant": convert_constant,
    "Conv": convert_conv,
    "ConvTranspose": convert_conv_transpose,
    "DequantizeLinear": convert_dequantize,
    "Elu": convert_unary,
    "Flatten": convert_reshape,
    "Gemm": convert_matmul,
    "GlobalAveragePool": convert_average_pool,
    "HardSigmoid": convert_unary,
    "HardSwish": convert_unary,
    "Identity": convert_identity,
    "LeakyRelu": convert_unary,
    "MatMul": convert_matmul,
    "MaxPool": convert_max_pool,
    "Mul": convert_mul,
    "Neg": convert_unary,
    "Pad": convert_pad,
    "QGemm": convert_qgemm,
    "QLinearAdd": convert_qlinear_add,
    "QLinearAveragePool": convert_qlinear_average_pool,
    "QLinearConcat": convert_qlinear_concat,
    "QLinearConv": convert_qlinear_conv,
    "QLinearGlobalAveragePool": convert_qlinear_average_pool,
    "QLinearLeakyRelu": convert_qlinear_unary,
    "QLinearMatMul": convert_qlinear_matmul,
    "QLinearSigmoid": convert_qlinear_unary,
    "QLinearSoftmax": convert_qlinear_softmax,
    "QuantizeLinear": convert_quantize,
    "ReduceMean": convert_reduce_mean,
    "Relu": convert_relu,
    "Reshape": convert_reshape,
    "Resize": convert_resize,
    "Sigmoid": convert_unary,
    "Slice": convert_slice,
    "Softmax": convert_softmax,
    "Split": convert_split,
    "Squeeze": convert_reshape,
    "Tanh": convert_unary,
    "Transpose": convert_transpose,
    "Unsqueeze": convert_reshape,
    "Upsample": convert_resize,
}

QUANTIZED_OPERATORS = frozenset(
    name for name in CONVERTERS if name.startswith(("QLinear", "Quantize", "Dequantize", "QGemm"))
)
"""A model without any of these computes in float."""
