"""Pooling, means and softmax: WindowReduce, Reduce and the division after them, SoftmaxRows."""

from dataclasses import replace

import numpy as np

from ...ir import Node
from ...operators.integer.products import Conv2d
from ...operators.integer.rules import Pads, Pair
from ...operators.integer.windows import MaxPool2d
from ...operators.movement import Reshape
from ...operators.reductions import Reduce, ReduceFunction
from ...operators.rows import SoftmaxRows
from ...operators.windows import WindowFunction, WindowReduce
from .layouts import (
    columns_of_groups,
    image_of_rows,
    inverted,
    is_as_made,
    model_shape,
    permuted,
    rows_of_image,
    to_nhwc,
)
from .state import State, UnrecognisedError
from .values import (
    F32,
    NCHW_TO_NHWC,
    Accumulated,
    Array,
    Averaged,
    Integer,
    Moved,
    Real,
    Softmaxed,
    Totals,
    Value,
    WindowSums,
    identity_order,
)

__all__ = [
    "divided",
    "recognise_reduce",
    "recognise_softmax",
    "recognise_window",
    "scaled_mean",
    "undivided",
]

ROWS_RANK = 3
"""Dimensions of rows of channels, [N, T, C]."""

EXTREMES = {ReduceFunction.MAX: "maximum", ReduceFunction.MIN: "minimum"}

STEPS = 64
"""Stands for 1 in a mean's weights, so that a bias is rounded to small steps."""


def recognise_window(state: State, node: Node) -> Value:
    """The maximum or the sum of each window of an image, or of rows, images one pixel high."""
    operator = node.operator
    assert isinstance(operator, WindowReduce)
    of_rows = operator.axes == (2,)
    if of_rows:
        operator = _of_rows(operator)
    if operator.axes != (2, 3):
        raise UnrecognisedError(
            f"windows over axes {list(operator.axes)}; required an image or rows"
        )
    if operator.dilations != (1, 1):
        raise UnrecognisedError(f"dilations {list(operator.dilations)}; required 1")
    if operator.function is not WindowFunction.MAX:
        return _window_sums(state, node, operator, of_rows)
    value, tensor = state.integer(node.inputs[0])
    if of_rows:
        tensor = image_of_rows(state.builder, tensor, 2, node.origin)
    name = to_nhwc(state.builder, tensor, node.origin)
    pool = MaxPool2d(_pair(operator.kernel), _pair(operator.strides), _sides(operator))
    name = state.builder.node(pool, (name,), node.output, node.origin)
    pooled = replace(tensor, name=name, permutation=NCHW_TO_NHWC)
    if of_rows:
        pooled = rows_of_image(state.builder, pooled, 2, node.output, node.origin)
    return replace(value, tensor=pooled) if isinstance(value, Real) else pooled


def _of_rows(operator: WindowReduce) -> WindowReduce:
    """The windows of an image that those of rows are."""
    return replace(
        operator,
        axes=(2, 3),
        kernel=(1, *operator.kernel),
        strides=(1, *operator.strides),
        pads=((0, 0), *operator.pads),
        dilations=(1, *operator.dilations),
    )


def recognise_reduce(state: State, node: Node) -> Value:
    """The sum over dimensions, which a division makes a mean; the largest or least of an image."""
    operator = node.operator
    assert isinstance(operator, Reduce)
    if operator.function in EXTREMES:
        return _extreme(state, node, operator)
    if operator.function is not ReduceFunction.SUM:
        raise UnrecognisedError(
            f"the {operator.function.value} over axes {list(operator.axes)}; required the mean, "
            "sum, max or min over height and width"
        )
    groups = _groups(state.value(node.inputs[0]))
    if groups is not None:
        return Totals(groups.real, operator.axes, operator.keep, groups.kernel[1])
    real = state.real(node.inputs[0])
    if operator.axes == (1,) and len(real.tensor.permutation) == 5 and not operator.keep:
        return _sum_of_groups(state, node, real)
    return Totals(real, operator.axes, operator.keep)


def _sum_of_groups(state: State, node: Node, real: Real) -> Averaged:
    """The sum over G of [N, G, C, H, W]: G times the mean of G columns."""
    groups = model_shape(state.builder, real.tensor)[1]
    image = columns_of_groups(state.builder, real.tensor, node.origin)
    times = Real(image, F32(real.scale * groups), real.zero_point)
    size = (1, groups)
    return Averaged(times, NCHW_TO_NHWC, size, size, (0, 0, 0, 0), rounds_mean=True)


def _groups(value: Value) -> Averaged | None:
    """A sum of groups, as above, whose own sums are to be taken before it is quantised."""
    if not isinstance(value, Averaged) or value.permutation != NCHW_TO_NHWC or not value.keeps:
        return None
    plain = value.kernel[0] == 1 and value.kernel == value.strides and not any(value.pads)
    return value if plain else None


