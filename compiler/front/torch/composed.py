"""Operators that are formulas of others: distances, losses, columns of windows, recurrences."""

from collections.abc import Sequence
from math import prod

import numpy as np

from ...dtypes import DType
from ...errors import UnsupportedOperatorError
from ...graph.formulas import Term, concatenate
from ...graph.operators.elementwise import BinaryFunction as B
from ...graph.operators.elementwise import UnaryFunction as U
from .activations import log_softmax
from .context import Context, Converter, Number
from .contractions import many, product
from .indexing import gather
from .movement import axis_of, diagonal
from .reductions import norm, total

__all__ = ["COMPOSED"]


def difference(
    context: Context,
    x: Term,
    n: int = 1,
    dim: int = -1,
    prepend: Term | None = None,
    append: Term | None = None,
) -> Term:
    """Each element less the one before, ``n`` times."""
    axis = axis_of(dim, x.rank)
    x = concatenate([each for each in (prepend, x, append) if each is not None], axis)
    for _ in range(min(n, x.shape[axis])):
        last = x.shape[axis]
        a, b = x.slice(axis, 1, last), x.slice(axis, 0, max(last - 1, 0))
        x = a.binary(B.NE, b) if x.dtype == DType.BOOL else a - b
    return x


def weight_norm(context: Context, v: Term, g: Term, dim: int = 0) -> Term:
    """``v * g / norm(v)``, the norm over all dimensions but one."""
    axes = [axis for axis in range(v.rank) if axis != dim % v.rank]
    return v * (g / (v * v).sum(*axes, keep=True).sqrt())


def cosine_similarity(
    context: Context, x1: Term, x2: Term, dim: int = 1, eps: float = 1e-8
) -> Term:
    """The product of two vectors over that of their lengths, of at least ``eps``."""
    lengths = [(each * each).sum(dim, keep=True).sqrt().maximum(eps) for each in (x1, x2)]
    return (x1 / lengths[0] * (x2 / lengths[1])).sum(dim)


def pairwise_distance(
    context: Context, x1: Term, x2: Term, p: float = 2, eps: float = 1e-6, keepdim: bool = False
) -> Term:
    """The norm of the difference, plus ``eps``."""
    return norm(context, x1 - x2 + eps, p, -1, keepdim)


def cdist(
    context: Context, x1: Term, x2: Term, p: float = 2, compute_mode: int | None = None
) -> Term:
    """The distance of each row of one from each row of the other."""
    return norm(context, x1.unsqueeze(x1.rank - 1) - x2.unsqueeze(x2.rank - 2), p, -1)


def pdist(context: Context, x: Term, p: float = 2) -> Term:
    """The distance of each row from each after it."""
    rows, columns = np.triu_indices(x.shape[0], 1)
    return norm(context, x.take(rows, 0) - x.take(columns, 0), p, -1)


def _reduced(context: Context, losses: Term, reduction: int) -> Term:
    if reduction == 0:
        return losses
    axes = tuple(range(losses.rank))
    return losses.mean(*axes) if reduction == 1 else losses.sum(*axes)


def mse_loss(context: Context, x: Term, target: Term, reduction: int = 1) -> Term:
    """The mean square of the difference."""
    return _reduced(context, (x - target) * (x - target), reduction)


def l1_loss(context: Context, x: Term, target: Term, reduction: int = 1) -> Term:
    """The mean magnitude of the difference."""
    return _reduced(context, (x - target).abs(), reduction)


def nll_loss(
    context: Context,
    x: Term,
    target: Term,
    weight: Term | None = None,
    reduction: int = 1,
    ignore_index: int = -100,
) -> Term:
    """``-weight[target] * x[target]``, reduced."""
    if x.rank == 1:
        return nll_loss(
            context, x.unsqueeze(0), target.unsqueeze(0), weight, reduction or 2, ignore_index
        )
    kept = ~target.equal(ignore_index)
    places = kept.where(target, 0, target.dtype)
    chosen = gather(context, x, 1, places.unsqueeze(1))
    chosen = chosen.reshape(*target.shape)
    scale = kept.cast(x.dtype)
    scale = scale if weight is None else scale * weight.take(places, 0)
    losses = -chosen * scale
    axes = tuple(range(losses.rank))
    if reduction != 1:
        return losses.sum(*axes) if reduction else losses
    return losses.sum(*axes) / scale.sum(*axes)


