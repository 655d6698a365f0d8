"""Weights of bytes beside activations of floats."""

from ...graph.formulas import Term
from .node import Node

__all__ = ["dequantised_weights"]


def dequantised_weights(node: Node, place: int) -> Term:
    """Weights of the activations' type."""
    x, weights = node.term(0), node.term(place)
    if weights.dtype != x.dtype:
        raise node.unsupported(f"{x.dtype} with weights of {weights.dtype}")
    return weights
