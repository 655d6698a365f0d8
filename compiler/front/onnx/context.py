"""What a converter of an ONNX operator works with: tensors, and the graph it adds operators to."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import ml_dtypes
import numpy as np
import onnx

from ...errors import CompilerError, ModelError, UnsupportedOperatorError
from ...graph.ir import Array, GraphBuilder
from ...graph.operators.elementwise import Where
from ...graph.operators.movement import Expand
from ...graph.operators.protocol import Fusion, TensorOperator
from ...graph.types import TensorType
from .integer.onnx_state import OnnxNode

__all__ = [
    "Body",
    "Converter",
    "ImportContext",
    "Narrow",
    "NeedsValueError",
    "OptionalValue",
    "Tensor",
    "TensorSequence",
    "Value",
    "narrow_of",
    "optional",
    "required",
    "with_narrow",
]

FOLDED_ELEMENTS = 1 << 16
"""A constant result of more elements is only kept when it is no larger than what it is made of."""


LARGEST_TENSOR = 64 << 30
"""Bytes."""


class NeedsValueError(CompilerError):
    """A shape depends on data that is not known when the model is compiled."""


class Narrow(StrEnum):
    """Element types of fewer than 8 bits, and floats of 8, by their names in ml_dtypes."""

    FLOAT8_E4M3FN = "float8_e4m3fn"
    FLOAT8_E4M3FNUZ = "float8_e4m3fnuz"
    FLOAT8_E5M2 = "float8_e5m2"
    FLOAT8_E5M2FNUZ = "float8_e5m2fnuz"
    FLOAT8_E8M0FNU = "float8_e8m0fnu"
    FLOAT4_E2M1FN = "float4_e2m1fn"
    INT4 = "int4"
    UINT4 = "uint4"
    INT2 = "int2"
    UINT2 = "uint2"

    @property
    def numpy(self) -> np.dtype[np.generic]:
        """The NumPy type, of one byte."""
        return np.dtype(getattr(ml_dtypes, self.value))


NARROW = {str(each): each for each in Narrow}


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor of the graph; its type is fixed.

    narrow: what the bits of its uint8 elements mean to the model; None when they are numbers.
    """

    name: str
    type: TensorType
    narrow: Narrow | None = None


def with_narrow(tensor: Tensor, narrow: Narrow | None) -> Tensor:
    """The tensor's bits with another meaning."""
    return Tensor(tensor.name, tensor.type, narrow)


def narrow_of(array: Array) -> Narrow | None:
    """What the elements of an array mean beside their bits."""
    return NARROW.get(str(array.dtype))


@dataclass(frozen=True, slots=True)
class TensorSequence:
    """ONNX's sequence: a list of fixed length, by the time a model is imported."""

    elements: tuple["Value", ...]


@dataclass(frozen=True, slots=True)
class OptionalValue:
    """ONNX's optional: a value, or None."""

    value: "Value | None"


Value = Tensor | TensorSequence | OptionalValue

Nested = Callable[["ImportContext", onnx.GraphProto, tuple[Value, ...]], tuple[Value, ...]]
"""Adds a body to the graph of another context, of which the one at hand is the outer one."""

Body = Callable[[onnx.GraphProto, tuple[Value, ...]], tuple[Value, ...]]
"""Adds a body (of If, Loop, ...) to the graph; it sees the tensors around it."""


