"""A node of the model, as its converter sees it."""

from collections.abc import Callable
from typing import Any

import numpy as np

from dovetail.isa.frozen import frozen

from ...dtypes import DType
from ...errors import ModelError, UnsupportedOperatorError
from ...graph.formulas import Term
from ...graph.ir import Array
from ...graph.operators.integer.conversions import Shift128
from ...graph.operators.protocol import TensorOperator
from .context import ImportContext
from .read_file import custom_options
from .schema import Operation, Quantization, TensorInfo

__all__ = ["BYTES", "Converter", "Node"]

BYTES = (DType.INT8, DType.UINT8)


@frozen
class Node:
    """An operator with its inputs as terms; None for those left out.

    tensors: of the subgraph it is in, which the operation's numbers are of.
    """

    context: ImportContext
    operation: Operation
    inputs: tuple[Term | None, ...]
    tensors: tuple[TensorInfo, ...]

    def __str__(self) -> str:
        return str(self.operation)

    @property
    def kind(self) -> str:
        """The operator."""
        return self.operation.kind

    def term(self, place: int) -> Term:
        """The input at ``place``.  Raises ModelError when it is left out."""
        found = self.optional(place)
        if found is None:
            raise ModelError(f"{self}: input {place} is left out; it is required")
        return found

    def optional(self, place: int) -> Term | None:
        """The input at ``place``, or None."""
        return self.inputs[place] if place < len(self.inputs) else None

    def terms(self) -> tuple[Term, ...]:
        """All inputs.  Raises ModelError when one is left out."""
        return tuple(map(self.term, range(len(self.inputs))))

    def info(self, place: int) -> TensorInfo:
        """The file's description of the input at ``place``."""
        if not 0 <= place < len(self.operation.inputs) or self.operation.inputs[place] < 0:
            raise ModelError(f"{self}: input {place} is left out; it is required")
        return self.tensors[self.operation.inputs[place]]

    def result(self, place: int = 0) -> TensorInfo:
        """The file's description of the output at ``place``."""
        if not place < len(self.operation.outputs) or self.operation.outputs[place] < 0:
            raise ModelError(f"{self}: output {place} is left out; it is required")
        return self.tensors[self.operation.outputs[place]]

    @property
    def is_quantised(self) -> bool:
        """True if the first input has 8 or 16 bits, and a scale."""
        small = self.term(0).dtype in (*BYTES, DType.INT16)
        return small and self.info(0).quantization is not None

    def scale(self, place: int) -> Quantization:
        """How the input at ``place`` is quantised.  Raises ModelError when it is not."""
        return self._quantization(self.info(place))

    def result_scale(self, place: int = 0) -> Quantization:
        """How the output at ``place`` is quantised.  Raises ModelError when it is not."""
        return self._quantization(self.result(place))

    def _quantization(self, tensor: TensorInfo) -> Quantization:
        if tensor.quantization is None or not min(tensor.quantization.scales) > 0:
            raise ModelError(f"{self}: tensor {tensor.name!r} ({tensor.kind}) has no scale above 0")
        return tensor.quantization

    def value(self, place: int) -> Array:
        """The value of the input at ``place``, which must be known."""
        return self.context.value(self.term(place).tensor)

    def integers(self, place: int) -> tuple[int, ...]:
        """The elements of an input that says axes, sizes or the like."""
        found = self.value(place)
        if found.dtype.kind not in "iu":
            raise ModelError(f"{self}: input {place} is {found.dtype}; required integers")
        return tuple(map(int, found.reshape(-1)))

    def attribute(self, name: str, default: Any = 0) -> Any:
        """An attribute of the schema; ``default`` where the file has no table of them."""
        return self.operation.attributes.get(name, default)

    def custom_options(self) -> dict[str, Any]:
        """The numbers that a custom operator has by name.

        Raises ModelError when they are of another form.
        """
        return custom_options(self.operation)

    def axis(self, axis: int, rank: int) -> int:
        """An axis counted from the front.  Raises ModelError when there is none of that number."""
        if not -rank <= axis < rank:
            raise ModelError(f"{self}: axis {axis} of {rank} dimensions")
        return axis % rank

    def emit(self, operator: TensorOperator, *inputs: Term) -> Term:
        """Add an operator with one result."""
        return Term(self.context, self.context.emit(operator, *(each.tensor for each in inputs)))

    def constant(self, value: object, dtype: DType) -> Term:
        """A constant."""
        return Term(self.context, self.context.constant(np.asarray(value, dtype.numpy)))

    def signed(self, x: Term) -> Term:
        """A tensor of int8, or one of uint8 as int8, 128 less."""
        if x.dtype == DType.INT8:
            return x
        if x.dtype != DType.UINT8:
            raise self.unsupported(f"elements of {x.dtype}")
        if x.tensor.name not in self.context.signed:
            shifted = self.context.emit(Shift128("int8"), x.tensor)
            self.context.signed[x.tensor.name] = shifted
        return Term(self.context, self.context.signed[x.tensor.name])

    def stored(self, x: Term, dtype: DType) -> Term:
        """A tensor of int8 as ``dtype``, int8 or uint8."""
        if dtype == DType.INT8:
            return x
        result = self.context.emit(Shift128("uint8"), x.tensor)
        self.context.signed[result.name] = x.tensor
        return Term(self.context, result)

    def unsupported(self, what: str) -> UnsupportedOperatorError:
        """The error for a form of the operator that there is no converter of."""
        return UnsupportedOperatorError(f"{self}: {what} is not supported")

    def require(self, holds: bool, required: str) -> None:
        """Raise ModelError unless ``holds``."""
        if not holds:
            given = ", ".join(
                "-" if each is None else str(each.tensor.type) for each in self.inputs
            )
            raise ModelError(f"{self}: found {given}; required {required}")


Converter = Callable[[Node], Term | tuple[Term, ...]]
"""Adds a node to the graph; its results, one for each output.

Raises ModelError or ValueError, TypeError, LookupError for a node of another form.
"""
