"""Keys of groups of nodes and convolutions in records: by what they compute, not by name.

Equal keys mean equal operators on tensors of equal types, connected alike: a record that was made
in one model is found again in others.
"""

import hashlib
from collections.abc import Sequence

from .ir import Graph, Node
from .operators.contractions import Convolution

__all__ = ["convolution_key", "group_key", "group_text"]

KEY_DIGITS = 32


def group_text(graph: Graph, nodes: Sequence[Node]) -> str:
    """The nodes of a group, one a line; tensors are numbered in the order they appear."""
    names: dict[str, str] = {}
    lines = []

    def operand(name: str) -> str:
        if name not in names:
            array = graph.constants.get(name)
            scalar = array is not None and array.size == 1
            names[name] = f"%{len(names)}: {'scalar ' if scalar else ''}{graph.types[name]}"
            return names[name]
        return names[name].split(":")[0]

    for node in nodes:
        given = ", ".join(map(operand, node.inputs))
        made = ", ".join(map(operand, node.outputs))
        lines.append(f"{made} = {node.operator!r}({given})")
    return "\n".join(lines)


def group_key(graph: Graph, nodes: Sequence[Node]) -> str:
    """The same for groups of the same text."""
    text = group_text(graph, nodes)
    return hashlib.sha256(text.encode()).hexdigest()[:KEY_DIGITS]


def convolution_key(operator: Convolution, x: tuple[int, ...], weights: tuple[int, ...]) -> str:
    """The same for convolutions of the same shapes, strides and pads."""
    parts = (
        f"{operator.dtype}{list(x)} by {list(weights)}",
        f"strides {list(operator.strides)}",
        f"dilations {list(operator.dilations)}",
        f"pads {[list(pair) for pair in operator.pads]}",
        f"expansions {list(operator.expansions)}",
        f"groups {operator.groups}",
    )
    return ", ".join(parts)
