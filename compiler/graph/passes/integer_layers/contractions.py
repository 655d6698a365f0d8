"""Convolutions and matrix products of a dequantised tensor and constant weights;
matrix products of two dequantised tensors.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ....dtypes import DType
from ...ir import Node
from ...operators.contractions import Contract, Convolution
from ...operators.indexing import Gather
from ...operators.integer.products import Conv2d, ConvTranspose2d, Dense, RowProducts
from ...operators.integer.rules import Pads
from ...operators.movement import Reshape
from ...operators.transposed import TransposedConvolution
from .channel_constants import check_sums
from .channel_scales import of_depthwise
from .layouts import permuted, to_model_order, to_nhwc
from .state import State, UnrecognisedError
from .values import (
    F32,
    NCHW_TO_NHWC,
    Accumulated,
    Array,
    ByChannel,
    Products,
    Real,
    RealConstant,
    Value,
    identity_order,
)

__all__ = ["recognise_contract", "recognise_convolution", "recognise_transposed"]

NCW_TO_NWC = (0, 2, 1)


def recognise_convolution(state: State, node: Node) -> Value:
    """A convolution of an image, or of rows, which are images one pixel high."""
    operator = node.operator
    assert isinstance(operator, Convolution)
    given, w = state.value(node.inputs[0]), state.weights(node.inputs[1])
    if isinstance(given, ByChannel):
        x, w = of_depthwise(given, w, operator.groups)
    else:
        x = state.real(node.inputs[0])
    if w.values.ndim == 3:
        operator, w = _of_rows(operator), replace(w, values=w.values[:, :, None])
    _require_image(w, operator.dtype)
    weights, zero = _int8_weights(w, 0)
    if set(operator.expansions) != {1}:
        raise UnrecognisedError(f"expansions {list(operator.expansions)}; required 1")
    (down, across), (tall, wide) = operator.strides, operator.dilations
    convolution = Conv2d(
        (down, across), _sides(operator.pads), operator.groups, x.zero_point, zero, (tall, wide)
    )
    return _image_sums(state, node, convolution, x, w, weights)


def _of_rows(operator: Convolution) -> Convolution:
    """The convolution of an image that one of rows is."""
    return replace(
        operator,
        strides=(1, *operator.strides),
        dilations=(1, *operator.dilations),
        pads=((0, 0), *operator.pads),
        expansions=(1, *operator.expansions),
    )


def recognise_transposed(state: State, node: Node) -> Value:
    """A transposed convolution of an image.

    The model's float sums may round differently from ours, which are exact: ties may differ by one.
    """
    operator = node.operator
    assert isinstance(operator, TransposedConvolution)
    x, w = state.real(node.inputs[0]), state.weights(node.inputs[1])
    _require_image(w, operator.dtype)
    w = _turned(w, operator.groups)
    weights, zero = _int8_weights(w, 0)
    weights = _apart(weights, operator.dilations, zero)
    (down, across), (more, wider) = operator.strides, operator.added
    convolution = ConvTranspose2d(
        (down, across), _sides(operator.pads), (more, wider), operator.groups, x.zero_point, zero
    )
    return _image_sums(state, node, convolution, x, w, weights)


def recognise_contract(state: State, node: Node) -> Value:
    """The product of a tensor's last dimension and a matrix."""
    operator = node.operator
    assert isinstance(operator, Contract)
    if len(node.inputs) != 2:
        raise UnrecognisedError(f"a product of {len(node.inputs)} tensors; required two")
    if all(isinstance(state.values.get(name), Real) for name in node.inputs):
        return _row_products(state, node, operator)
    x, w = state.real(node.inputs[0]), state.weights(node.inputs[1])
    if w.values.ndim != 2:
        raise UnrecognisedError(f"weights with {w.values.ndim} dimensions; required 2")
    rows, matrix = operator.operands
    transposed = matrix[1:] == rows[-1:]
    column = matrix[0 if transposed else 1]
    plain = (*rows[:-1], column) == operator.output and rows[-1] in matrix
    single = all(len(axis) == 1 and axis[0][1] == 1 for axis in (*rows, *matrix))
    if not plain or not single or operator.dtype != DType.FLOAT32 or len(operator.summed) != 1:
        raise UnrecognisedError(
            "sums products, but not as a matrix product; required one, in float32"
        )
    weights, zero = _int8_weights(w, 0 if transposed else 1)
    weights = weights if transposed else weights.T
    name = to_model_order(state.builder, x.tensor, node.origin)
    rank = len(x.tensor.permutation)
    return _accumulated(
        state, node, Dense(x.zero_point, zero), x, name, w, weights, identity_order(rank), rank - 1
    )


