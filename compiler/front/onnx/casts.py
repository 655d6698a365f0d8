"""Converters of casts."""

from collections.abc import Mapping

from ...dtypes import DType
from ...graph.operators.elementwise import Bitcast
from .build import cast
from .context import Converter, ImportContext, Narrow, Tensor, required
from .element_types import element_type
from .narrow import NARROW_TYPES, decode, encode
from .node import OnnxNode

__all__ = ["CASTS"]

Inputs = tuple[Tensor | None, ...]


def convert_cast(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """To the type that ``to`` names."""
    (x,) = required(inputs, 1)
    to = node.integer("to", 0)
    if to in NARROW_TYPES:
        return (_to_narrow(ctx, node, x, NARROW_TYPES[to]),)
    return (cast(ctx, decode(ctx, x), element_type(to)),)


def convert_cast_like(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """To the type of the other input."""
    x, like = required(inputs, 2)
    if like.narrow is not None:
        return (_to_narrow(ctx, node, x, like.narrow),)
    return (cast(ctx, decode(ctx, x), like.type.dtype),)


def _to_narrow(ctx: ImportContext, node: OnnxNode, x: Tensor, narrow: Narrow) -> Tensor:
    if x.narrow is narrow:
        return x
    saturate = bool(node.integer("saturate", 1))
    return encode(ctx, decode(ctx, x), narrow, saturate, node.text("round_mode", "up"))


def convert_bitcast(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """The same bits as another type."""
    (x,) = required(inputs, 1)
    dtype = element_type(node.integer("to", 0))
    if x.type.dtype == DType.BOOL or dtype == DType.BOOL:
        return (cast(ctx, x, dtype),)
    return (ctx.emit(Bitcast(dtype), x),)


CASTS: Mapping[str, Converter] = {
    "BitCast": convert_bitcast,
    "Cast": convert_cast,
    "CastLike": convert_cast_like,
}
