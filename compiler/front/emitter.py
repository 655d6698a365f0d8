"""Adding operators to the graph of a model, within the limits of an import."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..errors import ModelError
from ..graph.emitter import Emitter, Tensor
from ..graph.folding import evaluation_work, is_worth_folding
from ..graph.ir import Array
from ..graph.operators.protocol import TensorOperator
from ..graph.types import TensorType
from ..pipeline.limits import Budget

__all__ = ["LimitedEmitter"]

LARGEST_TENSOR = 64 << 30
"""Bytes."""


@dataclass(slots=True)
class LimitedEmitter(Emitter):
    """As ``Emitter``; origin: the model's node, for error messages and the graph's nodes.

    budget: what the import may take, of all graphs of a model together.
    """

    budget: Budget = field(default_factory=Budget)

    @property
    def where(self) -> str:
        """The node that is being converted, for messages."""
        return f"node {self.origin!r}" if self.origin else "constants of the model"

    def emit_many(self, operator: TensorOperator, *inputs: Tensor) -> tuple[Tensor, ...]:
        """As ``Emitter``.

        Raises CompileLimitError for too much work, ModelError for tensors that are too large.
        """
        if self.folds(operator, inputs):
            arrays = self.computed(operator, [self.value(each) for each in inputs])
            return tuple(map(self.constant, arrays))
        return self.added(operator, tuple(each.name for each in inputs))

    def folds(self, operator: TensorOperator, inputs: Sequence[Tensor]) -> bool:
        """True if the results are known, and worth computing now."""
        given = [each.type for each in inputs]
        known = all(map(self.known, inputs))
        return known and is_worth_folding(operator, operator.result(tuple(given)), given)

    def computed(self, operator: TensorOperator, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """The operator's results, taken from the budget.

        Raises CompileLimitError when it takes too much.
        """
        given = [TensorType(each.shape, str(each.dtype)) for each in inputs]
        results = operator.result(tuple(given))
        self.budget.require_room(self.where, sum(each.elements for each in results))
        self.budget.compute(self.where, evaluation_work(operator, results, given))
        return operator.evaluate(inputs)

    def added(self, operator: TensorOperator, inputs: tuple[str, ...]) -> tuple[Tensor, ...]:
        """The results of a new node.  Raises as ``emit_many``."""
        self.budget.add(self.where)
        names = self.builder.node_outputs(operator, inputs, self.origin, self.origin)
        made = tuple(map(self.tensor, names))
        for each in made:
            if each.type.elements * each.type.dtype.bytes > LARGEST_TENSOR:
                raise ModelError(f"{self.where}: a tensor of {each.type}; required at most 64 GiB")
        return made

    def constant(self, array: object, dtype: object = None) -> Tensor:
        """A constant; small ones that are equal are one tensor.

        Raises CompileLimitError when all of the model's together are too large.
        """
        value: Array = np.asarray(array, dtype)  # type: ignore[call-overload]
        self.budget.make(self.where, value.size)
        return Emitter.constant(self, value)

    def require_room(self, *sizes: int) -> None:
        """Raise CompileLimitError unless a constant of ``sizes`` may be made."""
        self.budget.require_room(self.where, *sizes)
