"""Matrix products, einsum, convolution and its transpose."""

from collections.abc import Sequence

from ...graph.formulas import Term
from ...graph.operators.contractions import Convolution
from ...graph.operators.transposed import TransposedConvolution
from ...graph.products import accumulator, einsum_of, matmul
from .context import Context, Converter, Number

__all__ = ["CONTRACTIONS", "many", "product"]


def many(values: int | Sequence[int], count: int) -> tuple[int, ...]:
    """One number for each of ``count`` dimensions.  Raises ValueError for another length."""
    found = (values,) if isinstance(values, int) else tuple(values)
    found = found * count if len(found) == 1 else found
    if len(found) != count:
        raise ValueError(f"{list(found)}; required {count} numbers")
    return found


def product(a: Term, b: Term) -> Term:
    """NumPy's ``matmul``, in the type of ``a``."""
    return matmul(a, b, accumulator(a.dtype)).cast(a.dtype)


def multiply(context: Context, x: Term, **given: Term) -> Term:
    """``x`` times the other operand, which each operator calls otherwise."""
    (other,) = given.values()
    return product(x, other)


def linear(context: Context, x: Term, weight: Term, bias: Term | None = None) -> Term:
    """``x @ weight.T + bias``."""
    turned = weight.transpose(1, 0) if weight.rank == 2 else weight
    summed = matmul(x, turned, accumulator(x.dtype))
    return (summed if bias is None else summed + bias.cast(summed.dtype)).cast(x.dtype)


def _add(context: Context, x: Term, a: Term, b: Term, beta: Number, alpha: Number) -> Term:
    summed = matmul(a, b, accumulator(a.dtype))
    summed = summed if alpha == 1 else summed * alpha
    if beta == 0:
        return summed.cast(a.dtype)
    addend = x.cast(summed.dtype)
    return (summed + (addend if beta == 1 else addend * beta)).cast(a.dtype)


def addmm(
    context: Context, x: Term, mat1: Term, mat2: Term, beta: Number = 1, alpha: Number = 1
) -> Term:
    """``beta * x + alpha * mat1 @ mat2``."""
    return _add(context, x, mat1, mat2, beta, alpha)


def addmv(
    context: Context, x: Term, mat: Term, vec: Term, beta: Number = 1, alpha: Number = 1
) -> Term:
    """``beta * x + alpha * mat @ vec``."""
    return _add(context, x, mat, vec, beta, alpha)


def baddbmm(
    context: Context, x: Term, batch1: Term, batch2: Term, beta: Number = 1, alpha: Number = 1
) -> Term:
    """``beta * x + alpha * batch1 @ batch2``, for each of a batch."""
    return _add(context, x, batch1, batch2, beta, alpha)


def addbmm(
    context: Context, x: Term, batch1: Term, batch2: Term, beta: Number = 1, alpha: Number = 1
) -> Term:
    """As ``baddbmm``, summed over the batch."""
    a = batch1.transpose(1, 0, 2).reshape(batch1.shape[1], -1)
    return _add(context, x, a, batch2.reshape(-1, batch2.shape[2]), beta, alpha)


def outer(context: Context, x: Term, vec2: Term) -> Term:
    """Every product of an element of each."""
    return x.cast(context.dtype).unsqueeze(1) * vec2.cast(context.dtype).unsqueeze(0)


def bilinear(
    context: Context, input1: Term, input2: Term, weight: Term, bias: Term | None = None
) -> Term:
    """``input1 @ weight[o] @ input2`` for each output."""
    summed = einsum_of("...i,oij,...j->...o", [input1, weight, input2])
    return summed if bias is None else summed + bias


def convolution(
    context: Context,
    x: Term,
    weight: Term,
    bias: Term | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | str | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    transposed: bool = False,
    output_padding: int | Sequence[int] = 0,
    groups: int = 1,
) -> Term:
    """Convolution, or its transpose, with a bias for each output channel."""
    rank = weight.rank - 2
    if x.rank == rank + 1:
        batched = convolution(
            context, x.unsqueeze(0), weight, bias, stride, padding, dilation, transposed,
            output_padding, groups,
        )  # fmt: skip
        return batched.reshape(*batched.shape[1:])
    strides, dilations = many(stride, rank), many(dilation, rank)
    dtype = accumulator(x.dtype)
    if isinstance(padding, str):
        pads = _named_pads(padding, weight.shape[2:], dilations)
    else:
        pads = tuple((n, n) for n in many(padding, rank))
    if transposed:
        added = many(output_padding, rank)
        transpose = TransposedConvolution(strides, dilations, pads, added, groups, dtype)
        summed = context.emitted(transpose, x, weight)
    else:
        operator = Convolution(strides, dilations, pads, (1,) * rank, groups, dtype)
        summed = context.emitted(operator, x, weight)
    if bias is not None:
        summed = summed + bias.cast(dtype).reshape(-1, *(1,) * rank)
    return summed.cast(x.dtype)


def _named_pads(
    name: str, kernel: Sequence[int], dilations: Sequence[int]
) -> tuple[tuple[int, int], ...]:
    """Pads of ``valid`` and ``same``.  Raises ValueError for another name."""
    if name not in ("valid", "same"):
        raise ValueError(f"padding {name!r}; required valid or same")
    totals = [(k - 1) * d if name == "same" else 0 for k, d in zip(kernel, dilations, strict=True)]
    return tuple((total // 2, total - total // 2) for total in totals)


def conv_transpose(
    context: Context,
    x: Term,
    weight: Term,
    bias: Term | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    output_padding: int | Sequence[int] = 0,
    groups: int = 1,
    dilation: int | Sequence[int] = 1,
) -> Term:
    """Transposed convolution."""
    return convolution(
        context, x, weight, bias, stride, padding, dilation, True, output_padding, groups
    )


CONTRACTIONS: dict[str, Converter] = {
    "aten.addbmm": addbmm,
    "aten.addmm": addmm,
    "aten.addmv": addmv,
    "aten.baddbmm": baddbmm,
    "aten.bilinear": bilinear,
    "aten.bmm": multiply,
    "aten.conv1d": convolution,
    "aten.conv2d": convolution,
    "aten.conv3d": convolution,
    "aten.conv_transpose1d": conv_transpose,
    "aten.conv_transpose2d": conv_transpose,
    "aten.conv_transpose3d": conv_transpose,
    "aten.convolution": convolution,
    "aten.dot": multiply,
    "aten.einsum": lambda context, equation, tensors, path=None: einsum_of(equation, tensors),
    "aten.linear": linear,
    "aten.matmul": multiply,
    "aten.mm": multiply,
    "aten.mv": multiply,
    "aten.outer": outer,
    "aten.vdot": multiply,
}
