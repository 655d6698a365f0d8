"""Operators whose loops are written as they are scheduled, until they have a definition."""

from collections.abc import Mapping
from typing import Any

from .scope import Anchor

__all__ = ["ANCHORS"]

ANCHORS: Mapping[type[Any], Anchor] = {}
"""Operators with loops of their own."""
