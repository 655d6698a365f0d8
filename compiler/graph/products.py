"""Matrix products and einsum, as formulas of contractions."""

from collections.abc import Sequence

import numpy as np

from ..dtypes import DType
from ..errors import GraphError
from .formulas import Term, einsum

__all__ = ["accumulator", "einsum_of", "matmul"]


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


def einsum_of(equation: str, operands: Sequence[Term]) -> Term:
    """NumPy's ``einsum``: any number of operands, with ellipsis, diagonals and implicit output.

    Raises GraphError when the equation does not fit them.
    """
    equation = equation.replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(operands):
        raise GraphError(f"equation {equation!r} for {len(operands)} operands")
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
            raise GraphError(f"{letters!r} for {value.rank} dimensions")
        labelled.append(_labelled(value, _labels(letters, rank)))
    if not arrow:
        used = left.replace(",", "").replace(".", "")
        right = "..." + "".join(sorted(c for c in set(used) if used.count(c) == 1))
    return _einsum_result(labelled, _labels(right, dots), operands[0].dtype)


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
