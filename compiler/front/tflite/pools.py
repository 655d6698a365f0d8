"""Converters of pooling."""

from ...dtypes import DType
from ...graph.formulas import Term
from ...graph.operators.integer.fixed_point import AverageFixed
from ...graph.operators.integer.windows import MaxPool2d
from ...graph.operators.windows import WindowFunction, WindowReduce
from .node import Converter, Node
from .products import by_image, is_bytes
from .quantized import activated, activation_limits, limits_of, signed_limits
from .windowing import pads_of, strides_of

__all__ = ["POOLS"]


def _window(
    node: Node, x: Term
) -> tuple[tuple[int, int], tuple[int, int], tuple[tuple[int, int], ...]]:
    node.require(x.rank == 4, "4 dimensions")
    kernel = node.attribute("filter_height"), node.attribute("filter_width")
    strides = strides_of(node)
    return kernel, strides, pads_of(node, x.shape[1:3], kernel, strides)


def _reduced(node: Node, x: Term, function: WindowFunction) -> tuple[Term, Term]:
    """Each window's maximum or sum, and how many elements of it are in the image."""
    kernel, strides, pads = _window(node, x)
    operator = WindowReduce((1, 2), kernel, strides, (1, 1), pads, function)
    found = node.emit(operator, x)
    (top, bottom), (left, right) = pads
    counting = AverageFixed(kernel, strides, (top, left, bottom, right), -128, 127)
    return found, node.constant(counting.counts(x.shape)[..., None], DType.INT64)


def convert_average_pool(node: Node) -> Term:
    """The mean of what of each window is in the image."""
    x = node.term(0)
    if is_bytes(node):
        kernel, strides, ((top, bottom), (left, right)) = _window(node, x)
        unsigned = x.dtype == DType.UINT8
        pads = (top, left, bottom, right)
        operator = AverageFixed(kernel, strides, pads, *signed_limits(node), unsigned)
        return by_image(
            node, x, lambda image: node.stored(node.emit(operator, node.signed(image)), x.dtype)
        )
    if x.dtype == DType.INT16:
        total, counts = _reduced(node, x.cast(DType.INT32), WindowFunction.ADD)
        size = counts.cast(DType.INT32)
        half = size >> 1
        mean = (total < 0).where(total - half, total + half, DType.INT32) / size
        return mean.clip(*activation_limits(node)).cast(x.dtype)
    total, counts = _reduced(node, x, WindowFunction.ADD)
    return activated(node, total / counts.cast(x.dtype))


def convert_max_pool(node: Node) -> Term:
    """The largest element of each window."""
    x = node.term(0)
    if x.dtype == DType.INT16:
        return _reduced(node, x, WindowFunction.MAX)[0].clip(*activation_limits(node))
    if not is_bytes(node):
        return activated(node, _reduced(node, x, WindowFunction.MAX)[0])
    kernel, strides, ((top, bottom), (left, right)) = _window(node, x)
    operator = MaxPool2d(kernel, strides, (top, left, bottom, right))
    low, high = signed_limits(node)

    def layer(image: Term) -> Term:
        result = node.emit(operator, node.signed(image))
        if (low, high) != limits_of(DType.INT8):
            result = result.clip(low, high)
        return node.stored(result, x.dtype)

    return by_image(node, x, layer)


def convert_l2_pool(node: Node) -> Term:
    """The root of the mean square of each window."""
    x = node.term(0)
    total, counts = _reduced(node, x * x, WindowFunction.ADD)
    return activated(node, (total / counts.cast(x.dtype)).sqrt())


POOLS: dict[str, Converter] = {
    "AVERAGE_POOL_2D": convert_average_pool,
    "L2_POOL_2D": convert_l2_pool,
    "MAX_POOL_2D": convert_max_pool,
}
