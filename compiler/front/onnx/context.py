"""Context of a converter for an ONNX operator: tensors, and the graph it adds operators to."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx

from dovetail.isa.frozen import frozen

from ...errors import UnsupportedOperatorError
from ...graph.emitter import Tensor
from ...graph.ir import Array
from ...graph.narrow import Narrow
from ...graph.operators.elementwise import Where
from ...graph.operators.movement import Expand
from ...graph.operators.protocol import Fusion, TensorOperator
from ...graph.operators.quantization import DequantizeLinear
from ..emitter import LimitedEmitter
from ..source import NeedsValueError
from .node import OnnxNode

__all__ = [
    "Body",
    "Converter",
    "ImportContext",
    "Narrow",
    "OptionalValue",
    "Tensor",
    "TensorSequence",
    "Value",
    "narrow_of",
    "optional",
    "required",
    "with_narrow",
]

NARROW = {str(each): each for each in Narrow}


def with_narrow(tensor: Tensor, narrow: Narrow | None) -> Tensor:
    """The tensor's bits with another meaning."""
    return Tensor(tensor.name, tensor.type, narrow)


def narrow_of(array: Array) -> Narrow | None:
    """Meaning of an array's elements, if it is not that of their bits."""
    return NARROW.get(str(array.dtype))


@frozen
class TensorSequence:
    """ONNX's sequence: a list of fixed length, by the time a model is imported."""

    elements: tuple["Value", ...]


@frozen
class OptionalValue:
    """ONNX's optional: a value, or None."""

    value: "Value | None"


Value = Tensor | TensorSequence | OptionalValue

Nested = Callable[["ImportContext", onnx.GraphProto, tuple[Value, ...]], tuple[Value, ...]]
"""Adds a body to the graph of another context, whose outer one is this."""

Body = Callable[[onnx.GraphProto, tuple[Value, ...]], tuple[Value, ...]]
"""Adds a body (of If, Loop, ...) to the graph; it sees the tensors around it."""


@dataclass(slots=True)
class ImportContext(LimitedEmitter):
    """The graph so far, and the node that is being converted.

    Constants that are dequantised stay nodes of the graph, and so does what is computed of them
    alone: passes tell integer layers by them.  Their values are known nevertheless.

    opset: of the node's domain.
    resolve: computes a tensor's value, given its name; None when a model is compiled without data.
    """

    resolve: Callable[[str], Array] | None = None
    opset: int = 0
    body: Body | None = None
    nested: "Nested | None" = None
    outer: "ImportContext | None" = None
    """Context around the loop whose body becomes a graph of its own."""
    captured: dict[str, tuple[Tensor, Tensor]] = field(default_factory=dict)
    """Tensors around a body that it reads: there, and as inputs of the body; by the outer name."""
    _resolved: dict[str, Tensor] = field(default_factory=dict)
    _computed: dict[str, tuple[TensorOperator, tuple[Tensor, ...], int]] = field(
        default_factory=dict
    )
    """Nodes of dequantised constants by their results: operator, operands, number of the result."""
    _values: dict[str, Array] = field(default_factory=dict)
    """Values of the results of those nodes that were asked for."""

    def emit_many(self, operator: TensorOperator, *inputs: Tensor) -> tuple[Tensor, ...]:
        """As ``emit``, for operators with any number of results."""
        return self._emit(operator, inputs, _carried(operator, inputs), True)

    def emit_plain(
        self, operator: TensorOperator, inputs: Sequence[Tensor], fold: bool
    ) -> tuple[Tensor, ...]:
        """As ``emit_many``; the results' bits mean numbers.  fold: compute what is known now."""
        return self._emit(operator, inputs, None, fold)

    def _emit(
        self, operator: TensorOperator, inputs: Sequence[Tensor], narrow: Narrow | None, fold: bool
    ) -> tuple[Tensor, ...]:
        known = fold and self.folds(operator, inputs)
        stays = isinstance(operator, DequantizeLinear) or any(
            each.name in self._computed for each in inputs
        )
        if known and not stays:
            arrays = self.computed(operator, [self.value(each) for each in inputs])
            return tuple(with_narrow(self.constant(array), narrow) for array in arrays)
        used = tuple(self._resolved.get(each.name, each).name for each in inputs)
        made = self.added(operator, used)
        if known:
            for number, each in enumerate(made):
                self._computed[each.name] = operator, tuple(inputs), number
        return tuple(with_narrow(each, narrow) for each in made)

    def constant(self, array: object, dtype: object = None) -> Tensor:
        """As ``LimitedEmitter``; elements with another meaning are bytes."""
        value: Array = np.asarray(array, dtype)  # type: ignore[call-overload]
        narrow = narrow_of(value)
        given = value if narrow is None else value.view(np.uint8)
        return with_narrow(LimitedEmitter.constant(self, given), narrow)

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
        """True if the tensor's value is a constant."""
        name = tensor.name
        return name in self.builder.constants or name in self._resolved or name in self._computed

    def value(self, tensor: Tensor) -> Array:
        """The tensor's value, read-only; the graph is specialised to it.

        Raises NeedsValueError when it depends on data that is not there.
        """
        if tensor.name in self._computed:
            return self._computed_value(tensor.name)
        if not self.known(tensor):
            if self.resolve is None:
                raise NeedsValueError(
                    f"{self.where}: a shape depends on the value of {tensor.name!r}, "
                    "which is known only when the model runs"
                )
            self._resolved[tensor.name] = self.constant(self.resolve(tensor.name))
        return self.builder.constants[self._resolved.get(tensor.name, tensor).name]

    def _computed_value(self, name: str) -> Array:
        if name not in self._values:
            operator, inputs, number = self._computed[name]
            value = self.computed(operator, [self.value(each) for each in inputs])[number]
            self.budget.make(self.where, value.size)
            value.setflags(write=False)
            self._values[name] = value
        return self._values[name]


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

    Raises ValueError when it is not a tensor.
    """
    found = inputs[place] if len(inputs) > place else None
    if found is not None and not isinstance(found, Tensor):
        raise ValueError(f"input {place} is not a tensor")
    return found
