"""The graph that a model becomes, and the limits of making it."""

from dataclasses import dataclass, field

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
    variables: values that assignments left, by the variables' names.
    depth: of calls of subgraphs.
    """

    file: ModelFile = field(default_factory=lambda: ModelFile((), (), 0))
    budget: Budget = field(default_factory=Budget)
    signed: dict[str, Tensor] = field(default_factory=dict)
    variables: dict[str, Term] = field(default_factory=dict)
    outer: "ImportContext | None" = None
    captured: dict[str, tuple[Tensor, Tensor]] = field(default_factory=dict)
    """Tensors around a body that it reads: there, and as inputs of the body; by the outer name."""
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

    def capture(self, term: Term) -> Term:
        """A tensor from around a body: known ones become constants, others inputs."""
        assert self.outer is not None
        outer = term.tensor
        if outer.name not in self.captured:
            if self.outer.known(outer):
                inner = self.constant(self.outer.value(outer))
            else:
                name = self.builder.input(f"captured{len(self.captured)}", outer.type)
                inner = Tensor(name, outer.type)
            self.captured[outer.name] = outer, inner
        return Term(self, self.captured[outer.name][1])