def _row_products(state: State, node: Node, operator: Contract) -> Products:
    """The products of two tensors' rows; the second one's may be columns in the model."""
    x, y = (state.real(name) for name in node.inputs)
    left, right = operator.operands
    rank, (*batch, row, inner) = len(left), left
    transposed = right[-1:] == left[-1:]
    column = right[-2 if transposed else -1]
    plain = (
        right[-1 if transposed else -2] == inner
        and [each for each in batch if each in right[:-2]] == list(right[:-2])
        and operator.output == (*batch, row, column)
        and len({*left, column}) == rank + 1
    )
    single = all(len(axis) == 1 and axis[0][1] == 1 for axis in (*left, *right))
    if not plain or not single or operator.dtype != DType.FLOAT32:
        raise UnrecognisedError(
            "multiplies two tensors in another way than matrix by matrix; required that, in float32"
        )
    rows = to_model_order(state.builder, x.tensor, node.origin)
    last = identity_order(len(right))
    last = last if transposed else (*last[:-2], last[-1], last[-2])
    others = permuted(state.builder, y.tensor, last, node.origin)
    others = _repeated(state, others, [each in right for each in batch], rows, node.origin)
    products = RowProducts(x.zero_point, y.zero_point)
    products.result((state.builder.types[rows], state.builder.types[others]))
    return Products(products, rows, others, x.scale * y.scale, node.output, node.origin)


def _repeated(state: State, name: str, has: Sequence[bool], rows: str, origin: str) -> str:
    """Matrices for each of those of ``rows``, which may share them, as heads of queries share one
    of keys.  has: dimensions of several matrices that the shared ones have.
    """
    builder = state.builder
    shape, matrix = builder.types[rows].shape, builder.types[name].shape[-2:]
    counts = [size if own else 1 for size, own in zip(shape[:-2], has, strict=True)]
    if not all(has):
        name = builder.node(Reshape((*counts, *matrix)), (name,), f"{name}/shared", origin)
    for axis, own in enumerate(has):
        if not own and shape[axis] > 1:
            again = builder.constant(f"{name}/again", np.zeros(shape[axis], np.int64))
            name = builder.node(Gather(axis), (name, again), f"{name}/repeated", origin)
    return name


def _image_sums(
    state: State,
    node: Node,
    operator: Conv2d | ConvTranspose2d,
    x: Real,
    w: RealConstant,
    weights: Array,
) -> Accumulated:
    weights = weights.transpose(0, 2, 3, 1)
    if len(x.tensor.permutation) == 4:
        name = to_nhwc(state.builder, x.tensor, node.origin)
        return _accumulated(state, node, operator, x, name, w, weights, NCHW_TO_NHWC, 1)
    name = permuted(state.builder, x.tensor, NCW_TO_NWC, node.origin)
    count, *size = state.builder.types[name].shape
    name = state.builder.node(Reshape((count, 1, *size)), (name,), node.output, node.origin)
    return _accumulated(state, node, operator, x, name, w, weights, NCW_TO_NWC, 1)


