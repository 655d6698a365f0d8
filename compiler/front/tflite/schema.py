"""Contents of a ``.tflite`` file."""

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from dovetail.isa.frozen import frozen

from ...dtypes import DType
from ...errors import ModelError
from ...graph.ir import Array

__all__ = ["ModelFile", "Operation", "Quantization", "Subgraph", "TensorInfo"]

DTYPES = {
    "FLOAT32": DType.FLOAT32, "FLOAT16": DType.FLOAT16, "FLOAT64": DType.FLOAT64,
    "BFLOAT16": DType.BFLOAT16, "INT8": DType.INT8, "INT16": DType.INT16, "INT32": DType.INT32,
    "INT64": DType.INT64, "UINT8": DType.UINT8, "UINT16": DType.UINT16, "UINT32": DType.UINT32,
    "UINT64": DType.UINT64, "BOOL": DType.BOOL, "INT4": DType.INT8,
    "RESOURCE": DType.INT32,
}  # fmt: skip
"""Element types that the graph has: four-bit integers become bytes, handles numbers."""


@frozen
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


@frozen
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


@frozen
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


@frozen
class Subgraph:
    """inputs, outputs: numbers of tensors."""

    name: str
    tensors: tuple[TensorInfo, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    operations: tuple[Operation, ...]


@frozen(eq=False)
class ModelFile:
    """subgraphs: the first is the model.  buffers: bytes of constants.

    metadata: bytes of what says, in a format of its own, how the model is used; perhaps none.
    """

    subgraphs: tuple[Subgraph, ...]
    buffers: tuple[memoryview, ...]
    size: int
    metadata: bytes = b""

    def is_constant(self, tensor: TensorInfo) -> bool:
        """True if the file has the tensor's value."""
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


def _nibbles(content: memoryview, count: int) -> Array:
    """Four-bit integers, the lower half of a byte first."""
    raw = np.frombuffer(content, np.uint8)
    pairs = np.stack([raw & 15, raw >> 4], axis=1).reshape(-1)[:count]
    return ((pairs ^ 8).astype(np.int8) - 8).astype(np.int8)
