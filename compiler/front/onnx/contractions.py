"""Converters of matrix products, einsum, convolution and its transpose, and determinants."""

import numpy as np

from ...dtypes import DType
from ...errors import GraphError, ModelError
from ...graph.formulas import Term, einsum
from ...graph.operators.contractions import Convolution, Determinant
from ...graph.operators.transposed import TransposedConvolution
from .context import Converter, ImportContext
from .inputs import Inputs, optional_term, term
from .node import OnnxNode
from .windowing import Pads, same_pads

__all__ = ["CONTRACTIONS", "accumulator", "convolve", "matmul"]


def accumulator(dtype: DType) -> DType:
    """The type that products of ``dtype`` are summed in: float32 for the narrow floats."""
    return DType.FLOAT32 if dtype in (DType.FLOAT16, DType.BFLOAT16) else dtype


def matmul(a: Term, b: Term, dtype: DType) -> Term:
    """NumPy's ``matmul``, computed in ``dtype`` and left in it."""
    a_vector, b_vector = a.rank == 1, b.rank == 1
    if a_vector:
        a = a.unsqueeze(0)
    if b_vector:
        b = b.unsqueeze(1)
    if min(a.rank, b.rank) < 2 or a.shape[-1] != b.shape[-2]:
        raise GraphError(f"product of {a.shape} and {b.shape}; required one inner size")
    try:
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        raise GraphError(f"product of {a.shape} and {b.shape}; shapes do not broadcast") from None
    labels = range(3, 3 + len(batch))
    a, a_labels = _without_ones(a, labels, batch)
    b, b_labels = _without_ones(b, labels, batch)
    product = einsum([(a, [*a_labels, 0, 1]), (b, [*b_labels, 1, 2])], [*labels, 0, 2], dtype)
    if not (a_vector or b_vector):
        return product
    shape = (*batch, *(() if a_vector else (a.shape[-2],)), *(() if b_vector else (b.shape[-1],)))
    return product.reshape(*shape)


def _without_ones(value: Term, labels: range, batch: tuple[int, ...]) -> tuple[Term, list[int]]:
    """Batch dimensions of 1 that broadcast dropped; the labels of the others."""
    own = list(labels)[len(labels) - (value.rank - 2) :] if value.rank > 2 else []
    wanted = batch[len(batch) - len(own) :]
    kept = [
        (label, size)
        for label, size, other in zip(own, value.shape, wanted, strict=False)
        if size == other
    ]
    shape = [size for _, size in kept]
    return value.reshape(*shape, *value.shape[-2:]), [label for label, _ in kept]


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
    equation = node.text("equation", "").replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(operands):
        raise ModelError(f"{node}: equation {equation!r} for {len(operands)} operands")
    ranks = [
        value.rank - len(letters.replace("...", ""))
        for value, letters in zip(operands, terms, strict=True)
    ]
    dots = max(
        [rank for rank, letters in zip(ranks, terms, strict=True) if "..." in letters], default=0
    )
    labelled = []
    for value, letters, rank in zip(operands, terms, ranks, strict=True):
        if rank < 0 or (rank > 0 and "..." not in letters):
            raise ModelError(f"{node}: {letters!r} for {value.rank} dimensions")
        labelled.append(_labelled(value, _labels(letters, rank)))
    if not arrow:
        used = left.replace(",", "").replace(".", "")
        right = "..." + "".join(sorted(c for c in set(used) if used.count(c) == 1))
    output = _labels(right, dots)
    return (_einsum_result(labelled, output, operands[0].dtype).tensor,)


def _labels(letters: str, rank: int) -> list[int]:
    """Labels of the letters; negative ones of the dimensions of an ellipsis, the last is -1."""
    before, ellipsis, after = letters.partition("...")
    middle = list(range(-rank, 0)) if ellipsis else []
    return [*(ord(c) for c in before), *middle, *(ord(c) for c in after)]


def _labelled(value: Term, labels: list[int]) -> tuple[Term, list[int]]:
    """Dimensions of 1 under an ellipsis dropped: they broadcast."""
    kept = [
        (label, size)
        for label, size in zip(labels, value.shape, strict=True)
        if label >= 0 or size != 1
    ]
    return value.reshape(*(size for _, size in kept)), [label for label, _ in kept]


def _einsum_result(operands: list[tuple[Term, list[int]]], output: list[int], dtype: DType) -> Term:
    """From left to right, two at a time; labels nobody needs any more are summed at once."""
    summing = accumulator(dtype)
    while len(operands) > 2:
        (a, a_labels), (b, b_labels), *rest = operands
        needed = {*output, *(label for _, labels in rest for label in labels)}
        kept = [x for x in dict.fromkeys([*a_labels, *b_labels]) if x in needed]
        operands = [(einsum([(a, a_labels), (b, b_labels)], kept, summing), kept), *rest]
    present = {label for _, labels in operands for label in labels}
    result = einsum(operands, [label for label in output if label in present], summing)
    if len(present & set(output)) != len(output):
        sizes = iter(result.shape)
        result = result.reshape(*(next(sizes) if label in present else 1 for label in output))
    return result.cast(dtype)


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
