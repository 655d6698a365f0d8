"""Adding operators to a graph one by one; what is known of them is computed at once."""

from dataclasses import dataclass, field

import numpy as np

from dovetail.isa.frozen import frozen

from .folding import is_worth_folding
from .ir import Array, GraphBuilder
from .narrow import Narrow
from .operators.protocol import TensorOperator
from .types import TensorType

__all__ = ["Emitter", "Tensor"]


@frozen
class Tensor:
    """A tensor of the graph; its type is fixed.

    narrow: what the bits of its uint8 elements mean to the model; None when they are numbers.
    """

    name: str
    type: TensorType
    narrow: Narrow | None = None


@dataclass(slots=True)
class Emitter:
    """The graph so far; ``origin`` is the model's node that the next operators belong to."""

    builder: GraphBuilder
    origin: str = ""
    _constants: dict[tuple[object, ...], Tensor] = field(default_factory=dict)

    def tensor(self, name: str) -> Tensor:
        """The tensor of that name."""
        return Tensor(name, self.builder.types[name])

    def emit(self, operator: TensorOperator, *inputs: Tensor) -> Tensor:
        """Add an operator with one result; it is computed at once when all inputs are known.

        Raises GraphError when the inputs do not fit the operator.
        """
        return self.emit_many(operator, *inputs)[0]

    def emit_many(self, operator: TensorOperator, *inputs: Tensor) -> tuple[Tensor, ...]:
        """As ``emit``, for operators with any number of results."""
        if all(self.known(each) for each in inputs):
            given = [each.type for each in inputs]
            if is_worth_folding(operator, operator.result(tuple(given)), given):
                arrays = operator.evaluate([self.value(each) for each in inputs])
                return tuple(self.constant(array) for array in arrays)
        names = tuple(each.name for each in inputs)
        return tuple(
            self.tensor(name)
            for name in self.builder.node_outputs(operator, names, self.origin, self.origin)
        )

    def constant(self, array: object, dtype: object = None) -> Tensor:
        """A constant; small ones that are equal are one tensor."""
        value: Array = np.asarray(array, dtype)  # type: ignore[call-overload]
        key = (value.shape, str(value.dtype), value.tobytes()) if value.size <= 64 else None
        if key in self._constants:
            return self._constants[key]
        tensor = self.tensor(self.builder.constant("constant", value))
        if key is not None:
            self._constants[key] = tensor
        return tensor

    def known(self, tensor: Tensor) -> bool:
        """True if the tensor's value is a constant."""
        return tensor.name in self.builder.constants

    def value(self, tensor: Tensor) -> Array:
        """The value of a known tensor, read-only."""
        return self.builder.constants[tensor.name]