def _accumulated(
    state: State,
    node: Node,
    operator: Conv2d | ConvTranspose2d | Dense,
    x: Real,
    name: str,
    w: RealConstant,
    weights: Array,
    permutation: tuple[int, ...],
    channel: int,
) -> Accumulated:
    """The sum of products of the stored tensor ``name`` and ``weights``, as they are stored."""
    bias = np.zeros(len(weights))
    check_sums(operator, weights, bias, node.origin)
    stored = state.builder.constant(f"{node.output}/weights", weights)
    return Accumulated(
        operator,
        name,
        stored,
        bias,
        x.scale,
        w.scales,
        permutation,
        channel,
        node.output,
        node.origin,
    )


def _int8_weights(constant: RealConstant, channel_axis: int) -> tuple[Array, int]:
    """The weights as int8, and the zero point that is still to be subtracted from each: 0 when all
    weights less theirs are int8.

    Raises UnrecognisedError for another element type, and when the zero points differ and some
    weight less its own is not int8.
    """
    values, count = constant.values, constant.values.shape[channel_axis]
    if values.dtype not in (np.int8, np.uint8):
        raise UnrecognisedError(f"weights are {values.dtype}; required int8 or uint8")
    if constant.scales.size != 1 and (
        constant.axis != channel_axis or constant.scales.size != count
    ):
        raise UnrecognisedError(
            f"{constant.scales.size} weight scales along axis {constant.axis}; required one, or "
            f"{count} along axis {channel_axis}"
        )
    shape = [1] * values.ndim
    shape[channel_axis] = -1
    shifted = values.astype(np.int64) - constant.zero_points.reshape(shape)
    if shifted.min() >= -128 and shifted.max() <= 127:
        return shifted.astype(np.int8), 0
    if len(set(constant.zero_points.tolist())) > 1:
        raise UnrecognisedError(
            "weights less their zero points, which differ, reach "
            f"{int(shifted.min())}..{int(shifted.max())}; required -128..127, or one zero point; "
            "quantise the weights symmetrically (zero point 0 for int8)"
        )
    center = 128 if values.dtype == np.uint8 else 0
    stored = (values.astype(np.int64) - center).astype(np.int8)
    return stored, int(constant.zero_points[0]) - center


def _require_image(w: RealConstant, dtype: DType) -> None:
    if w.values.ndim != 4:
        raise UnrecognisedError(f"{w.values.ndim - 2} spatial dimensions; required 2")
    if dtype != DType.FLOAT32:
        raise UnrecognisedError(f"sums in {dtype}; required float32")


def _sides(pads: tuple[tuple[int, int], ...]) -> Pads:
    (top, bottom), (left, right) = pads
    if min(top, bottom, left, right) < 0:
        raise UnrecognisedError(f"pads {pads}; required at least 0")
    return top, left, bottom, right


def _apart(weights: Array, dilations: tuple[int, ...], zero: int) -> Array:
    """Weights [O, C, KH, KW] with taps that count as 0 between those of a dilated kernel."""
    *outer, height, width = weights.shape
    down, across = dilations
    size = (*outer, (height - 1) * down + 1, (width - 1) * across + 1)
    wide = np.full(size, zero, weights.dtype)
    wide[:, :, ::down, ::across] = weights
    return wide


def _turned(w: RealConstant, groups: int) -> RealConstant:
    """Weights [C, O / groups, KH, KW] as [O, C / groups, KH, KW], the first axis that of scales."""
    channels, outputs, *kernel = w.values.shape
    if w.scales.size > 1 and (w.axis != 1 or w.scales.size != outputs):
        raise UnrecognisedError(
            f"{w.scales.size} weight scales along axis {w.axis}; required one, or {outputs} along "
            "axis 1"
        )
    apart = w.values.reshape(groups, channels // groups, outputs, *kernel)
    values = apart.swapaxes(1, 2).reshape(groups * outputs, channels // groups, *kernel)
    if w.scales.size == 1:
        return replace(w, values=values, axis=0)
    scales, zeros = np.tile(w.scales, groups), np.tile(w.zero_points, groups)
    return RealConstant(values, scales.astype(F32), zeros, 0)
