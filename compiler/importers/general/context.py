"""What a converter of an ONNX operator works with: tensors, and the graph it adds operators to."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx

from ...errors import CompilerError
from ...graph.ir import Array, GraphBuilder
from ...graph.operators.protocol import TensorOperator
from ...graph.types import TensorType
from ..onnx_state import OnnxNode

__all__ = [
    "Body",
    "Converter",
    "ImportContext",
    "NeedsValueError",
    "OptionalValue",
    "Tensor",
    "TensorSequence",
    "Value",
    "optional",
    "required",
]

FOLDED_ELEMENTS = 1 << 16
"""A constant result of more elements is only kept when it is no larger than what it is made of."""


class NeedsValueError(CompilerError):
    """A shape depends on data that is not known when the model is compiled."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor of the graph; its type is fixed."""

    name: str
    type: TensorType


@dataclass(frozen=True, slots=True)
class TensorSequence:
    """ONNX's sequence: a list of fixed length, by the time a model is imported."""

    elements: tuple["Value", ...]


@dataclass(frozen=True, slots=True)
class OptionalValue:
    """ONNX's optional: a value, or None."""

    value: "Value | None"


Value = Tensor | TensorSequence | OptionalValue

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
    _constants: dict[tuple[object, ...], Tensor] = field(default_factory=dict)
    _resolved: dict[str, Tensor] = field(default_factory=dict)

    def emit(self, operator: TensorOperator, *inputs: Tensor) -> Tensor:
        """Add an operator with one result; it is computed at once when all inputs are known.

        Raises GraphError when the inputs do not fit the operator.
        """
        return self.emit_many(operator, *inputs)[0]

    def emit_many(self, operator: TensorOperator, *inputs: Tensor) -> tuple[Tensor, ...]:
        """As ``emit``, for operators with any number of results."""
        if all(self.known(each) for each in inputs):
            results = operator.result(tuple(each.type for each in inputs))
            given = sum(each.type.elements for each in inputs)
            if all(kind.elements <= max(FOLDED_ELEMENTS, given) for kind in results):
                arrays = operator.evaluate([self.value(each) for each in inputs])
                return tuple(self.constant(array) for array in arrays)
        used = tuple(self._resolved.get(each.name, each).name for each in inputs)
        names = self.builder.node_outputs(operator, used, self.origin, self.origin)
        return tuple(Tensor(name, self.builder.types[name]) for name in names)

    def constant(self, array: object, dtype: object = None) -> Tensor:
        """A constant; small ones that are equal are one tensor."""
        value: Array = np.asarray(array, dtype)  # type: ignore[call-overload]
        key = (value.shape, str(value.dtype), value.tobytes()) if value.size <= 64 else None
        if key in self._constants:
            return self._constants[key]
        name = self.builder.constant("constant", value)
        tensor = Tensor(name, self.builder.types[name])
        if key is not None:
            self._constants[key] = tensor
        return tensor

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
