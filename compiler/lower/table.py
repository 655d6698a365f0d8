"""How each operator of the graph becomes loops."""

from collections.abc import Mapping
from typing import Any

from .elementwise import ELEMENTWISE
from .movement import MOVEMENT
from .operand import Anchor, Element

__all__ = ["ANCHORS", "ELEMENTS"]

ELEMENTS: Mapping[type[Any], Element] = {**ELEMENTWISE, **MOVEMENT}
"""Operators whose result elements are expressions."""

ANCHORS: Mapping[type[Any], Anchor] = {}
"""Operators with loops of their own."""
