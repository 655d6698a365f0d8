"""How each operator of the graph becomes loops."""

from collections.abc import Mapping
from typing import Any

from .contractions import CONTRACTIONS
from .convolutions import CONVOLUTIONS
from .determinants import DETERMINANTS
from .elementwise import ELEMENTWISE
from .indexing import INDEXING, INDEXING_ANCHORS
from .movement import MOVEMENT
from .operand import Anchor, Element
from .recurrent import RECURRENT
from .reductions import REDUCTIONS
from .rows import ROWS
from .selection import SELECTION
from .sorting import SORTING
from .windows import WINDOWS
from .winograd import WINOGRAD

__all__ = ["ANCHORS", "ELEMENTS"]

ELEMENTS: Mapping[type[Any], Element] = {**ELEMENTWISE, **INDEXING, **MOVEMENT}
"""Operators whose result elements are expressions."""

ANCHORS: Mapping[type[Any], Anchor] = {
    **CONTRACTIONS,
    **CONVOLUTIONS,
    **DETERMINANTS,
    **INDEXING_ANCHORS,
    **RECURRENT,
    **REDUCTIONS,
    **ROWS,
    **SELECTION,
    **SORTING,
    **WINDOWS,
    **WINOGRAD,
}
"""Operators with loops of their own."""
