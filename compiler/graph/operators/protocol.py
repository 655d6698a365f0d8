"""Protocol of the graph IR's operators."""

from collections.abc import Sequence
from dataclasses import Field
from enum import Enum
from typing import Any, ClassVar, Protocol, runtime_checkable

from numpy.typing import NDArray

from ...errors import GraphError
from ..types import TensorType

__all__ = [
    "Array",
    "Elementwise",
    "Fusion",
    "Movement",
    "Opaque",
    "TensorOperator",
    "require",
    "require_inputs",
]

Array = NDArray[Any]


class Fusion(Enum):
    """How an operator takes part in a group of nodes that becomes one loop nest."""

    ELEMENTWISE = "elementwise"
    """Result element ``i`` is a function of the operands' elements ``i``, broadcast."""
    MOVEMENT = "movement"
    """Each result element is a function of a few elements of the operands, anywhere."""
    REDUCTION = "reduction"
    """A loop nest that reads each element of its operands about once."""
    CONTRACTION = "contraction"
    """A loop nest that reads elements again and again: its operands are computed before."""
    OPAQUE = "opaque"
    """A loop nest that nothing is fused with."""


@runtime_checkable
class TensorOperator(Protocol):
    """A frozen dataclass whose fields are its attributes: numbers, strings, enums, tuples of them;
    or a graph.

    An enum's field takes its value too, as the parser of graphs gives it.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    fusion: ClassVar[Fusion]

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """The types of the results.

        Raises GraphError when the inputs do not fit the operator.
        """

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """The results, of exactly the types that ``result`` gives: the operator's meaning."""


class Elementwise:
    """An operator on each element."""

    __slots__ = ()
    fusion: ClassVar[Fusion] = Fusion.ELEMENTWISE


class Movement:
    """An operator that moves elements."""

    __slots__ = ()
    fusion: ClassVar[Fusion] = Fusion.MOVEMENT


class Opaque:
    """An operator that nothing is fused with."""

    __slots__ = ()
    fusion: ClassVar[Fusion] = Fusion.OPAQUE


def require(operator: object, holds: bool, found: object, required: str) -> None:
    """Raise GraphError, naming the operator, unless ``holds``."""
    if not holds:
        raise GraphError(f"{type(operator).__name__}: found {found}, required {required}")


def require_inputs(
    operator: object, inputs: tuple[TensorType, ...], count: int
) -> tuple[TensorType, ...]:
    """The inputs.  Raises GraphError, naming the operator, unless there are ``count``."""
    require(operator, len(inputs) == count, f"{len(inputs)} inputs", str(count))
    return inputs
