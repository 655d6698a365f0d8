"""Tensors that follow each other in DRAM: what the host gives, then what a program adds."""

from types import UnionType

from ...graph.ir import Graph, Node
from ...graph.operators.assembly import Append, Assemble
from ...graph.operators.integer.products import RowProducts

__all__ = ["COLUMNS", "append_problem", "first_word"]

COLUMNS = 2
"""The dimension of an image's columns."""


def append_problem(
    graph: Graph, node: Node, lanes: int, layers: tuple[type | UnionType, ...]
) -> str | None:
    """Why a program cannot append the second of these images to the first; None if it can.

    Both are in DRAM: the host puts the first one there, and layers read the whole as weights.
    lanes: of a block.  layers: operators that layers are made of.
    """
    operator, where = node.operator, f"node {node.origin!r}"
    assert isinstance(operator, Append)
    first, whole = (graph.types[name].shape for name in (node.inputs[0], node.output))
    maker = graph.producer(node.inputs[0])
    if maker is not None and isinstance(maker.operator, (*layers, Append, Assemble)):
        return f"{where}: adds to {node.inputs[0]!r}, which layers make; required what is given"
    if len(graph.consumers(node.inputs[0])) > 1 or node.inputs[0] in node.inputs[1:]:
        return (
            f"{where}: adds to {node.inputs[0]!r}, which others read; required that it alone does"
        )
    if node.output in graph.outputs:
        return f"{where}: its result is read elsewhere; required that its neighbours do"
    for reader in graph.consumers(node.output):
        if not isinstance(reader.operator, RowProducts) or node.output in reader.inputs[:1]:
            return f"{where}: {type(reader.operator).__name__} reads it; required weights"
    rows, channels = (-(-size // lanes) for size in (whole[2], whole[3]))
    room = (1, 1, rows * lanes, whole[3]) if operator.axis == COLUMNS else (*whole[:3], first[3])
    fits = operator.start % lanes == 0 or operator.axis == COLUMNS
    if lanes > 1 and (
        whole[1] != 1 or first != room or -(-first[3] // lanes) != channels or not fits
    ):
        return f"{where}: adds to {list(first)} at {operator.start}; required whole blocks of room"
    return None


def first_word(operator: Append, lanes: int, plane: int) -> int:
    """Words in DRAM from the first of the whole to the first that is added.

    plane: words from one channel block to the next.
    """
    start = operator.start
    return start if operator.axis == COLUMNS else start // lanes * plane
