"""Converters of what moves elements."""

from ...graph.formulas import Term
from .node import Converter, Node

__all__ = ["MOVEMENT"]


def convert_reshape(node: Node) -> Term:
    """Another shape; one size may be -1."""
    shape = node.integers(1) if node.optional(1) is not None else node.attribute("new_shape", ())
    return node.term(0).reshape(*shape)


MOVEMENT: dict[str, Converter] = {"RESHAPE": convert_reshape}