def _window_sums(state: State, node: Node, operator: WindowReduce, of_rows: bool) -> WindowSums:
    (name,) = node.inputs
    groups = _groups(state.value(name))
    if groups is None:
        real = state.real(name)
        if of_rows:
            image = image_of_rows(state.builder, real.tensor, 2, node.origin)
            real = replace(real, tensor=image)
        return WindowSums(real, operator, of_rows=of_rows)
    count = groups.kernel[1]
    (tall, wide), (down, across) = operator.kernel, operator.strides
    rows, (left, right) = operator.pads
    wider = replace(
        operator,
        kernel=(tall, wide * count),
        strides=(down, across * count),
        pads=(rows, (left * count, right * count)),
    )
    return WindowSums(groups.real, wider, count)


def _extreme(state: State, node: Node, operator: Reduce) -> Value:
    """The largest elements; the least ones are the largest with all bits turned, turned back."""
    value, tensor = state.integer(node.inputs[0])
    if operator.function is ReduceFunction.MAX:
        found = _largest(state, node, tensor, operator)
    else:
        turned = _largest(state, node, inverted(state.builder, tensor, node.origin), operator)
        found = inverted(state.builder, turned, node.origin)
    return replace(value, tensor=found) if isinstance(value, Real) else found


def _largest(state: State, node: Node, tensor: Integer, operator: Reduce) -> Integer:
    builder, axes = state.builder, operator.axes
    shape, rows = model_shape(builder, tensor), None
    if len(shape) == ROWS_RANK and axes in ((1,), (2,)) and not _in_lanes(state, tensor, axes[0]):
        (rows,) = axes
        tensor = image_of_rows(builder, tensor, rows, node.origin)
        shape, axes = model_shape(builder, tensor), (2, 3)
    if len(shape) != 4 or not set(axes) <= {2, 3} or not (operator.keep or len(axes) == 2):
        raise UnrecognisedError(
            f"the {EXTREMES[operator.function]} over axes {list(axes)} of {len(shape)}; required "
            "the height and width of an image, or the length of rows"
        )
    kernel = tuple(shape[axis] if axis in axes else 1 for axis in (2, 3))
    name = to_nhwc(builder, tensor, node.origin)
    pool = MaxPool2d(_pair(kernel), (1, 1), (0, 0, 0, 0))
    name = builder.node(pool, (name,), node.output, node.origin)
    pooled = replace(tensor, name=name, permutation=NCHW_TO_NHWC)
    if not operator.keep:
        name = builder.node(Reshape(shape[:2]), (name,), node.output, node.origin)
        pooled = replace(tensor, name=name, permutation=identity_order(2))
    elif rows:
        pooled = rows_of_image(builder, pooled, rows, node.output, node.origin)
    return pooled


def _in_lanes(state: State, tensor: Integer, axis: int) -> bool:
    """True if dimension ``axis`` of the model is what a layer made as channels."""
    return tensor.permutation[-1] == axis and is_as_made(state.builder, tensor.name)


def recognise_softmax(state: State, node: Node) -> Value:
    """Softmax over the last dimension."""
    operator = node.operator
    assert isinstance(operator, SoftmaxRows)
    if operator.logarithm:
        raise UnrecognisedError("the logarithm of softmax; required softmax")
    return Softmaxed(state.real(node.inputs[0]))


def divided(
    state: State, sums: WindowSums | Totals, divisor: Array, origin: str
) -> Averaged | Accumulated | Moved:
    """Sums as means, if ``divisor`` says how many elements each is of.

    Raises UnrecognisedError.
    """
    divisor = divisor * sums.groups
    if isinstance(sums, Totals):
        return _mean(state, sums, divisor, origin)
    operator, kernel = sums.operator, _pair(sums.operator.kernel)
    wrong = UnrecognisedError("sums of windows divided by other than their sizes")
    if divisor.size == 1 and divisor.reshape(-1)[0] == kernel[0] * kernel[1]:
        counts = True
    else:
        _, _, height, width = model_shape(state.builder, sums.real.tensor)
        plane = replace(operator, axes=(0, 1)).evaluate([np.ones((height, width), F32)])[0]
        if divisor.size not in (1, plane.size) or not np.array_equal(
            np.broadcast_to(divisor.reshape(divisor.shape[-2:]), plane.shape), plane
        ):
            raise wrong
        counts = False
    strides, pads = _pair(operator.strides), _sides(operator)
    means = Averaged(
        sums.real, NCHW_TO_NHWC, kernel, strides, pads, rounds_mean=True, counts=counts
    )
    if not sums.of_rows:
        return means
    count, channels, _, width = model_shape(state.builder, sums.real.tensor)
    length = (width + pads[1] + pads[3] - kernel[1]) // strides[1] + 1
    return _moved_to_rows(means, (count, channels, length), origin)


def _moved_to_rows(means: Averaged, shape: tuple[int, ...], origin: str) -> Moved:
    """Means of an image that is one pixel high, as rows of ``shape``."""
    return Moved(means, (Node(Reshape(shape), (), f"{origin}/rows", origin),))


