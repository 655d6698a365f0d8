"""What the accelerator runs of a graph of integer operators, and why not, node by node."""

from collections.abc import Sequence

from ...graph.ir import Graph, Node
from ...graph.operators.assembly import Assemble
from ...graph.operators.integer.conversions import Dequantize, Quantize, Shift128
from ...graph.operators.integer.products import Conv2d
from ...graph.operators.integer.values import Add, Lookup, Requantize, Softmax
from ...graph.operators.integer.windows import AveragePool2d, MaxPool2d, Upsample2d
from ...graph.operators.movement import Reshape, Transpose
from ...graph.partition import Refusal
from .passes.own_parts import is_channel_concatenation, is_channel_slice

__all__ = ["ON_ACCELERATOR", "ON_HOST", "image_size", "keeps_places", "layer_range", "refusal"]

ON_ACCELERATOR = (Conv2d, Requantize, Add, MaxPool2d, AveragePool2d, Upsample2d, Lookup)
"""Operators that layers are made of."""

ON_HOST = (Quantize, Dequantize, Softmax, Shift128, Reshape, Transpose)
"""Operators that the host runs before the first layer and after the last."""


def refusal(graph: Graph) -> Refusal | None:
    """Why the accelerator does not run a graph that ``prepare_graph`` made; None if it does.

    It runs a chain of host operators, layers, and a chain again, from one input to one output.
    """
    if len(graph.inputs) != 1 or len(graph.outputs) != 1:
        return Refusal(
            f"the model has {len(graph.inputs)} inputs and {len(graph.outputs)} outputs; "
            "the accelerator runs models with one of each"
        )
    places = layer_range(graph)
    if not places:
        return Refusal("no node of the model runs on the accelerator")
    before, layers = graph.nodes[: places.start], graph.nodes[places.start : places.stop]
    after = graph.nodes[places.stop :]
    source = next(name for name in layers[0].inputs if name not in graph.constants)
    return (
        next((found for node in layers if (found := _node_refusal(graph, node))), None)
        or _beside(graph, layers, source)
        or _chain(before, graph.inputs[0])
        or _chain(after, layers[-1].output)
    )


def layer_range(graph: Graph) -> range:
    """From the first to the last node that is for the accelerator."""
    places = [
        place
        for place, node in enumerate(graph.nodes)
        if isinstance(node.operator, (*ON_ACCELERATOR, Assemble))
        or is_channel_concatenation(node, graph.types[node.output])
    ]
    return range(places[0], places[-1] + 1) if places else range(0)


def keeps_places(graph: Graph, node: Node) -> bool:
    """Whether every element keeps its row, column and channel: only 1s are added or dropped."""
    before, after = (image_size(graph.types[name].shape) for name in (node.inputs[0], node.output))
    return before is not None and before == after


def image_size(shape: tuple[int, ...]) -> tuple[int, int, int] | None:
    """Height, width and channels of int8[1, H, W, C] or [1, C]; None for another shape."""
    match shape:
        case (1, height, width, channels):
            return height, width, channels
        case (*ones, channels) if all(size == 1 for size in ones):
            return 1, 1, channels
    return None


def _node_refusal(graph: Graph, node: Node) -> Refusal | None:
    """The refusal of a node between the first layer and the last."""
    operator = node.operator
    if isinstance(operator, Conv2d) and not _is_requantized(graph, node):
        return Refusal(
            f"node {node.origin!r}: its int32 result must be requantised, by one node", node.origin
        )
    view = (
        isinstance(operator, (*ON_ACCELERATOR, Assemble))
        or (isinstance(operator, Reshape) and keeps_places(graph, node))
        or is_channel_concatenation(node, graph.types[node.output])
        or is_channel_slice(node, graph.types[node.inputs[0]])
    )
    if view:
        return None
    return Refusal(
        f"node {node.origin!r}: {type(operator).__name__} between layers cannot run on the "
        "accelerator; only the first and last nodes of a model run on the host",
        node.origin,
    )


def _is_requantized(graph: Graph, node: Node) -> bool:
    """Whether one node requantises a sum, perhaps after a Reshape."""
    readers = graph.consumers(node.output)
    if len(readers) == 1 and isinstance(readers[0].operator, Reshape):
        readers = graph.consumers(readers[0].output)
    return len(readers) == 1 and isinstance(readers[0].operator, Requantize)


def _beside(graph: Graph, layers: Sequence[Node], source: str) -> Refusal | None:
    """The refusal of a layer that reads another tensor of the host's than ``source``."""
    computed = {source, *graph.constants}
    for node in layers:
        for name in node.inputs:
            if name not in computed:
                return Refusal(
                    f"node {node.origin!r} reads {name!r}, which the host computes beside "
                    f"{source!r}",
                    node.origin,
                )
        computed.update(node.outputs)
    return None


def _chain(nodes: Sequence[Node], first: str) -> Refusal | None:
    """The refusal of host nodes that are not a chain from ``first`` on, or that the host lacks."""
    current = first
    for node in nodes:
        if node.inputs[0] != current:
            return Refusal(
                f"node {node.origin!r}: the host runs one chain of nodes; this one reads "
                f"{node.inputs[0]!r}",
                node.origin,
            )
        if not isinstance(node.operator, ON_HOST):
            name = type(node.operator).__name__
            return Refusal(f"node {node.origin!r}: {name} has no host step", node.origin)
        current = node.output
    return None
