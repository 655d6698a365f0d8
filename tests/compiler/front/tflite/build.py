"""TensorFlow Lite's files, written with the schema package."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import flatbuffers
import numpy as np
import tflite
from numpy.typing import NDArray

__all__ = ["Op", "Tensor", "write", "write_subgraphs"]

Array = NDArray[Any]
TYPES = {
    "float32": "FLOAT32", "float16": "FLOAT16", "float64": "FLOAT64", "int8": "INT8",
    "int16": "INT16", "int32": "INT32", "int64": "INT64", "uint8": "UINT8", "uint16": "UINT16",
    "uint32": "UINT32", "bool": "BOOL", "complex64": "COMPLEX64", "resource": "RESOURCE",
    "int4": "INT4",
}  # fmt: skip


@dataclass(frozen=True)
class Tensor:
    """A tensor; a constant if it has ``data``.  scales, zeros, axis: how it is quantised."""

    name: str
    shape: tuple[int, ...]
    dtype: str = "float32"
    data: Array | None = None
    scales: tuple[float, ...] = ()
    zeros: tuple[int, ...] = ()
    axis: int = 0
    variable: bool = False


@dataclass(frozen=True)
class Op:
    """An operator of tensors' numbers.  options: by the schema's names of their fields."""

    kind: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    table: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    version: int = 1
    custom: bytes = b""
    intermediates: tuple[int, ...] = ()


Graph = tuple[Sequence[Tensor], Sequence[Op], Sequence[int], Sequence[int]]
"""Tensors, operators, inputs, outputs."""


def write(
    tensors: Sequence[Tensor],
    ops: Sequence[Op],
    inputs: Sequence[int],
    outputs: Sequence[int],
    metadata: bytes = b"",
) -> bytes:
    """A model of one subgraph."""
    return write_subgraphs([(tensors, ops, inputs, outputs)], metadata)


def write_subgraphs(graphs: Sequence[Graph], metadata: bytes = b"") -> bytes:
    """A model; the first subgraph is run.  metadata: a buffer of its own."""
    b = flatbuffers.Builder(1024)
    codes = sorted({(op.kind, op.version) for _, ops, _, _ in graphs for op in ops})
    code_tables = [_code(b, kind, version) for kind, version in codes]
    buffers = [_buffer(b, b"")]
    made = [_subgraph(b, graph, codes, buffers) for graph in graphs]
    described = _tables(b, [_metadata(b, metadata, buffers)] if metadata else [])
    code_vector, graph_vector, buffer_vector = (
        _tables(b, each) for each in (code_tables, made, buffers)
    )
    tflite.ModelStart(b)
    tflite.ModelAddVersion(b, 3)
    tflite.ModelAddOperatorCodes(b, code_vector)
    tflite.ModelAddSubgraphs(b, graph_vector)
    tflite.ModelAddBuffers(b, buffer_vector)
    tflite.ModelAddMetadata(b, described)
    b.Finish(tflite.ModelEnd(b), file_identifier=b"TFL3")
    return bytes(b.Output())


def _metadata(b: Any, content: bytes, buffers: list[int]) -> int:
    name = b.CreateString("TFLITE_METADATA")
    buffers.append(_buffer(b, content))
    tflite.MetadataStart(b)
    tflite.MetadataAddName(b, name)
    tflite.MetadataAddBuffer(b, len(buffers) - 1)
    return int(tflite.MetadataEnd(b))


def _code(b: Any, kind: str, version: int) -> int:
    number = getattr(tflite.BuiltinOperator, kind, None)
    custom = b.CreateString(kind) if number is None else None
    if number is None:
        number = tflite.BuiltinOperator.CUSTOM
    tflite.OperatorCodeStart(b)
    tflite.OperatorCodeAddDeprecatedBuiltinCode(b, min(number, 127))
    tflite.OperatorCodeAddBuiltinCode(b, number)
    tflite.OperatorCodeAddVersion(b, version)
    if custom is not None:
        tflite.OperatorCodeAddCustomCode(b, custom)
    return int(tflite.OperatorCodeEnd(b))


def _subgraph(b: Any, graph: Graph, codes: list[tuple[str, int]], buffers: list[int]) -> int:
    tensors, ops, inputs, outputs = graph
    tensor_vector = _tables(b, [_tensor(b, each, buffers) for each in tensors])
    op_vector = _tables(b, [_op(b, each, codes) for each in ops])
    input_vector, output_vector = (_ints(b, each) for each in (inputs, outputs))
    name = b.CreateString("main")
    tflite.SubGraphStart(b)
    tflite.SubGraphAddName(b, name)
    tflite.SubGraphAddTensors(b, tensor_vector)
    tflite.SubGraphAddInputs(b, input_vector)
    tflite.SubGraphAddOutputs(b, output_vector)
    tflite.SubGraphAddOperators(b, op_vector)
    return int(tflite.SubGraphEnd(b))


def _tensor(b: Any, tensor: Tensor, buffers: list[int]) -> int:
    number = 0
    if tensor.data is not None:
        number = len(buffers)
        buffers.append(_buffer(b, np.ascontiguousarray(tensor.data).tobytes()))
    name, shape, quantization = b.CreateString(tensor.name), _ints(b, tensor.shape), 0
    if tensor.scales:
        scales = b.CreateNumpyVector(np.asarray(tensor.scales, np.float32))
        zeros = tensor.zeros or (0,) * len(tensor.scales)
        zero_points = b.CreateNumpyVector(np.asarray(zeros, np.int64))
        tflite.QuantizationParametersStart(b)
        tflite.QuantizationParametersAddScale(b, scales)
        tflite.QuantizationParametersAddZeroPoint(b, zero_points)
        tflite.QuantizationParametersAddQuantizedDimension(b, tensor.axis)
        quantization = tflite.QuantizationParametersEnd(b)
    tflite.TensorStart(b)
    tflite.TensorAddShape(b, shape)
    tflite.TensorAddType(b, getattr(tflite.TensorType, TYPES[tensor.dtype]))
    tflite.TensorAddBuffer(b, number)
    tflite.TensorAddName(b, name)
    tflite.TensorAddHasRank(b, True)
    tflite.TensorAddIsVariable(b, tensor.variable)
    if quantization:
        tflite.TensorAddQuantization(b, quantization)
    return int(tflite.TensorEnd(b))


def _buffer(b: Any, content: bytes) -> int:
    data = 0
    if content:
        b.StartVector(1, len(content), 16)
        b.head -= len(content)
        b.Bytes[b.head : b.head + len(content)] = content
        data = b.EndVector()
    tflite.BufferStart(b)
    if data:
        tflite.BufferAddData(b, data)
    return int(tflite.BufferEnd(b))


def _op(b: Any, op: Op, codes: list[tuple[str, int]]) -> int:
    inputs, outputs, between = (
        _ints(b, each) for each in (op.inputs, op.outputs, op.intermediates)
    )
    options, second = (_options(b, op) if op.table else 0), False
    custom = b.CreateByteVector(op.custom) if op.custom else 0
    if op.table:
        second = hasattr(tflite.BuiltinOptions2, op.table)
    tflite.OperatorStart(b)
    tflite.OperatorAddOpcodeIndex(b, codes.index((op.kind, op.version)))
    tflite.OperatorAddInputs(b, inputs)
    tflite.OperatorAddOutputs(b, outputs)
    if op.intermediates:
        tflite.OperatorAddIntermediates(b, between)
    if custom:
        tflite.OperatorAddCustomOptions(b, custom)
    if op.table and second:
        tflite.OperatorAddBuiltinOptions2Type(b, getattr(tflite.BuiltinOptions2, op.table))
        tflite.OperatorAddBuiltinOptions2(b, options)
    elif op.table:
        tflite.OperatorAddBuiltinOptionsType(b, getattr(tflite.BuiltinOptions, op.table))
        tflite.OperatorAddBuiltinOptions(b, options)
    return int(tflite.OperatorEnd(b))


def _options(b: Any, op: Op) -> int:
    values = {
        name: _numbers(b, value) if isinstance(value, tuple)
        else b.CreateString(value) if isinstance(value, str) else value
        for name, value in op.options.items()
    }  # fmt: skip
    getattr(tflite, f"{op.table}Start")(b)
    for name, value in values.items():
        getattr(tflite, f"{op.table}Add{name}")(b, value)
    return int(getattr(tflite, f"{op.table}End")(b))


def _ints(b: Any, values: Sequence[int]) -> int:
    return int(b.CreateNumpyVector(np.asarray(values, np.int32)))


def _numbers(b: Any, values: Sequence[float]) -> int:
    dtype = np.float32 if any(isinstance(each, float) for each in values) else np.int32
    return int(b.CreateNumpyVector(np.asarray(values, dtype)))


def _tables(b: Any, tables: Sequence[int]) -> int:
    b.StartVector(4, len(tables), 4)
    for each in reversed(tables):
        b.PrependUOffsetTRelative(each)
    return int(b.EndVector())
