"""Context of a converter for an operator of torch."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...dtypes import DType
from ...errors import ModelError, UnsupportedOperatorError
from ...graph.emitter import Tensor
from ...graph.formulas import Term
from ...graph.ir import Array
from ...graph.operators.protocol import TensorOperator
from ...graph.operators.quantization import DequantizeLinear
from ..emitter import LimitedEmitter

__all__ = ["Context", "Converter", "Number", "Value"]

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
class Context(LimitedEmitter):
    """The graph so far, and the node that is being converted.

    What is known is computed at once.  Constants that are dequantised stay nodes of the graph:
    passes tell integer layers by them.
    declared: the element types of the node's results in the file; None of those that are not
    tensors.
    """

    declared: tuple[DType | None, ...] = ()

    @property
    def dtype(self) -> DType:
        """The element type of the node's first result, as declared."""
        found = next(filter(None, self.declared), None)
        if found is None:
            raise ModelError(f"{self.where}: required a result that is a tensor")
        return found

    def emit_many(self, operator: TensorOperator, *inputs: Tensor) -> tuple[Tensor, ...]:
        """As ``LimitedEmitter``."""
        if isinstance(operator, DequantizeLinear):
            return self.added(operator, tuple(each.name for each in inputs))
        return LimitedEmitter.emit_many(self, operator, *inputs)

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
