"""Attention."""

from math import sqrt

import numpy as np

from ...dtypes import DType
from ...errors import UnsupportedOperatorError
from ...graph.formulas import Term, widened
from ...graph.operators.elementwise import UnaryFunction as U
from ...graph.products import matmul
from .context import Context, Converter

__all__ = ["ATTENTION"]


def attention(
    context: Context,
    query: Term,
    key: Term,
    value: Term,
    attn_mask: Term | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Term:
    """``softmax(query @ key.T * scale + mask) @ value``; a bool mask says what may be seen."""
    if dropout_p:
        raise UnsupportedOperatorError(f"{context.where}: dropout in training; use model.eval()")
    given = query
    query, key, value = widened(query), widened(key), widened(value)
    if enable_gqa and key.shape[-3] != query.shape[-3]:
        key, value = (_shared_heads(each, query.shape[-3]) for each in (key, value))
    factor = 1 / sqrt(query.shape[-1]) if scale is None else scale
    turned = key.transpose(*range(key.rank - 2), key.rank - 1, key.rank - 2)
    scores = matmul(query * factor, turned, query.dtype)
    if is_causal:
        context.require_room(*scores.shape[-2:])
        seen = np.tri(scores.shape[-2], scores.shape[-1]) > 0
        scores = context.term(seen, DType.BOOL).where(scores, float("-inf"), scores.dtype)
    if attn_mask is not None and attn_mask.dtype == DType.BOOL:
        scores = attn_mask.where(scores, float("-inf"), scores.dtype)
    elif attn_mask is not None:
        scores = scores + attn_mask.cast(scores.dtype)
    weights = scores.softmax(-1)
    if attn_mask is not None and attn_mask.dtype == DType.BOOL:
        weights = weights.unary(U.ISNAN).where(0.0, weights, weights.dtype)
    return matmul(weights, value, query.dtype).cast(given.dtype)


def _shared_heads(x: Term, heads: int) -> Term:
    """Every head several times in a row."""
    *batch, own, length, size = x.shape
    more = x.reshape(*batch, own, 1, length, size).expand(*batch, own, heads // own, length, size)
    return more.reshape(*batch, heads, length, size)


def flash_attention(
    context: Context,
    query: Term,
    key: Term,
    value: Term,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    attn_mask: Term | None = None,
    scale: float | None = None,
) -> tuple[Term, ...]:
    """As ``attention``; the logarithms of the sums are not computed."""
    found = attention(context, query, key, value, attn_mask, dropout_p, is_causal, scale)
    return found, context.term(np.zeros(query.shape[:-1]), DType.FLOAT32)


ATTENTION: dict[str, Converter] = {
    "aten._scaled_dot_product_flash_attention_for_cpu": flash_attention,
    "aten.scaled_dot_product_attention": attention,
}