@dataclass(slots=True)
class ImportContext:
    """The graph so far, and the node that is being converted.

    opset: of the node's domain.
    origin: the name of the model's node, for error messages and the graph's nodes.
    resolve: computes a tensor's value, given its name; None when a model is compiled without data.
    """

    builder: GraphBuilder
    resolve: Callable[[str], Array] | None = None
    opset: int = 0
    origin: str = ""
    body: Body | None = None
    nested: "Nested | None" = None
    outer: "ImportContext | None" = None
    """Of the body of a loop that becomes a graph of its own: what is around the loop."""
    captured: dict[str, tuple[Tensor, Tensor]] = field(default_factory=dict)
    """Tensors around a body that it reads: there, and as inputs of the body; by the outer name."""
    _constants: dict[tuple[object, ...], Tensor] = field(default_factory=dict)
    _resolved: dict[str, Tensor] = field(default_factory=dict)

    def emit(self, operator: TensorOperator, *inputs: Tensor) -> Tensor:
        """Add an operator with one result; it is computed at once when all inputs are known.

        Raises GraphError when the inputs do not fit the operator.
        """
        return self.emit_many(operator, *inputs)[0]

    def emit_many(self, operator: TensorOperator, *inputs: Tensor) -> tuple[Tensor, ...]:
        """As ``emit``, for operators with any number of results."""
        return self._emit(operator, inputs, _carried(operator, inputs), True)

    def emit_plain(
        self, operator: TensorOperator, inputs: Sequence[Tensor], fold: bool
    ) -> tuple[Tensor, ...]:
        """As ``emit_many``; the results' bits mean numbers.  fold: compute what is known now."""
        return self._emit(operator, inputs, None, fold)

    def _emit(
        self,
        operator: TensorOperator,
        inputs: Sequence[Tensor],
        narrow: Narrow | None,
        fold: bool,
    ) -> tuple[Tensor, ...]:
        if fold and all(self.known(each) for each in inputs):
            results = operator.result(tuple(each.type for each in inputs))
            given = sum(each.type.elements for each in inputs)
            if all(kind.elements <= max(FOLDED_ELEMENTS, given) for kind in results):
                arrays = operator.evaluate([self.value(each) for each in inputs])
                return tuple(with_narrow(self.constant(array), narrow) for array in arrays)
        used = tuple(self._resolved.get(each.name, each).name for each in inputs)
        names = self.builder.node_outputs(operator, used, self.origin, self.origin)
        for name in names:
            self._require_small(self.builder.types[name])
        return tuple(Tensor(name, self.builder.types[name], narrow) for name in names)

    def _require_small(self, kind: TensorType) -> None:
        if kind.elements * kind.dtype.bytes > LARGEST_TENSOR:
            raise ModelError(f"node {self.origin!r}: a tensor of {kind}; required at most 64 GiB")

    def constant(self, array: object, dtype: object = None) -> Tensor:
        """A constant; small ones that are equal are one tensor."""
        value: Array = np.asarray(array, dtype)  # type: ignore[call-overload]
        narrow = narrow_of(value)
        if narrow is not None:
            return with_narrow(self.constant(value.view(np.uint8)), narrow)
        key = (value.shape, str(value.dtype), value.tobytes()) if value.size <= 64 else None
        if key in self._constants:
            return self._constants[key]
        name = self.builder.constant("constant", value)
        tensor = Tensor(name, self.builder.types[name])
        if key is not None:
            self._constants[key] = tensor
        return tensor

    def capture(self, value: "Value") -> "Value":
        """A value from around the body: known tensors become constants, others inputs."""
        assert self.outer is not None
        match value:
            case TensorSequence(elements=elements):
                return TensorSequence(tuple(map(self.capture, elements)))
            case OptionalValue(value=inner):
                return OptionalValue(None if inner is None else self.capture(inner))
        if value.name not in self.captured:
            if self.outer.known(value):
                inner = self.constant(self.outer.value(value))
            else:
                name = self.builder.input(f"captured{len(self.captured)}", value.type)
                inner = Tensor(name, value.type)
            self.captured[value.name] = value, inner
        return with_narrow(self.captured[value.name][1], value.narrow)

    def known(self, tensor: Tensor) -> bool:
        """Whether the tensor's value is a constant."""
        return tensor.name in self.builder.constants or tensor.name in self._resolved

    def value(self, tensor: Tensor) -> Array:
        """The tensor's value, read-only; the graph is specialised to it.

        Raises NeedsValueError when it depends on data that is not there.
        """
        if not self.known(tensor):
            if self.resolve is None:
                raise NeedsValueError(
                    f"node {self.origin!r}: a shape depends on the value of {tensor.name!r}, "
                    "which is known only when the model runs"
                )
            self._resolved[tensor.name] = self.constant(self.resolve(tensor.name))
        return self.builder.constants[self._resolved.get(tensor.name, tensor).name]


Converter = Callable[[ImportContext, OnnxNode, tuple[Any, ...]], tuple[Value | None, ...]]
"""Adds a node to the graph.

Its inputs and results are ``Value | None``, most often ``Tensor | None``; None stands for one that
is left out.  Raises ValueError, TypeError, KeyError or IndexError for a node of another form.
"""


def _carried(operator: TensorOperator, inputs: Sequence[Tensor]) -> Narrow | None:
    """The meaning of the result's bits: only operators that move elements keep it."""
    meanings = {each.narrow for each in inputs} - {None}
    if not meanings:
        return None
    if operator.fusion is not Fusion.MOVEMENT and not isinstance(operator, Expand | Where):
        raise UnsupportedOperatorError(
            f"{type(operator).__name__} of elements of type {', '.join(map(str, meanings))}"
        )
    return meanings.pop()


def required(inputs: Sequence[Value | None], count: int) -> tuple[Tensor, ...]:
    """The first ``count`` inputs.

    Raises ValueError when one of them is left out, or no tensor.
    """
    found = tuple(each for each in inputs[:count] if isinstance(each, Tensor))
    if len(found) != count:
        raise ValueError(f"{len(found)} inputs that are tensors; required {count}")
    return found


def optional(inputs: Sequence[Value | None], place: int) -> Tensor | None:
    """The input at ``place``; None when it is left out.

    Raises ValueError when it is no tensor.
    """
    found = inputs[place] if len(inputs) > place else None
    if found is not None and not isinstance(found, Tensor):
        raise ValueError(f"input {place} is no tensor")
    return found
