"""Operators that are formulas of others."""

from collections.abc import Sequence
from math import inf, prod

import ml_dtypes
import numpy as np

from ...dtypes import DType
from ...graph.formulas import Term, concatenate
from ...graph.operators.elementwise import BinaryFunction as B
from ...graph.operators.elementwise import UnaryFunction as U
from .context import Context, Converter, Number
from .contractions import product
from .promotion import as_term
from .reductions import norm, total
from .views import axis_of, diagonal

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


def cross(context: Context, x: Term, other: Term, dim: int = -1) -> Term:
    """The vector product."""
    shape = np.broadcast_shapes(x.shape, other.shape)
    a, b = x.expand(*shape), other.expand(*shape)
    axis = axis_of(dim, a.rank)
    one, two = np.array([1, 2, 0]), np.array([2, 0, 1])
    return a.take(one, axis) * b.take(two, axis) - a.take(two, axis) * b.take(one, axis)


def cross_of_first(context: Context, x: Term, other: Term, dim: int | None = None) -> Term:
    """The vector product; of the first dimension of size 3, if none is given."""
    if dim is None and 3 not in x.shape:
        raise ValueError(f"no dimension of size 3 among {x.shape}")
    return cross(context, x, other, x.shape.index(3) if dim is None else dim)


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


def log_add_exp(context: Context, x: Term, other: Term) -> Term:
    """``log(exp(x) + exp(other))``, without overflow."""
    most = x.maximum(other)
    apart = -(x - other).abs()
    found = most + (apart.exp() + 1.0).log()
    return most.unary(U.ISINF).where(most, found, most.dtype)


def erfc(context: Context, x: Term) -> Term:
    """``1 - erf(x)``."""
    return 1.0 - x.cast(context.dtype).unary(U.ERF)


def isclose(
    context: Context,
    x: Term,
    other: Term,
    rtol: Number = 1e-5,
    atol: Number = 1e-8,
    equal_nan: bool = False,
) -> Term:
    """True where two values are close."""
    near = (x - other).abs() <= other.abs() * rtol + atol
    return x.equal(other) | near & ~other.unary(U.ISINF)


def addcmul(context: Context, x: Term, tensor1: Term, tensor2: Term, value: Number = 1) -> Term:
    """``x + value * tensor1 * tensor2``."""
    a, b, c = (each.cast(context.dtype) for each in (x, tensor1, tensor2))
    return a + b * c * value


def addcdiv(context: Context, x: Term, tensor1: Term, tensor2: Term, value: Number = 1) -> Term:
    """``x + value * tensor1 / tensor2``."""
    a, b, c = (each.cast(context.dtype) for each in (x, tensor1, tensor2))
    return a + b / c * value


def nan_to_num(
    context: Context,
    x: Term,
    nan: float | None = None,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Term:
    """NaN and infinities replaced; by 0 and the largest numbers unless given."""
    if not x.dtype.is_float:
        return x
    most = float(ml_dtypes.finfo(x.dtype.numpy).max)
    found = x.unary(U.ISNAN).where(0.0 if nan is None else nan, x, x.dtype)
    found = x.equal(inf).where(most if posinf is None else posinf, found, x.dtype)
    return x.equal(-inf).where(-most if neginf is None else neginf, found, x.dtype)


COMPOSED: dict[str, Converter] = {
    "aten.addcdiv": addcdiv,
    "aten.addcmul": addcmul,
    "aten.lerp": lambda context, x, end, weight: x + as_term(context, weight, x.dtype) * (end - x),
    "aten.nan_to_num": nan_to_num,
    "aten._cdist_forward": cdist,
    "aten._pdist_forward": pdist,
    "aten._weight_norm": weight_norm,
    "aten.cdist": cdist,
    "aten.cosine_similarity": cosine_similarity,
    "aten.count_nonzero": lambda context, x, dim=None: total(context, x.cast(DType.BOOL), dim),
    "aten.cross": cross_of_first,
    "aten.diff": difference,
    "aten.erfc": erfc,
    "aten.frac": lambda context, x: x - x.unary(U.TRUNC),
    "aten.hypot": lambda context, x, other: (x * x + other * other).sqrt(),
    "aten.isclose": isclose,
    "aten.linalg_cross": cross,
    "aten.logaddexp": log_add_exp,
    "aten.pairwise_distance": pairwise_distance,
    "aten.pdist": pdist,
    "aten.special_erfc": erfc,
    "aten.tensordot": tensordot,
    "aten.trace": lambda context, x: total(context, diagonal(context, x)),
}