def undivided(state: State, totals: Totals, origin: str) -> Averaged | Accumulated | Moved:
    """Sums as means of as many times the scale.  Raises UnrecognisedError."""
    shape = model_shape(state.builder, totals.real.tensor)
    count = F32(np.prod([shape[axis] for axis in totals.axes]))
    real = replace(totals.real, scale=totals.real.scale * (count / F32(totals.groups)))
    return _mean(state, replace(totals, real=real), np.array(count), origin)


def _mean(
    state: State, totals: Totals, divisor: Array, origin: str
) -> Averaged | Accumulated | Moved:
    tensor, axes = totals.real.tensor, totals.axes
    rank = len(tensor.permutation)
    if rank == ROWS_RANK and axes in ((1,), (2,)) and not _in_lanes(state, tensor, axes[0]):
        image = image_of_rows(state.builder, tensor, axes[0], origin)
        real = replace(totals.real, tensor=image)
        means = _mean(state, Totals(real, (2, 3), totals.keeps), divisor, origin)
        if not totals.keeps:
            return means
        assert isinstance(means, Averaged)
        count, channels, *_ = model_shape(state.builder, image)
        shape = (count, 1, channels) if axes == (1,) else (count, channels, 1)
        return _moved_to_rows(means, shape, origin)
    if rank == 4 and axes == (1,) and totals.keeps:
        return _mean_of_channels(state, totals.real, divisor, origin)
    part = len(axes) == 1 and totals.keeps and axes[0] in (2, 3)
    if rank != 4 or (len(axes) != 2 and not part) or 0 in axes:
        raise UnrecognisedError(
            f"sums over axes {list(axes)} of {rank}; required the height and width of an image, or "
            "its channels with keepdims"
        )
    down, across = (2, 3) if part else axes
    (channels,) = {1, 2, 3} - {down, across}
    order = (0, down, across, channels)
    name = permuted(state.builder, totals.real.tensor, order, origin)
    size = state.builder.types[name].shape[1:3]
    kernel = _pair(
        tuple(n if axis in axes else 1 for axis, n in zip((down, across), size, strict=True))
    )
    if divisor.size != 1 or divisor.reshape(-1)[0] != kernel[0] * kernel[1]:
        raise UnrecognisedError("a sum divided by other than the number of its elements")
    return Averaged(
        totals.real, order, kernel, kernel, (0, 0, 0, 0), rounds_mean=False, keeps=totals.keeps
    )


def scaled_mean(state: State, mean: Averaged, factors: Array, origin: str) -> Accumulated:
    """A mean over whole images times one factor a channel: a convolution of as large a window.

    Raises UnrecognisedError for other means and factors.
    """
    x = permuted(state.builder, mean.real.tensor, mean.permutation, origin)
    _, height, width, channels = state.builder.types[x].shape
    whole = mean.kernel == (height, width) and not any(mean.pads)
    if not whole or factors.size not in (1, channels) or not factors.all():
        raise UnrecognisedError(
            "scales what is not a mean of rows or images, or not channel by channel; required that "
            "it is quantised first"
        )
    each = np.broadcast_to(factors.reshape(-1), (channels,)).astype(F32)
    ones = np.broadcast_to(np.sign(each)[:, None, None, None], (channels, *mean.kernel, 1))
    weights = state.builder.constant(f"{x}/factors", (STEPS * ones).astype(np.int8))
    return Accumulated(
        Conv2d((1, 1), (0, 0, 0, 0), channels, mean.real.zero_point, 0),
        x,
        weights,
        np.zeros(channels, np.int64),
        mean.real.scale,
        np.asarray(np.abs(each) / F32(STEPS * height * width), F32),
        mean.permutation if mean.keeps else identity_order(2),
        1,
        f"{x}/mean",
        origin,
    )


def _mean_of_channels(state: State, real: Real, divisor: Array, origin: str) -> Accumulated:
    """A convolution whose weights are 1."""
    x = to_nhwc(state.builder, real.tensor, origin)
    channels = state.builder.types[x].shape[3]
    if divisor.size != 1 or divisor.reshape(-1)[0] != channels:
        raise UnrecognisedError("a sum divided by other than the number of its elements")
    weights = state.builder.constant(f"{x}/ones", np.ones((1, 1, 1, channels), np.int8))
    return Accumulated(
        Conv2d((1, 1), (0, 0, 0, 0), 1, real.zero_point, 0),
        x,
        weights,
        np.zeros(1, np.int64),
        real.scale,
        np.array([1 / channels], F32),
        NCHW_TO_NHWC,
        1,
        f"{x}/mean",
        origin,
    )


def _pair(values: tuple[int, ...]) -> Pair:
    return values[0], values[1]


def _sides(operator: WindowReduce) -> Pads:
    (top, bottom), (left, right) = operator.pads
    if min(top, bottom, left, right) < 0:
        raise UnrecognisedError(f"pads {operator.pads}; required at least 0")
    return top, left, bottom, right
