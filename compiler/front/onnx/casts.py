"""Converters of casts."""

from collections.abc import Mapping

from ...dtypes import DType
from ...graph.formulas import Term
from ...graph.operators.elementwise import Bitcast
from .context import Converter, ImportContext, Narrow
from .element_types import element_type
from .inputs import Inputs, terms
from .narrow import NARROW_TYPES, decode, encode
from .node import OnnxNode

__all__ = ["CASTS"]


def convert_cast(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """To the type that ``to`` names."""
    (x,) = terms(ctx, inputs, 1)
    to = node.integer("to", 0)
    if to in NARROW_TYPES:
        return (_to_narrow(node, x, NARROW_TYPES[to]).tensor,)
    return (decode(x).cast(element_type(to)).tensor,)


def convert_cast_like(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """To the type of the other input."""
    x, like = terms(ctx, inputs, 2)
    if like.tensor.narrow is not None:
        return (_to_narrow(node, x, like.tensor.narrow).tensor,)
    return (decode(x).cast(like.dtype).tensor,)


def _to_narrow(node: OnnxNode, x: Term, narrow: Narrow) -> Term:
    if x.tensor.narrow is narrow:
        return x
    saturate = bool(node.integer("saturate", 1))
    return encode(decode(x), narrow, saturate, node.text("round_mode", "up"))


def convert_bitcast(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """The same bits as another type."""
    (x,) = terms(ctx, inputs, 1)
    dtype = element_type(node.integer("to", 0))
    if DType.BOOL in (x.dtype, dtype):
        return (x.cast(dtype).tensor,)
    return (ctx.emit(Bitcast(dtype), x.tensor),)


CASTS: Mapping[str, Converter] = {
    "BitCast": convert_bitcast,
    "Cast": convert_cast,
    "CastLike": convert_cast_like,
}
