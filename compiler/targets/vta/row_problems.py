"""Why the accelerator does not compute a softmax of rows, or normalise them."""

from collections.abc import Mapping, Sequence

import numpy as np

from ...graph.ir import Graph, Node
from ...graph.operators.integer.products import RowProducts
from ...graph.operators.integer.values import Lookup, Requantize
from ...graph.operators.movement import Reshape

__all__ = ["norm_problem", "softmax_problem"]


def softmax_problem(
    graph: Graph,
    node: Node,
    makers: Mapping[str, Node],
    readers: Mapping[str, Sequence[Node]],
    lanes: int,
    row_words: int,
) -> str | None:
    """Why not; None if it does.

    lanes: of a block.  row_words: of PAR, 0 in a configuration without row_parameters.
    """
    where, x = f"node {node.origin!r}", node.inputs[0]
    if not row_words:
        return f"{where}: the configuration has no row_parameters, which softmax needs"
    if len(readers[x]) > 1 or x in graph.outputs or x in graph.constants:
        return f"{where}: {x!r} is read elsewhere too; required a tensor for softmax alone"
    channels = graph.types[x].shape[-1]
    if channels % lanes and not _ends_low(graph, makers.get(x), makers):
        return (
            f"{where}: rows of {channels} elements; required a multiple of {lanes}, or a product "
            "of two tensors: what lies beyond the last in its block is not known"
        )
    return None


def norm_problem(graph: Graph, node: Node, lanes: int, row_words: int) -> str | None:
    """As ``softmax_problem``."""
    where, channels = f"node {node.origin!r}", graph.types[node.inputs[0]].shape[-1]
    if not row_words:
        return f"{where}: the configuration has no row_parameters, which normalisations need"
    if channels % lanes:
        return (
            f"{where}: rows of {channels} elements; required a multiple of {lanes}: what lies "
            "beyond the last in its block is not known"
        )
    blocks = channels // lanes
    if blocks >= row_words // 2:
        return (
            f"{where}: par scratchpad: {blocks} words required for scales and biases of channels, "
            f"{row_words // 2 - 1} available; use a configuration with a deeper PAR"
        )
    return None


def _ends_low(graph: Graph, maker: Node | None, makers: Mapping[str, Node]) -> bool:
    """Whether lanes without a channel can be made the least of all."""
    while maker is not None and isinstance(maker.operator, Lookup | Requantize | Reshape):
        if isinstance(maker.operator, Lookup):
            table = graph.constants[maker.inputs[1]].reshape(-1, 256)
            if (np.diff(table.astype(np.int16), axis=1) < 0).any():
                return False
        maker = makers.get(maker.inputs[0])
    return maker is not None and isinstance(maker.operator, RowProducts)
