"""Attributes of nodes."""

from typing import Any

import onnx
from onnx import helper

__all__ = ["attribute_of", "has_graphs"]


def attribute_of(node: onnx.NodeProto, name: str, default: object) -> Any:
    """The value of an attribute."""
    for each in node.attribute:
        if each.name == name:
            return helper.get_attribute_value(each)
    return default


def has_graphs(node: onnx.NodeProto) -> bool:
    """True if a node has graphs within it, as Loop has."""
    return any(each.HasField("g") or each.graphs for each in node.attribute)
