"""Converters of casts."""

from collections.abc import Mapping

from ...graph.operators.elementwise import Bitcast
from ..onnx_state import OnnxNode
from .build import cast
from .context import Converter, ImportContext, Tensor, required
from .element_types import element_type

__all__ = ["CASTS"]

Inputs = tuple[Tensor | None, ...]


def convert_cast(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """To the type that ``to`` names."""
    (x,) = required(inputs, 1)
    return (cast(ctx, x, element_type(node.integer("to", 0))),)


def convert_cast_like(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """To the type of the other input."""
    x, like = required(inputs, 2)
    return (cast(ctx, x, like.type.dtype),)


def convert_bitcast(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """The same bits as another type."""
    (x,) = required(inputs, 1)
    return (ctx.emit(Bitcast(element_type(node.integer("to", 0))), x),)


CASTS: Mapping[str, Converter] = {
    "BitCast": convert_bitcast,
    "Cast": convert_cast,
    "CastLike": convert_cast_like,
}
