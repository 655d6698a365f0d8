"""How each operator of the graph becomes loops."""

from collections.abc import Mapping
from typing import Any

from ..graph.operators.protocol import TensorOperator
from .attention import ATTENTION
from .contractions import CONTRACTIONS
from .convolutions import CONVOLUTIONS
from .definition import Kind
from .determinants import DETERMINANTS
from .elementwise import ELEMENTWISE
from .indexing import INDEXING, INDEXING_ANCHORS
from .movement import MOVEMENT
from .operand import Anchor, Element
from .recurrent import RECURRENT
from .reductions import ORDERED, REDUCTIONS
from .rows import ROWS
from .selection import SELECTION
from .sorting import SORTING
from .windows import WINDOWS
from .winograd import WINOGRAD

__all__ = ["ANCHORS", "ELEMENTS", "FAMILIES", "element_of"]

ELEMENTS: Mapping[type[Any], Element] = {**ELEMENTWISE, **INDEXING, **MOVEMENT}
"""Operators whose result elements are expressions."""

FAMILIES: Mapping[Kind, Mapping[type[Any], Anchor]] = {
    Kind.ATTENTION: ATTENTION,
    Kind.CONTRACTION: {**CONTRACTIONS, **REDUCTIONS},
    Kind.CONVOLUTION: CONVOLUTIONS,
    Kind.INDEXING: INDEXING_ANCHORS,
    Kind.ORDERED: {**DETERMINANTS, **ORDERED, **SELECTION},
    Kind.RECURRENT: RECURRENT,
    Kind.ROWS: ROWS,
    Kind.SORTING: SORTING,
    Kind.WINDOWS: WINDOWS,
    Kind.WINOGRAD: WINOGRAD,
}
"""Operators with loops of their own."""

ANCHORS: Mapping[type[Any], tuple[Kind, Anchor]] = {
    operator: (kind, anchor)
    for kind, family in FAMILIES.items()
    for operator, anchor in family.items()
}


def element_of(operator: TensorOperator) -> Element | None:
    """Formula of an operator's elements; None where it has loops of its own, or no definition.

    An operator from outside this package says it by a method ``element(operands, indices)``.
    """
    return ELEMENTS.get(type(operator)) or getattr(type(operator), "element", None)
