"""Reading ``.tflite`` files, once and with checks; nothing else imports the schema package.

Source: TensorFlow Lite's schema (``schema.fbs``, file identifier ``TFL3``).
"""

import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import tflite
from flatbuffers import flexbuffers

from ...errors import ModelError
from .schema import ModelFile, Operation, Quantization, Subgraph, TensorInfo

__all__ = ["custom_options", "read_file"]

IDENTIFIER = b"TFL3"
MALFORMED = (
    *(ArithmeticError, AssertionError, AttributeError, BufferError, LookupError, MemoryError),
    *(TypeError, ValueError, struct.error),
)
"""Exceptions of the schema package for invalid offsets and values."""
MOST_DIMENSIONS = 32
MOST_ELEMENTS = 1 << 40


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
    """Reads tables; ``left`` bounds the elements of all lists, each with a byte of its own."""

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
                raise ModelError(f"a buffer at {start} of {size} bytes is beyond the end")
            return memoryview(self.content)[start : start + size]
        size = table.DataLength()
        if not size:
            return memoryview(b"")
        start = table._tab.Vector(table._tab.Offset(4))
        if start + size > len(self.content):
            raise ModelError(f"a buffer of {size} bytes is beyond the end of the file")
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
OPTIONS, OPTIONS2 = (
    {number: name for number, name in _names(each).items() if number}
    for each in (tflite.BuiltinOptions, tflite.BuiltinOptions2)
)


def _text(value: bytes | None) -> str:
    return (value or b"").decode("utf-8", "replace")
