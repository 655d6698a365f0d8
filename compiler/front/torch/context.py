"""What a converter of an operator of torch works with."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...dtypes import DType
from ...errors import ModelError, UnsupportedOperatorError
from ...graph.emitter import Emitter, Tensor
from ...graph.folding import evaluation_work, is_worth_folding
from ...graph.formulas import Term
from ...graph.ir import Array
from ...graph.operators.protocol import TensorOperator
from ...graph.operators.quantization import DequantizeLinear
from ...pipeline.limits import Budget

__all__ = ["Context", "Converter", "Number", "Value"]

LARGEST_TENSOR = 64 << 30
"""Bytes."""

Number = int | float | bool
Value = Term | Number | str | DType | None | tuple[Any, ...]
"""An argument or a result; lists are tuples of values."""

Converter = Callable[..., Value]
"""Adds a call of an operator to the graph of its first argument, a ``Context``.

The others are the operator's own, by the names of its schema; ``self`` and ``input`` are ``x``,
``min`` is ``low``, ``max`` is ``high``.  Raises ValueError, TypeError, KeyError or IndexError for a
call of another form.
"""


@dataclass(slots=True)
class Context(Emitter):
    """The graph so far, and the node that is being converted.

    What is known is computed at once.  Constants that are dequantised stay nodes of the graph:
    passes tell integer layers by them.
    declared: the element types of the node's results in the file; None of those that are not
    tensors.
    """

    budget: Budget = field(default_factory=Budget)
    declared: tuple[DType | None, ...] = ()

    @property
    def where(self) -> str:
        """The node that is being converted, for messages."""
        return f"node {self.origin!r}" if self.origin else "constants of the model"

    @property
    def dtype(self) -> DType:
        """The element type of the node's first result, as declared."""
        found = next(filter(None, self.declared), None)
        if found is None:
            raise ModelError(f"{self.where}: required a result that is a tensor")
        return found

    def emit_many(self, operator: TensorOperator, *inputs: Tensor) -> tuple[Tensor, ...]:
        """As ``Emitter``, counted by the budget."""
        given = [each.type for each in inputs]
        stays = isinstance(operator, DequantizeLinear)
        if not stays and all(self.known(each) for each in inputs):
            results = operator.result(tuple(given))
            if is_worth_folding(operator, results, given):
                self.require_room(sum(each.elements for each in results))
                self.budget.compute(self.where, evaluation_work(operator, results, given))
                arrays = operator.evaluate([self.value(each) for each in inputs])
                return tuple(self.constant(array) for array in arrays)
        self.budget.add(self.where)
        names = tuple(each.name for each in inputs)
        outputs = self.builder.node_outputs(operator, names, self.origin, self.origin)
        found = tuple(self.tensor(name) for name in outputs)
        for each in found:
            if each.type.elements * each.type.dtype.bytes > LARGEST_TENSOR:
                raise ModelError(f"{self.where}: a tensor of {each.type}; required at most 64 GiB")
        return found

    def constant(self, array: object, dtype: object = None) -> Tensor:
        """As ``Emitter``, counted by the budget."""
        value: Array = np.asarray(array, dtype)  # type: ignore[call-overload]
        self.budget.make(self.where, value.size)
        return Emitter.constant(self, value)

    def require_room(self, *sizes: int) -> None:
        """Raise CompileLimitError unless a constant of ``sizes`` may be made."""
        self.budget.require_room(self.where, *sizes)

    def term(self, array: object, dtype: DType) -> Term:
        """A constant."""
        return Term(self, self.constant(np.asarray(array).astype(dtype.numpy)))

    def emitted(self, operator: TensorOperator, *inputs: Term) -> Term:
        """The first result of an operator."""
        return Term(self, self.emit_many(operator, *(each.tensor for each in inputs))[0])

    def known_value(self, x: Term) -> Array:
        """The elements of a tensor that a shape depends on.

        Raises UnsupportedOperatorError when they depend on data.
        """
        if not self.known(x.tensor):
            raise UnsupportedOperatorError(
                f"{self.where}: a shape or a number depends on the data of {x.tensor.name!r}; "
                "export the model with fixed shapes"
            )
        return self.value(x.tensor)
