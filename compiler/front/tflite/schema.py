"""What a ``.tflite`` file says, read once and checked; nothing else imports the schema package.

Source: TensorFlow Lite's schema (``schema.fbs``, file identifier ``TFL3``).
"""

import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import tflite
from flatbuffers import flexbuffers

from ...dtypes import DType
from ...errors import ModelError
from ...graph.ir import Array

__all__ = [
    "ModelFile",
    "Operation",
    "Quantization",
    "Subgraph",
    "TensorInfo",
    "custom_options",
    "read_file",
]

IDENTIFIER = b"TFL3"
MALFORMED = (
    *(ArithmeticError, AssertionError, AttributeError, BufferError, LookupError, MemoryError),
    *(TypeError, ValueError, struct.error),
)
"""What the schema package raises for offsets and values that are not those of its tables."""
MOST_DIMENSIONS = 32
MOST_ELEMENTS = 1 << 40
DTYPES = {
    "FLOAT32": DType.FLOAT32, "FLOAT16": DType.FLOAT16, "FLOAT64": DType.FLOAT64,
    "BFLOAT16": DType.BFLOAT16, "INT8": DType.INT8, "INT16": DType.INT16, "INT32": DType.INT32,
    "INT64": DType.INT64, "UINT8": DType.UINT8, "UINT16": DType.UINT16, "UINT32": DType.UINT32,
    "UINT64": DType.UINT64, "BOOL": DType.BOOL, "INT4": DType.INT8,
    "RESOURCE": DType.INT32,
}  # fmt: skip
"""Element types that the graph has: four-bit integers become bytes, handles numbers."""


@dataclass(frozen=True, slots=True)
class Quantization:
    """``real = scales * (stored - zero_points)``, each one, or one for each index of ``axis``."""

    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int

    @property
    def scale(self) -> float:
        """The scale of a tensor that has one."""
        return self.scales[0]

    @property
    def zero_point(self) -> int:
        """The zero point of a tensor that has one."""
        return self.zero_points[0]


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """A tensor of a subgraph.

    shape: with 1 in place of open sizes, as TensorFlow Lite runs it.  kind: the schema's name of
    the element type.  buffer: the number of the file's buffer with its value; 0 for none.
    """

    name: str
    shape: tuple[int, ...]
    kind: str
    buffer: int
    quantization: Quantization | None
    is_variable: bool

    @property
    def dtype(self) -> DType:
        """Raises ModelError for a type that the graph does not have."""
        if self.kind not in DTYPES:
            raise ModelError(f"tensor {self.name!r} has elements of type {self.kind}")
        return DTYPES[self.kind]


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator at its place.  inputs: numbers of tensors, -1 for those left out.

    kind: the schema's name, or that of a custom operator.  attributes: by the schema's names.
    """

    kind: str
    name: str
    version: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    intermediates: tuple[int, ...]
    attributes: Mapping[str, Any]
    custom: bytes = b""

    def __str__(self) -> str:
        return f"node {self.name!r} ({self.kind})"


@dataclass(frozen=True, slots=True)
class Subgraph:
    """inputs, outputs: numbers of tensors."""

    name: str
    tensors: tuple[TensorInfo, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    operations: tuple[Operation, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ModelFile:
    """subgraphs: the first is the model.  buffers: bytes of constants.

    metadata: bytes of what says, in a format of its own, how the model is used; perhaps none.
    """

    subgraphs: tuple[Subgraph, ...]
    buffers: tuple[memoryview, ...]
    size: int
    metadata: bytes = b""

    def is_constant(self, tensor: TensorInfo) -> bool:
        """Whether the file has the tensor's value."""
        return bool(self.buffers[tensor.buffer]) and not tensor.is_variable

    def constant(self, tensor: TensorInfo) -> Array:
        """The value of a constant.

        Raises ModelError when the buffer is not as long as the shape asks for.
        """
        content, dtype = self.buffers[tensor.buffer], tensor.dtype.numpy
        count = prod(tensor.shape)
        needed = (count + 1) // 2 if tensor.kind == "INT4" else count * dtype.itemsize
        if len(content) < needed:
            raise ModelError(
                f"constant {tensor.name!r} of shape {list(tensor.shape)} needs {needed:,} bytes; "
                f"its buffer has {len(content):,}"
            )
        if tensor.kind == "INT4":
            return _nibbles(content[:needed], count).reshape(tensor.shape)
        if tensor.dtype == DType.BOOL:
            return (np.frombuffer(content[:needed], np.uint8) != 0).reshape(tensor.shape)
        return np.frombuffer(content[:needed], dtype).reshape(tensor.shape)


