"""Converters of matrix products, einsum, convolution and its transpose, and determinants."""

from ...dtypes import DType
from ...errors import ModelError
from ...graph.formulas import Term, einsum
from ...graph.operators.contractions import Convolution, Determinant
from ...graph.operators.transposed import TransposedConvolution
from ...graph.products import accumulator, einsum_of, matmul
from .context import Converter, ImportContext
from .inputs import Inputs, optional_term, term
from .node import OnnxNode
from .windowing import Pads, same_pads

__all__ = ["CONTRACTIONS", "convolve"]


def convert_matmul(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """NumPy's matmul."""
    a, b = (term(context, node, inputs, place) for place in range(2))
    return (matmul(a, b, accumulator(a.dtype)).cast(a.dtype).tensor,)


def convert_gemm(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """``alpha * a @ b + beta * c``."""
    a, b = (term(context, node, inputs, place) for place in range(2))
    if a.rank != 2 or b.rank != 2:
        raise ModelError(f"{node}: operands of {a.rank} and {b.rank} dimensions; required 2")
    dtype = accumulator(a.dtype)
    a_labels = [1, 0] if node.integer("transA", 0) else [0, 1]
    b_labels = [2, 1] if node.integer("transB", 0) else [1, 2]
    result = einsum([(a, a_labels), (b, b_labels)], [0, 2], dtype)
    alpha, beta = node.real("alpha", 1.0), node.real("beta", 1.0)
    if alpha != 1:
        result = _scaled(result, alpha)
    c = optional_term(context, inputs, 2)
    if c is not None and beta != 0:
        bias = c.cast(dtype)
        result = result + (bias if beta == 1 else _scaled(bias, beta))
    return (result.cast(a.dtype).tensor,)


def _scaled(value: Term, factor: float) -> Term:
    if value.dtype.is_float:
        return value * factor
    return (value.cast(DType.FLOAT64) * factor).cast(value.dtype)


def convert_einsum(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Any number of operands, with ellipsis, diagonals and implicit output."""
    operands = [term(context, node, inputs, place) for place in range(len(inputs))]
    return (einsum_of(node.text("equation", ""), operands).tensor,)


def convolve(
    x: Term,
    w: Term,
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
    pads: Pads,
    groups: int,
    dtype: DType,
) -> Term:
    """The convolution in ``dtype``."""
    ones = (1,) * len(strides)
    operator = Convolution(strides, dilations, pads, ones, groups, dtype)
    return Term(x.context, x.context.emit(operator, x.tensor, w.tensor))


def convert_conv(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Convolution with a bias for each output channel."""
    x, w = (term(context, node, inputs, place) for place in range(2))
    dtype = accumulator(x.dtype)
    result = convolve(x, w, *convolution_attributes(node, x, w), node.integer("group", 1), dtype)
    return (_biased(context, result, inputs).cast(x.dtype).tensor,)


def convolution_attributes(
    node: OnnxNode, x: Term, w: Term
) -> tuple[tuple[int, ...], tuple[int, ...], Pads]:
    """Strides, dilations and pads of Conv, ConvInteger and QLinearConv."""
    rank = x.rank - 2
    if rank < 1 or w.rank != x.rank:
        raise ModelError(f"{node}: input {x.shape} with weights {w.shape}; required equal ranks")
    strides = node.integers("strides", (1,) * rank)
    dilations = node.integers("dilations", (1,) * rank)
    pads = same_pads(node, x.shape[2:], w.shape[2:], strides, dilations)
    return strides, dilations, pads


def _biased(context: ImportContext, result: Term, inputs: Inputs) -> Term:
    bias = optional_term(context, inputs, 2)
    if bias is None:
        return result
    return result + bias.cast(result.dtype).reshape(-1, *(1,) * (result.rank - 2))


def convert_conv_transpose(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """The gradient of a strided convolution: each input element adds a window to the output."""
    x, w = (term(context, node, inputs, place) for place in range(2))
    rank, groups = x.rank - 2, node.integer("group", 1)
    if rank < 1 or w.rank != x.rank or w.shape[0] != x.shape[1] or w.shape[0] % groups:
        raise ModelError(f"{node}: input {x.shape} with weights {w.shape}")
    strides = node.integers("strides", (1,) * rank)
    dilations = node.integers("dilations", (1,) * rank)
    extents = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilations, strict=True)]
    sides = _transposed_pads(node, x.shape[2:], strides, extents)
    pads, added = tuple(side[:2] for side in sides), tuple(side[2] for side in sides)
    dtype = accumulator(x.dtype)
    operator = TransposedConvolution(strides, dilations, pads, added, groups, dtype)
    result = Term(context, context.emit(operator, x.tensor, w.tensor))
    return (_biased(context, result, inputs).cast(x.dtype).tensor,)


def _transposed_pads(
    node: OnnxNode, sizes: tuple[int, ...], strides: tuple[int, ...], extents: list[int]
) -> list[tuple[int, int, int]]:
    """First, last, and output padding of each dimension."""
    rank = len(sizes)
    extra = node.integers("output_padding", (0,) * rank)
    full = [s * (n - 1) + e for n, s, e in zip(sizes, strides, extents, strict=True)]
    wanted = node.integers("output_shape", ())[-rank:]
    mode = node.text("auto_pad", "NOTSET")
    if mode.startswith("SAME") and not wanted:
        wanted = tuple(n * s for n, s in zip(sizes, strides, strict=True))
    if not wanted:
        given = node.integers("pads", (0,) * 2 * rank)
        if mode == "VALID":
            given = (0,) * 2 * rank
        return [(given[i], given[rank + i], extra[i]) for i in range(rank)]
    result = []
    for size, output, more in zip(full, wanted, extra, strict=True):
        total = size + more - output
        small, large = total // 2, total - total // 2
        result.append((small, large, more) if mode == "SAME_UPPER" else (large, small, more))
    return result


def convert_det(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Determinants of square matrices."""
    return (context.emit(Determinant(), term(context, node, inputs, 0).tensor),)


CONTRACTIONS: dict[str, Converter] = {
    "Conv": convert_conv,
    "ConvTranspose": convert_conv_transpose,
    "Det": convert_det,
    "Einsum": convert_einsum,
    "Gemm": convert_gemm,
    "MatMul": convert_matmul,
}
