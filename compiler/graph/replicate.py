"""A graph for several images at once, by computing each separately."""

from ..errors import ModelError
from .ir import Graph, GraphBuilder
from .operators.movement import Concatenate, Slice
from .types import TensorType

__all__ = ["batched_type", "image_of", "replicate"]


def replicate(graph: Graph, images: int) -> Graph:
    """``graph`` with ``images`` times the first dimension of each input and output.

    Constants are shared; all else is there once for each image.
    Raises ModelError for an input or output without dimensions.
    """
    if images == 1:
        return graph
    constants, kinds = dict(graph.constants), {name: graph.types[name] for name in graph.constants}
    builder = GraphBuilder(constants=constants, types=kinds)
    for name in graph.inputs:
        builder.input(name, batched_type(name, graph.types[name], images))
    copies: list[dict[str, str]] = []
    for image in range(images):
        names = {name: name for name in graph.constants}
        for name in graph.inputs:
            names[name] = image_of(builder, name, graph.types[name], image)
        for node in graph.nodes:
            read = tuple(names[each] for each in node.inputs)
            made = builder.node_outputs(node.operator, read, node.output, node.origin)
            names.update(zip(node.outputs, made, strict=True))
        copies.append(names)
    joined = []
    for name in graph.outputs:
        batched_type(name, graph.types[name], images)
        parts = tuple(names[name] for names in copies)
        joined.append(builder.node(Concatenate(0), parts, f"{name}/batch", name))
    builder.export(joined, graph.outputs)
    return builder.build(graph.outputs)


def batched_type(name: str, kind: TensorType, images: int) -> TensorType:
    """The type of tensor ``name`` for ``images`` images, if ``kind`` is that for one."""
    if images == 1:
        return kind
    if not kind.shape:
        raise ModelError(
            f"tensor {name!r} has no dimensions; required some for a batch of {images}; "
            "compile it with a batch of 1"
        )
    return TensorType((images * kind.shape[0], *kind.shape[1:]), kind.dtype)


def image_of(builder: GraphBuilder, name: str, kind: TensorType, image: int) -> str:
    """Image number ``image`` of the batch ``name``; ``kind``: of one image."""
    starts = (image * kind.shape[0], *(0 for _ in kind.shape[1:]))
    part = Slice(starts, tuple(1 for _ in kind.shape), kind.shape)
    return builder.node(part, (name,), f"{name}/image", name)
