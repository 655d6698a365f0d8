"""The graph that a model becomes, and the limits of making it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...errors import ModelError
from ...graph.emitter import Emitter, Tensor
from ...graph.folding import evaluation_work, is_worth_folding
from ...graph.formulas import Term
from ...graph.ir import Array
from ...graph.operators.protocol import TensorOperator
from ...pipeline.limits import Budget
from ..source import NeedsValueError
from .schema import ModelFile

__all__ = ["ImportContext"]

LARGEST_TENSOR = 64 << 30
"""Bytes."""


@dataclass(slots=True)
class ImportContext(Emitter):
    """The graph so far, and the model's node that is being converted.

    signed: tensors of uint8 as int8, 128 less, by their names, where integer layers gave them so.
    variables: values that assignments left, by numbers, which the variables' names have.
    converters: by the operators' names; control flow, which is in it, converts subgraphs by it.
    depth: of calls of subgraphs.
    """

    file: ModelFile = field(default_factory=lambda: ModelFile((), (), 0))
    budget: Budget = field(default_factory=Budget)
    signed: dict[str, Tensor] = field(default_factory=dict)
    variables: dict[int, Term] = field(default_factory=dict)
    variable_numbers: dict[str, int] = field(default_factory=dict)
    converters: Mapping[str, Any] = field(default_factory=dict)
    depth: int = 0

    @property
    def where(self) -> str:
        """The node that is being converted, for messages."""
        return f"node {self.origin!r}" if self.origin else "constants of the model"

    def emit_many(self, operator: TensorOperator, *inputs: Tensor) -> tuple[Tensor, ...]:
        """As ``Emitter``, within the limits.

        Raises CompileLimitError for too much work, ModelError for tensors that are too large.
        """
        given = [each.type for each in inputs]
        results = operator.result(tuple(given))
        for kind in results:
            if kind.elements * kind.dtype.bytes > LARGEST_TENSOR:
                raise ModelError(f"{self.where}: a tensor of {kind}; required at most 64 GiB")
        if all(map(self.known, inputs)) and is_worth_folding(operator, results, given):
            self.budget.require_room(self.where, sum(each.elements for each in results))
            self.budget.compute(self.where, evaluation_work(operator, results, given))
            arrays = operator.evaluate([self.value(each) for each in inputs])
            return tuple(map(self.constant, arrays))
        self.budget.add(self.where)
        names = tuple(each.name for each in inputs)
        made = self.builder.node_outputs(operator, names, self.origin, self.origin)
        return tuple(map(self.tensor, made))

    def constant(self, array: object, dtype: object = None) -> Tensor:
        """A constant.  Raises CompileLimitError when all together are too large."""
        tensor = Emitter.constant(self, array, dtype)
        self.budget.make(self.where, tensor.type.elements)
        return tensor

    def value(self, tensor: Tensor) -> Array:
        """The value of a known tensor.

        Raises NeedsValueError for one that depends on data.
        """
        if not self.known(tensor):
            raise NeedsValueError(
                f"{self.where}: a shape depends on the value of {tensor.name!r}, which is known "
                "only when the model runs"
            )
        return self.builder.constants[tensor.name]

    def require_room(self, *sizes: int) -> None:
        """Raise CompileLimitError unless a constant of ``sizes`` may be made."""
        self.budget.require_room(self.where, *sizes)
