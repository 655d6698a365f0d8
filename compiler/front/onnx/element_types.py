"""ONNX's element types."""

from collections.abc import Mapping

import onnx

from ...dtypes import DType
from ...errors import UnsupportedOperatorError

__all__ = ["ELEMENT_TYPES", "element_type", "type_name"]

ELEMENT_TYPES: Mapping[int, DType] = {
    onnx.TensorProto.BOOL: DType.BOOL,
    onnx.TensorProto.INT8: DType.INT8,
    onnx.TensorProto.INT16: DType.INT16,
    onnx.TensorProto.INT32: DType.INT32,
    onnx.TensorProto.INT64: DType.INT64,
    onnx.TensorProto.UINT8: DType.UINT8,
    onnx.TensorProto.UINT16: DType.UINT16,
    onnx.TensorProto.UINT32: DType.UINT32,
    onnx.TensorProto.UINT64: DType.UINT64,
    onnx.TensorProto.FLOAT16: DType.FLOAT16,
    onnx.TensorProto.BFLOAT16: DType.BFLOAT16,
    onnx.TensorProto.FLOAT: DType.FLOAT32,
    onnx.TensorProto.DOUBLE: DType.FLOAT64,
}


def element_type(number: int) -> DType:
    """The graph's element type.

    Raises UnsupportedOperatorError for a type that the graph does not have.
    """
    if number not in ELEMENT_TYPES:
        raise UnsupportedOperatorError(f"elements of type {type_name(number)}")
    return ELEMENT_TYPES[number]


def type_name(number: int) -> str:
    """ONNX's name of an element type; the number of an unknown one."""
    names = {value: name for name, value in onnx.TensorProto.DataType.items()}
    return names.get(number, str(number))