def read_file(content: bytes) -> ModelFile:
    """The model in the content of a file.

    Raises ModelError, saying what is wrong, when it is none or damaged.
    """
    if len(content) < 8 or content[4:8] != IDENTIFIER:
        raise ModelError("required the identifier TFL3 in bytes 4 to 7")
    try:
        return _Reader(content).model()
    except MALFORMED as error:
        raise ModelError(f"the file is damaged or cut off ({error})") from None


def custom_options(operation: Operation) -> dict[str, Any]:
    """The numbers that a custom operator has by name, in FlexBuffers.

    Raises ModelError when they are of another form.
    """
    try:
        root = flexbuffers.GetRoot(operation.custom)
        pairs = zip(root.AsMap.Keys, root.AsMap.Values, strict=True)
        found = {key.AsKey: each for key, each in pairs}
        return {
            name: each.AsFloat if each.IsFloat else int(each.AsInt) for name, each in found.items()
        }
    except MALFORMED as error:
        raise ModelError(f"{operation}: its options are damaged ({error})") from None


@dataclass(slots=True)
class _Reader:
    """Reads tables; ``left`` bounds the elements of all lists, each of which has its own byte."""

    content: bytes
    left: int = 0
    codes: list[tuple[str, int, str]] = field(default_factory=list)
    """Kind, version and custom name of each operator code."""

    def model(self) -> ModelFile:
        self.left = len(self.content)
        root = tflite.Model.GetRootAs(self.content, 0)
        for code in self.each(root.OperatorCodes, root.OperatorCodesLength()):
            number = max(code.DeprecatedBuiltinCode(), code.BuiltinCode())
            custom = _text(code.CustomCode())
            if number not in KINDS:
                raise ModelError(f"operator code {number} is not one of TensorFlow Lite's")
            self.codes.append((KINDS[number], code.Version(), custom))
        buffers = tuple(map(self.buffer, self.each(root.Buffers, root.BuffersLength())))
        found = self.each(root.Subgraphs, root.SubgraphsLength())
        subgraphs = tuple(self.subgraph(each, len(buffers)) for each in found)
        if not subgraphs or not buffers:
            raise ModelError("the file has no subgraph, or no buffer")
        return ModelFile(subgraphs, buffers, len(self.content), self.metadata(root, buffers))

    def metadata(self, root: Any, buffers: Sequence[memoryview]) -> bytes:
        for each in self.each(root.Metadata, root.MetadataLength()):
            if _text(each.Name()) == METADATA:
                place = each.Buffer()
                if not 0 <= place < len(buffers):
                    raise ModelError(f"metadata in buffer {place}; the file has {len(buffers)}")
                return bytes(buffers[place])
        return b""

    def each(self, element: Callable[[int], Any], count: int) -> list[Any]:
        """The elements of a list."""
        self.left -= count
        if self.left < 0 or count < 0:
            raise ModelError(f"a list of {count} elements is longer than the file")
        return [element(place) for place in range(count)]

    def buffer(self, table: Any) -> memoryview:
        """A buffer's bytes, in its table or, in large files, behind all tables."""
        start, size = table.Offset(), table.Size()
        if start > 1:
            if start + size > len(self.content):
                raise ModelError(f"a buffer at {start} of {size} bytes lies behind the end")
            return memoryview(self.content)[start : start + size]
        size = table.DataLength()
        if not size:
            return memoryview(b"")
        start = table._tab.Vector(table._tab.Offset(4))
        if start + size > len(self.content):
            raise ModelError(f"a buffer of {size} bytes lies behind the end of the file")
        return memoryview(self.content)[start : start + size]

    def subgraph(self, table: Any, buffers: int) -> Subgraph:
        tensors = tuple(
            self.tensor(each, place, buffers)
            for place, each in enumerate(self.each(table.Tensors, table.TensorsLength()))
        )
        inputs = self.numbers(table.Inputs, table.InputsLength(), len(tensors))
        outputs = self.numbers(table.Outputs, table.OutputsLength(), len(tensors))
        if -1 in (*inputs, *outputs):
            raise ModelError("an input or output of a subgraph is left out")
        operations = tuple(
            self.operation(each, place, tensors)
            for place, each in enumerate(self.each(table.Operators, table.OperatorsLength()))
        )
        return Subgraph(_text(table.Name()), tensors, inputs, outputs, operations)

    def tensor(self, table: Any, place: int, buffers: int) -> TensorInfo:
        name = _text(table.Name()) or f"tensor {place}"
        shape = tuple(self.each(table.Shape, table.ShapeLength()))
        if len(shape) > MOST_DIMENSIONS or min(shape, default=0) < -1:
            raise ModelError(f"tensor {name!r} has shape {list(shape)}")
        shape = tuple(1 if size == -1 else int(size) for size in shape)
        if prod(size or 1 for size in shape) > MOST_ELEMENTS:
            raise ModelError(f"tensor {name!r} has shape {list(shape)}; required less than 2**40")
        buffer = table.Buffer()
        if not 0 <= buffer < buffers:
            raise ModelError(f"tensor {name!r} has buffer {buffer}; the file has {buffers}")
        kind = TYPES.get(table.Type(), f"number {table.Type()}")
        if table.Sparsity() is not None:
            kind = f"sparse {kind}"
        quantization = self.quantization(table.Quantization(), name)
        return TensorInfo(name, shape, kind, buffer, quantization, bool(table.IsVariable()))

    def quantization(self, table: Any, name: str) -> Quantization | None:
        if table is None or not table.ScaleLength():
            return None
        scales = tuple(map(float, self.each(table.Scale, table.ScaleLength())))
        zeros = tuple(map(int, self.each(table.ZeroPoint, table.ZeroPointLength())))
        zeros = zeros or (0,) * len(scales)
        if len(zeros) == 1:
            zeros *= len(scales)
        if len(zeros) != len(scales):
            raise ModelError(f"tensor {name!r}: {len(scales)} scales, {len(zeros)} zero points")
        if any(abs(zero) >= 1 << 31 for zero in zeros):
            raise ModelError(f"tensor {name!r}: zero points must be of int32")
        if not all(np.isfinite(scale) and scale >= 0 for scale in scales):
            raise ModelError(f"tensor {name!r}: scales must be finite and 0 or more")
        return Quantization(scales, zeros, int(table.QuantizedDimension()))

    def operation(self, table: Any, place: int, tensors: Sequence[TensorInfo]) -> Operation:
        number = table.OpcodeIndex()
        if not 0 <= number < len(self.codes):
            raise ModelError(f"operator {place} has code {number} of {len(self.codes)}")
        kind, version, custom = self.codes[number]
        inputs = self.numbers(table.Inputs, table.InputsLength(), len(tensors))
        outputs = self.numbers(table.Outputs, table.OutputsLength(), len(tensors))
        between = self.numbers(table.Intermediates, table.IntermediatesLength(), len(tensors))
        name = tensors[outputs[0]].name if outputs and outputs[0] >= 0 else f"#{place}"
        attributes: dict[str, Any] = {}
        for options, names, numbered in (
            (table.BuiltinOptions(), OPTIONS, table.BuiltinOptionsType()),
            (table.BuiltinOptions2(), OPTIONS2, table.BuiltinOptions2Type()),
        ):
            if options is not None and numbered in names:
                attributes |= self.attributes(options, getattr(tflite, names[numbered]))
        content = b""
        if kind == "CUSTOM":
            kind = custom or "CUSTOM"
            count = table.CustomOptionsLength()
            content = bytes(self.each(table.CustomOptions, count))
        return Operation(kind, name, version, inputs, outputs, between, attributes, content)

    def numbers(self, element: Callable[[int], int], count: int, tensors: int) -> tuple[int, ...]:
        """Numbers of tensors."""
        found = tuple(map(int, self.each(element, count)))
        if any(not -1 <= number < tensors for number in found):
            raise ModelError(f"tensors {list(found)} of {tensors}")
        return found

    def attributes(self, options: Any, kind: type[Any]) -> dict[str, Any]:
        """Numbers, texts and lists of numbers of a table, by the schema's names of its fields."""
        table = kind()
        table.Init(options.Bytes, options.Pos)
        members = vars(kind)
        found: dict[str, Any] = {}
        for name in members:
            if name == "Init" or name.startswith(("_", "GetRootAs")) or name.endswith(NO_FIELDS):
                continue
            key = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
            length = members.get(f"{name}Length")
            if length is not None:
                values = self.each(getattr(table, name), length(table))
                found[key] = tuple(v for v in values if isinstance(v, int | float | bool))
                continue
            value = getattr(table, name)()
            if isinstance(value, bytes):
                found[key] = _text(value)
            elif isinstance(value, int | float | bool):
                found[key] = value
        return found


METADATA = "TFLITE_METADATA"
NO_FIELDS = ("AsNumpy", "Length", "IsNone", "BufferHasIdentifier")


def _names(enumeration: type) -> dict[int, str]:
    return {number: name for name, number in vars(enumeration).items() if isinstance(number, int)}


KINDS = _names(tflite.BuiltinOperator)
TYPES = _names(tflite.TensorType)
OPTIONS = _names(tflite.BuiltinOptions)
OPTIONS2 = _names(tflite.BuiltinOptions2)
for each in (OPTIONS, OPTIONS2):
    del each[0]


def _text(value: bytes | None) -> str:
    return (value or b"").decode("utf-8", "replace")


def _nibbles(content: memoryview, count: int) -> Array:
    """Four-bit integers, the lower half of a byte first."""
    raw = np.frombuffer(content, np.uint8)
    pairs = np.stack([raw & 15, raw >> 4], axis=1).reshape(-1)[:count]
    return ((pairs ^ 8).astype(np.int8) - 8).astype(np.int8)
