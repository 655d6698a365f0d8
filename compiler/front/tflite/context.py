"""The graph that a model becomes, and the limits of making it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...graph.emitter import Tensor
from ...graph.formulas import Term
from ...graph.ir import Array
from ..emitter import LimitedEmitter
from ..source import NeedsValueError
from .schema import ModelFile

__all__ = ["ImportContext"]


@dataclass(slots=True)
class ImportContext(LimitedEmitter):
    """The graph so far, and the model's node that is being converted.

    signed: tensors of uint8 as int8, 128 less, by their names, where integer layers made them so.
    variables: values that assignments left, by numbers, which the variables' names have.
    converters: by the operators' names; control flow, which is in it, converts subgraphs by it.
    depth: of calls of subgraphs.
    """

    file: ModelFile = field(default_factory=lambda: ModelFile((), (), 0))
    signed: dict[str, Tensor] = field(default_factory=dict)
    variables: dict[int, Term] = field(default_factory=dict)
    variable_numbers: dict[str, int] = field(default_factory=dict)
    converters: Mapping[str, Any] = field(default_factory=dict)
    depth: int = 0

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
