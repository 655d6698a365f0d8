"""Operators whose loops are written as they are scheduled, until they have a definition."""

from collections.abc import Mapping
from typing import Any

from .contractions import CONTRACTIONS
from .determinants import DETERMINANTS
from .recurrent import RECURRENT
from .reductions import REDUCTIONS
from .rows import ROWS
from .scope import Anchor
from .selection import SELECTION
from .sorting import SORTING
from .windows import WINDOWS
from .winograd import WINOGRAD

__all__ = ["ANCHORS"]

ANCHORS: Mapping[type[Any], Anchor] = {
    **CONTRACTIONS,
    **DETERMINANTS,
    **RECURRENT,
    **REDUCTIONS,
    **ROWS,
    **SELECTION,
    **SORTING,
    **WINDOWS,
    **WINOGRAD,
}
"""Operators with loops of their own."""
