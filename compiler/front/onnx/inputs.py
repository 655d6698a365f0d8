"""Inputs of a model's node as terms of formulas."""

from ...errors import ModelError
from ...graph.emitter import Tensor
from ...graph.formulas import Term
from .context import ImportContext
from .node import OnnxNode

__all__ = ["Inputs", "optional_term", "term"]

Inputs = tuple[Tensor | None, ...]
"""The inputs of a node; None for those left out."""


def term(context: ImportContext, node: OnnxNode, inputs: Inputs, place: int) -> Term:
    """The input at ``place``.  Raises ModelError when it is left out."""
    found = inputs[place] if place < len(inputs) else None
    if found is None:
        raise ModelError(f"{node}: input {place} is left out; it is required")
    return Term(context, found)


def optional_term(context: ImportContext, inputs: Inputs, place: int) -> Term | None:
    """The input at ``place``, or None when it is left out."""
    found = inputs[place] if place < len(inputs) else None
    return None if found is None else Term(context, found)
