"""Rows of a table: one for each index, or sums, means and maxima of lists of them.

Source: PyTorch 2.15, aten/src/ATen/native/Embedding.cpp, EmbeddingBag.cpp.
"""

from math import inf

import numpy as np

from ...dtypes import DType
from ...graph.formulas import Term
from ...graph.operators.indexing import ScatterElements, ScatterFunction
from .context import Context, Converter
from .reductions import norm

__all__ = ["EMBEDDINGS"]

SUM, MEAN, MAX = range(3)
"""Modes of ``embedding_bag``."""


def embedding(
    context: Context,
    weight: Term,
    indices: Term,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Term:
    """Rows of a table."""
    return weight.take(indices, 0)


def renormalised(
    context: Context, x: Term, indices: Term, max_norm: float, norm_type: float
) -> Term:
    """The table in which rows that ``indices`` have are as long as ``max_norm`` at most."""
    lengths = norm(context, x, norm_type, 1, True)
    shorter = (max_norm / (lengths + 1e-7)).cast(x.dtype) * x
    flat = indices.reshape(-1)
    unseen = x.constant(np.zeros(x.shape[0]), DType.INT32)
    seen = unseen.scatter(0, flat, x.constant(np.ones(flat.shape), DType.INT32))
    chosen = seen.cast(DType.BOOL).unsqueeze(1) & (lengths > max_norm)
    return chosen.where(shorter, x, x.dtype)


def embedding_bag(
    context: Context,
    weight: Term,
    indices: Term,
    offsets: Term,
    scale_grad_by_freq: bool = False,
    mode: int = SUM,
    sparse: bool = False,
    per_sample_weights: Term | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> tuple[Term | None, ...]:
    """Sums, means or maxima of rows, of lists that begin at ``offsets``.

    Rows that are padding count for nothing; lists without rows give 0.
    """
    count, bags = indices.tensor.type.elements, offsets.shape[0] - include_last_offset
    starts = offsets.cast(DType.INT64).slice(0, 0, bags)
    context.require_room(count)
    places = context.term(np.arange(count)[:, None], DType.INT64)
    own = (starts.unsqueeze(0) <= places).cast(DType.INT64).sum(1) - 1
    flat = indices.reshape(count)
    rows = weight.take(flat, 0)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.reshape(count, 1)
    kept = context.term(np.ones(count), DType.BOOL)
    if padding_idx is not None:
        kept = ~flat.equal(padding_idx % weight.shape[0])
    nothing = -inf if mode == MAX else 0.0
    rows = kept.unsqueeze(1).where(rows, nothing, rows.dtype)
    function = ScatterFunction.MAX if mode == MAX else ScatterFunction.ADD
    empty = rows.constant(np.full((bags, weight.shape[1]), nothing), rows.dtype)
    at = own.unsqueeze(1).expand(*rows.shape)
    found = context.emitted(ScatterElements(0, function), empty, at, rows)
    sizes = context.term(np.zeros(bags), DType.INT64)
    sizes = sizes.scatter(0, own, kept.cast(DType.INT64), add=True).unsqueeze(1)
    if mode == MEAN:
        found = found / sizes.maximum(1).cast(found.dtype)
    elif mode == MAX:
        found = sizes.equal(0).where(0.0, found, found.dtype)
    return found, None, None, None


def bag_of_dense(
    context: Context,
    weight: Term,
    indices: Term,
    offsets: Term,
    scale_grad_by_freq: bool = False,
    mode: int = SUM,
    sparse: bool = False,
    per_sample_weights: Term | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> tuple[Term | None, ...]:
    """As ``embedding_bag``; a negative ``padding_idx`` is none."""
    padding = padding_idx if padding_idx >= 0 else None
    return embedding_bag(
        context, weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights,
        include_last_offset, padding,
    )  # fmt: skip


EMBEDDINGS: dict[str, Converter] = {
    "aten._embedding_bag": bag_of_dense,
    "aten._embedding_bag_forward_only": bag_of_dense,
    "aten.embedding": embedding,
    "aten.embedding_bag": embedding_bag,
    "aten.embedding_renorm": renormalised,
}
