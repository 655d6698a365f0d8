"""Sums of products: matrix products, convolutions."""

from collections.abc import Sequence
from math import prod
from string import ascii_lowercase

from ....dtypes import DType
from ....graph.ir import Array
from ....graph.operators.contractions import Contract, Convolution
from ....graph.operators.transposed import TransposedConvolution
from .writing import Writing

__all__ = ["convolution", "write_contract", "write_convolution", "write_transposed_convolution"]


def write_convolution(w: Writing, operator: Convolution) -> str:
    """Without a bias."""
    x, weights = w.node.inputs
    return convolution(w, operator, x, weights)


def convolution(
    w: Writing, operator: Convolution, x: str, weights: str, bias: Array | None = None
) -> str:
    """Conv; bias: one number for each output channel."""
    _require_type(w, "convolution", operator.dtype, x, weights)
    if any(each != 1 for each in operator.expansions):
        raise w.unsupported("convolution of inputs that are spread out")
    if any(side < 0 for pads in operator.pads for side in pads):
        raise w.unsupported("convolution with negative pads")
    return w.emit(
        "Conv",
        *(x, weights, *(() if bias is None else (bias,))),
        kernel_shape=list(w.type(weights).shape[2:]),
        strides=list(operator.strides),
        dilations=list(operator.dilations),
        pads=[first for first, _ in operator.pads] + [last for _, last in operator.pads],
        group=operator.groups,
    )


def _require_type(w: Writing, what: str, dtype: DType, *operands: str) -> None:
    for name in operands:
        own = w.type(name).dtype
        if own != dtype or not dtype.is_float:
            raise w.unsupported(f"{what} of {own} with sums of {dtype}")


def write_transposed_convolution(w: Writing, operator: TransposedConvolution) -> str:
    """ConvTranspose; rows beyond the last product are zeros behind it."""
    x, weights = w.node.inputs
    _require_type(w, "transposed convolution", operator.dtype, x, weights)
    sides = [
        (first, last - more)
        for (first, last), more in zip(operator.pads, operator.added, strict=True)
    ]
    cut = [[max(side, 0) for side in each] for each in zip(*sides, strict=True)]
    found = w.emit(
        "ConvTranspose",
        *(x, weights),
        kernel_shape=list(w.type(weights).shape[2:]),
        strides=list(operator.strides),
        dilations=list(operator.dilations),
        pads=cut[0] + cut[1],
        group=operator.groups,
    )
    around = [[max(-side, 0) for side in each] for each in zip(*sides, strict=True)]
    if not any(map(any, around)):
        return found
    return w.emit("Pad", found, w.integers([0, 0, *around[0], 0, 0, *around[1]]))


def write_contract(w: Writing, operator: Contract) -> str:
    """MatMul where there are two operands with rows and columns; Einsum of others."""
    labels = _labels(w, operator)
    operands = [_typed(w, name, operator.dtype) for name in w.node.inputs]
    output = operator.kept
    if len(operands) == 2:
        first, second = labels
        summed = [label for label in first if label not in output]
        both = all(label in second for label in summed)
        rows = all(label in first or label in output for label in second)
        if both and rows and all(len(set(each)) == len(each) for each in labels):
            return _matrix_product(w, operator, operands, labels)
    letters = [ascii_lowercase[label] for label in range(len(operator.sizes))]
    left = ",".join("".join(letters[label] for label in own) for own in labels)
    right = "".join(letters[label] for label in output)
    return w.emit("Einsum", *operands, equation=f"{left}->{right}")


def _labels(w: Writing, operator: Contract) -> list[tuple[int, ...]]:
    """The label of each dimension of each operand."""
    found = []
    for name, axes in zip(w.node.inputs, operator.operands, strict=True):
        plain = all(len(axis) == 1 and axis[0][1] == 1 for axis in axes)
        sizes = tuple(operator.sizes[axis[0][0]] for axis in axes) if plain else ()
        if not plain or w.type(name).shape != sizes:
            raise w.unsupported("sum of products over windows")
        found.append(tuple(axis[0][0] for axis in axes))
    joined = any(len(axis) != 1 for axis in operator.output)
    if joined or len(operator.sizes) > len(ascii_lowercase):
        raise w.unsupported("sum of products whose result has joined dimensions")
    return found


def _typed(w: Writing, name: str, dtype: DType) -> str:
    return name if w.type(name).dtype == dtype else w.cast(name, dtype)


def _matrix_product(
    w: Writing, operator: Contract, operands: list[str], labels: list[tuple[int, ...]]
) -> str:
    """``[batch, rows, summed] @ [batch, summed, columns]``; a constant is on the right."""
    output = operator.kept
    if w.value(operands[0]) is not None and w.value(operands[1]) is None:
        operands, labels = operands[::-1], labels[::-1]
    first, second = labels
    batch = [label for label in output if label in first and label in second]
    rows = [label for label in output if label in first and label not in second]
    columns = [label for label in output if label in second and label not in first]
    summed = [label for label in first if label not in output]
    sizes = operator.sizes
    free = not batch and len(columns) == 1 and len(summed) == 1 and rows
    left = _laid_out(w, operands[0], first, batch, rows, summed, sizes, apart=bool(free))
    right = _laid_out(w, operands[1], second, batch, summed, columns, sizes)
    found = w.emit("MatMul", left, right)
    order = [*batch, *rows, *columns]
    whole = [sizes[label] for label in order]
    known = (*_of(sizes, batch), _count(sizes, rows), _count(sizes, columns))
    if free:
        known = tuple(whole)
    found = w.reshaped(found, whole, known)
    return w.transposed(found, [order.index(label) for label in output])


def _laid_out(
    w: Writing,
    name: str,
    labels: Sequence[int],
    batch: Sequence[int],
    rows: Sequence[int],
    columns: Sequence[int],
    sizes: Sequence[int],
    apart: bool = False,
) -> str:
    """The operand as matrices; apart: with the dimensions of its rows as they are."""
    order = [*batch, *rows, *columns]
    value = w.value(name)
    shape = (*_of(sizes, batch), _count(sizes, rows), _count(sizes, columns))
    if apart:
        shape = tuple(_of(sizes, order))
    places = [labels.index(label) for label in order]
    if value is not None:
        same = value.shape == shape and places == sorted(places)
        return name if same else w.constant(value.transpose(places).reshape(shape), name)
    return w.reshaped(w.transposed(name, places), shape, tuple(_of(sizes, order)))


def _of(sizes: Sequence[int], labels: Sequence[int]) -> list[int]:
    return [sizes[label] for label in labels]


def _count(sizes: Sequence[int], labels: Sequence[int]) -> int:
    return prod(_of(sizes, labels))