def cross_entropy_loss(
    context: Context,
    x: Term,
    target: Term,
    weight: Term | None = None,
    reduction: int = 1,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Term:
    """The loss of ``log_softmax(x)``, by classes."""
    if label_smoothing or target.dtype.is_float:
        raise UnsupportedOperatorError(f"{context.where}: targets that are probabilities")
    axis = 1 if x.rank > 1 else 0
    return nll_loss(context, log_softmax(context, x, axis), target, weight, reduction, ignore_index)


def _columns(
    sizes: Sequence[int],
    kernel: Sequence[int],
    dilation: Sequence[int],
    stride: Sequence[int],
) -> tuple[np.ndarray[tuple[int, ...], np.dtype[np.int64]], tuple[int, ...]]:
    """Places in a plane of the elements of each window: [elements, windows]; windows by axis."""
    lines, counts = [], []
    for size, k, d, s in zip(sizes, kernel, dilation, stride, strict=True):
        count = (size - (k - 1) * d - 1) // s + 1
        lines.append((np.arange(k) * d)[:, None] + np.arange(count) * s)
        counts.append(count)
    rows, columns = lines
    places = rows[:, None, :, None] * sizes[1] + columns[None, :, None, :]
    return places.reshape(prod(kernel), prod(counts)), tuple(counts)


def im2col(
    context: Context,
    x: Term,
    kernel_size: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> Term:
    """Each window of a picture as a column."""
    if x.rank == 3:
        one = im2col(context, x.unsqueeze(0), kernel_size, dilation, padding, stride)
        return one.reshape(*one.shape[1:])
    kernel, dilation, padding, stride = (
        many(each, 2) for each in (kernel_size, dilation, padding, stride)
    )
    x = x.pad([(0, 0), (0, 0), *((n, n) for n in padding)])
    context.require_room(*kernel, *x.shape[2:])
    places, _ = _columns(x.shape[2:], kernel, dilation, stride)
    batch, channels = x.shape[:2]
    found = x.reshape(batch, channels, -1).take(places, 2)
    return found.reshape(batch, channels * places.shape[0], places.shape[1])


def col2im(
    context: Context,
    x: Term,
    output_size: Sequence[int],
    kernel_size: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> Term:
    """Windows, a column each, added up to a picture."""
    if x.rank == 2:
        one = col2im(context, x.unsqueeze(0), output_size, kernel_size, dilation, padding, stride)
        return one.reshape(*one.shape[1:])
    size, kernel, dilation, padding, stride = (
        many(each, 2) for each in (output_size, kernel_size, dilation, padding, stride)
    )
    padded = [n + 2 * pad for n, pad in zip(size, padding, strict=True)]
    context.require_room(*kernel, *padded)
    places, _ = _columns(padded, kernel, dilation, stride)
    planes = x.shape[0] * x.shape[1] // prod(kernel)
    flat = x.reshape(planes, -1)
    indices = context.term(places.reshape(1, -1), DType.INT64).expand(*flat.shape)
    zeros = x.constant(0, x.dtype).expand(planes, prod(padded))
    summed = zeros.scatter(1, indices, flat, add=True)
    result = summed.reshape(x.shape[0], -1, *padded)
    for axis, (pad, n) in enumerate(zip(padding, size, strict=True), 2):
        result = result.slice(axis, pad, pad + n)
    return result


def embedding_bag(
    context: Context,
    weight: Term,
    indices: Term,
    offsets: Term,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Term | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> tuple[Term, ...]:
    """Sums, means or maxima of rows, for lists that begin at known offsets."""
    starts = [int(n) for n in context.known_value(offsets).ravel()]
    ends = [*starts[1:], indices.tensor.type.elements]
    if include_last_offset:
        starts, ends = starts[:-1], ends[:-1]
    if padding_idx is not None and padding_idx >= 0:
        raise UnsupportedOperatorError(f"{context.where}: padding_idx {padding_idx}")
    rows = weight.take(indices.reshape(-1), 0)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(1)
    found = []
    for start, end in zip(starts, ends, strict=True):
        part = rows.slice(0, start, end)
        if start == end:
            found.append(weight.constant(np.zeros((1, weight.shape[1])), weight.dtype))
        elif mode == 2:
            found.append(part.max(0, keep=True))
        else:
            summed = part.sum(0, keep=True)
            found.append(summed / float(end - start) if mode == 1 else summed)
    empty = context.term(np.zeros(0), DType.INT64)
    return concatenate(found, 0), empty, empty, empty


def cross(context: Context, x: Term, other: Term, dim: int = -1) -> Term:
    """The vector product."""
    shape = np.broadcast_shapes(x.shape, other.shape)
    a, b = x.expand(*shape), other.expand(*shape)
    axis = axis_of(dim, a.rank)
    one, two = np.array([1, 2, 0]), np.array([2, 0, 1])
    return a.take(one, axis) * b.take(two, axis) - a.take(two, axis) * b.take(one, axis)


def tensordot(
    context: Context, x: Term, other: Term, dims_self: Sequence[int], dims_other: Sequence[int]
) -> Term:
    """The product summed over pairs of dimensions."""
    a = [axis_of(dim, x.rank) for dim in dims_self]
    b = [axis_of(dim, other.rank) for dim in dims_other]
    left = [n for n in range(x.rank) if n not in a]
    right = [n for n in range(other.rank) if n not in b]
    size = prod(x.shape[n] for n in a)
    first = x.transpose(*left, *a).reshape(prod(x.shape[n] for n in left), size)
    second = other.transpose(*b, *right).reshape(size, prod(other.shape[n] for n in right))
    shape = (*(x.shape[n] for n in left), *(other.shape[n] for n in right))
    return product(first, second).reshape(*shape)


def count_nonzero(context: Context, x: Term, dim: int | Sequence[int] | None = None) -> Term:
    """How many are not 0."""
    return total(context, x.cast(DType.BOOL), dim)


def trace(context: Context, x: Term) -> Term:
    """The sum of the diagonal."""
    return total(context, diagonal(context, x))


def log_add_exp(context: Context, x: Term, other: Term) -> Term:
    """``log(exp(x) + exp(other))``, without overflow."""
    most = x.maximum(other)
    apart = -(x - other).abs()
    found = most + (apart.exp() + 1.0).log()
    return most.unary(U.ISINF).where(most, found, most.dtype)


def frac(context: Context, x: Term) -> Term:
    """What is behind the point."""
    return x - x.unary(U.TRUNC)


def erfc(context: Context, x: Term) -> Term:
    """``1 - erf(x)``."""
    return 1.0 - x.cast(context.dtype).unary(U.ERF)


def hypot(context: Context, x: Term, other: Term) -> Term:
    """``sqrt(x * x + other * other)``."""
    return (x * x + other * other).sqrt()


def isclose(
    context: Context,
    x: Term,
    other: Term,
    rtol: Number = 1e-5,
    atol: Number = 1e-8,
    equal_nan: bool = False,
) -> Term:
    """Whether two differ by little."""
    near = (x - other).abs() <= other.abs() * rtol + atol
    return x.equal(other) | near & ~other.unary(U.ISINF)


COMPOSED: dict[str, Converter] = {
    "aten._cdist_forward": cdist,
    "aten._embedding_bag": embedding_bag,
    "aten._embedding_bag_forward_only": embedding_bag,
    "aten._pdist_forward": pdist,
    "aten._weight_norm": weight_norm,
    "aten.cdist": cdist,
    "aten.col2im": col2im,
    "aten.cosine_similarity": cosine_similarity,
    "aten.count_nonzero": count_nonzero,
    "aten.cross": cross,
    "aten.cross_entropy_loss": cross_entropy_loss,
    "aten.diff": difference,
    "aten.embedding_bag": embedding_bag,
    "aten.erfc": erfc,
    "aten.frac": frac,
    "aten.hypot": hypot,
    "aten.im2col": im2col,
    "aten.isclose": isclose,
    "aten.l1_loss": l1_loss,
    "aten.linalg_cross": cross,
    "aten.logaddexp": log_add_exp,
    "aten.mse_loss": mse_loss,
    "aten.nll_loss": nll_loss,
    "aten.nll_loss2d": nll_loss,
    "aten.nll_loss_nd": nll_loss,
    "aten.pairwise_distance": pairwise_distance,
    "aten.pdist": pdist,
    "aten.special_erfc": erfc,
    "aten.tensordot": tensordot,
    "aten.trace": trace,
}
