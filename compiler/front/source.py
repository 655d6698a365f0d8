"""Models as front ends hand them to the rest of the compiler."""

from collections.abc import Mapping
from dataclasses import field
from math import isfinite
from typing import Protocol, runtime_checkable

from dovetail.isa.frozen import frozen

from ..errors import CompilerError, ModelError
from ..graph.ir import Graph

__all__ = ["Imported", "InputSignature", "NeedsValueError", "Normalization", "Normalized", "Source"]


class NeedsValueError(CompilerError):
    """A shape depends on data that is not known when the model is compiled.

    output: the first output of the model's node whose shape that is.
    """

    output: str = ""


@frozen(eq=False)
class Imported:
    """A model as a graph; ``kinds``: the model's operators, by the names of its nodes.

    rest: what reads the graph's outputs and has no graph, as its shapes depend on data.
    outputs: the model's, of both.  late: ``kinds`` of the rest.
    """

    graph: Graph
    kinds: Mapping[str, str]
    rest: "Source | None" = None
    outputs: tuple[str, ...] = ()
    late: Mapping[str, str] = field(default_factory=dict)


@frozen
class InputSignature:
    """shape: None for sizes that are open.  dtype: NumPy's name."""

    name: str
    shape: tuple[int | None, ...]
    dtype: str


@runtime_checkable
class Source(Protocol):
    """A model that a front end has read; satisfied structurally."""

    @property
    def quantizes(self) -> bool:
        """True if it quantises anything, or computes on quantised tensors."""
        ...

    def open_sizes(self) -> tuple[InputSignature, ...]:
        """The inputs whose shape is not fixed."""
        ...

    def bind(self, dims: Mapping[str, int]) -> "Source":
        """The model with symbolic dimensions fixed.

        Raises ModelError for a dimension that it does not have.
        """
        ...

    def to_graph(self, batch: int | None = None) -> Imported:
        """The graph of the model.

        batch: the size of an open first dimension of inputs.
        Raises ModelError for open sizes and a malformed model, UnsupportedOperatorError for what
        the graph IR cannot say, NeedsValueError when a shape depends on data.
        """
        ...

    def to_graph_and_rest(self, batch: int | None = None) -> Imported:
        """As ``to_graph``, of all but the nodes whose shapes depend on data and those after."""
        ...


@frozen
class Normalization:
    """How pictures are prepared: ``(pixel - mean) / std``, pixels from 0 to 255.

    mean, std: one value, or one a channel.  Raises ModelError for other numbers.
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]

    def __post_init__(self) -> None:
        finite = all(map(isfinite, (*self.mean, *self.std)))
        if not (self.mean and self.std and finite and all(self.std)):
            raise ModelError(
                f"the model's metadata take {self.mean} off pixels and divide by {self.std}; "
                "required finite numbers, none of them to divide by 0"
            )


@runtime_checkable
class Normalized(Protocol):
    """A model whose file may say how its pictures are prepared."""

    @property
    def normalization(self) -> Normalization | None:
        """Metadata of the first input; None without any.

        Raises ModelError when that is damaged.
        """
        ...
