"""Models that targets once got wrong, made small."""

from collections.abc import Callable

import numpy as np
import pytest

from tests.compiler.graph.passes.integer_layers.models import ModelBuilder

from .compare import check
from .draw import Sample

Build = Callable[[ModelBuilder], tuple[str, tuple[int, ...], str]]
"""Builds a model that reads ``x``: its outputs' names, the shape of ``x``, the type of all."""


def _dequantized(b: ModelBuilder, x: str = "x", scale: float = 0.05) -> str:
    return b.dequantize(x, scale, np.int8(3))


def _conv(b: ModelBuilder, x: str, channels: int, to: int, kernel: int = 1) -> str:
    """A convolution with scales that are no powers of two, dequantised again."""
    rng = np.random.default_rng(channels)
    weights = rng.integers(-127, 128, (to, channels, kernel, kernel), np.int8)
    w = b.dequantize(b.constant(weights), 0.0037, np.int8(0))
    return _dequantized(b, b.quantize(b.node("Conv", [x, w]), 0.0411, np.int8(3)), 0.0411)


def joined_along_the_batch(b: ModelBuilder) -> tuple[str, tuple[int, ...], str]:
    """After a transpose, what are channels for the join are batches for the accelerator."""
    x = _conv(b, _dequantized(b), 3, 4)
    turned = b.node("Transpose", [x], perm=[2, 0, 3, 1])
    joined = b.node("Concat", [turned, turned], axis=1)
    return b.quantize(joined, 0.0411, np.int8(3)), (1, 3, 4, 5), "int8"


def softmax_in_small_steps(b: ModelBuilder) -> tuple[str, tuple[int, ...], str]:
    """Exponentials times the steps of 1 were infinite for scales below 1 / (148 * 16)."""
    x = b.node("Flatten", [_conv(b, _dequantized(b, scale=0.01), 2, 4)])
    return b.quantize(b.node("Softmax", [x], axis=-1), 0.0003, np.int8(-128)), (1, 2, 2, 2), "int8"


def limits_of_float(b: ModelBuilder) -> tuple[str, tuple[int, ...], str]:
    """In steps, the largest float32 is infinite."""
    rng = np.random.default_rng(0)
    w = b.dequantize(b.constant(rng.integers(-127, 128, (4, 3, 1, 1), np.int8)), 0.0037, np.int8(0))
    limits = [b.constant(np.float32(limit)) for limit in (0, np.finfo(np.float32).max)]
    clipped = b.node("Clip", [b.node("Conv", [_dequantized(b), w]), *limits])
    return b.quantize(clipped, 0.05, np.int8(-128)), (1, 3, 4, 5), "int8"


def rows_times_large_negative_numbers(b: ModelBuilder) -> tuple[str, tuple[int, ...], str]:
    """As weights of a convolution they were taken for int8."""
    x = _conv(b, _dequantized(b), 3, 3)
    rows = b.node("Gather", [x, b.constant(np.array([1, 0, 3, 2]))], axis=2)
    factors = np.array([1, -2, -300, 2], np.float32).reshape(1, 1, 4, 1)
    product = b.node("Mul", [rows, b.constant(factors)])
    return b.quantize(product, 2.05, np.int8(-28)), (1, 3, 4, 5), "int8"


def _function_in_a_border(border: float) -> Build:
    def build(b: ModelBuilder) -> tuple[str, tuple[int, ...], str]:
        x = b.node("Sigmoid", [_conv(b, _dequantized(b), 3, 3)])
        pads = b.constant(np.array([0, 0, 1, 1, 0, 0, 1, 1]))
        padded = b.node("Pad", [x, pads, b.constant(np.float32(border))])
        return b.quantize(padded, 0.0041, np.int8(-128)), (1, 3, 4, 5), "int8"

    build.__name__ = f"function_in_a_border_of_{border}"
    return build


def product_of_bytes(b: ModelBuilder) -> tuple[str, tuple[int, ...], str]:
    """There was no QLinearMul."""
    x = [b.constant(np.float32(0.05)), b.constant(np.int8(3))]
    y = [b.constant(np.float32(0.7)), b.constant(np.int8(-11))]
    product = b.node("QLinearMul", ["x", *x, "x", *x, *y], domain="com.microsoft")
    return product, (1, 3, 6, 6), "int8"


def input_as_output(b: ModelBuilder) -> tuple[str, tuple[int, ...], str]:
    """A transpose of one pixel is another name for the input; the model was refused for it."""
    same = b.node("Transpose", ["x"], perm=[0, 1, 2, 3])
    limits = [b.constant(np.array(each)) for each in ([0, 0], [1, 1], [1, 2])]
    x = b.node("Ceil", [_dequantized(b, b.node("Slice", ["x", *limits]))])
    return f"{same} {b.quantize(x, 0.07, np.int8(3))}", (1, 2, 1, 2), "int8"


def small_softplus(b: ModelBuilder) -> tuple[str, tuple[int, ...], str]:
    """``log(1 + exp(x))`` was 0 below -17."""
    soft = b.node("Softplus", [_dequantized(b, scale=0.6)])
    return b.quantize(soft, 3e-10, np.int8(-128)), (1, 3, 8, 8), "int8"


def product_with_its_rows_repeated(b: ModelBuilder) -> tuple[str, tuple[int, ...], str]:
    """The result had the shape of what was repeated."""
    x = _dequantized(b)
    rows = b.node("Expand", [x, b.constant(np.array([1, 16, 2, 1]))])
    again = _dequantized(b, b.quantize(rows, 0.05, np.int8(3)))
    return b.quantize(b.node("Mul", [x, again]), 0.3, np.int8(-8)), (1, 16, 1, 1), "int8"


def product_with_rows_that_are_an_output(b: ModelBuilder) -> tuple[str, tuple[int, ...], str]:
    """The output was read as if no pixels of zeros lay between its channel blocks."""
    rng = np.random.default_rng(0)
    w = b.dequantize(b.constant(rng.integers(-127, 128, (16, 16), np.int8)), 0.01, np.int8(0))
    stored = b.quantize(b.node("MatMul", [_dequantized(b), w]), 0.05, np.int8(3))
    turned = b.node("Transpose", [_dequantized(b, stored)], perm=[0, 2, 1])
    product = b.quantize(b.node("MatMul", [_dequantized(b), turned]), 0.2, np.int8(-9))
    return f"{product} {stored}", (1, 9, 16), "int8"


def product_of_a_row_with_itself(b: ModelBuilder) -> tuple[str, tuple[int, ...], str]:
    """The host's step from uint8 hid that the host makes the rows."""
    x = b.dequantize("x", 0.004, np.uint8(92))
    turned = b.quantize(b.node("Transpose", [x], perm=[1, 0]), 0.004, np.uint8(92))
    product = b.node("MatMul", [x, b.dequantize(turned, 0.004, np.uint8(92))])
    own = b.quantize(b.node("Relu", [x]), 0.004, np.uint8(0))
    return f"{b.quantize(product, 0.02, np.uint8(9))} {own}", (1, 20), "uint8"


def products_of_heads_of_five_channels(b: ModelBuilder) -> tuple[str, tuple[int, ...], str]:
    """All rows were taken for those of one matrix."""
    x = _dequantized(b)
    turned = b.quantize(b.node("Transpose", [x], perm=[0, 1, 3, 2]), 0.05, np.int8(3))
    product = b.node("MatMul", [x, _dequantized(b, turned)])
    own = b.quantize(b.node("Relu", [x]), 0.05, np.int8(3))
    return f"{b.quantize(product, 0.3, np.int8(-9))} {own}", (1, 2, 12, 5), "int8"


def gelu_of_onnx_runtime(b: ModelBuilder) -> tuple[str, tuple[int, ...], str]:
    """It stands in models that ONNX Runtime has optimised, and was not known."""
    gelu = b.node("Gelu", [_conv(b, _dequantized(b), 3, 3)], domain="com.microsoft")
    return b.quantize(gelu, 0.0411, np.int8(-120)), (1, 3, 4, 5), "int8"


def part_of_one_row(b: ModelBuilder) -> tuple[str, tuple[int, ...], str]:
    """A slice asked for the second dimension of a tensor that has one."""
    row = b.node("Gather", [_conv(b, _dequantized(b), 3, 4), b.constant(np.int64(0))])
    for _ in range(2):
        row = b.node("Gather", [row, b.constant(np.int64(1))])
    limits = [b.constant(np.array(each)) for each in ([1], [4])]
    part = b.node("Slice", [_dequantized(b, b.quantize(row, 0.0411, np.int8(3)), 0.0411), *limits])
    return b.quantize(part, 0.0411, np.int8(3)), (1, 3, 4, 5), "int8"


def rows_of_an_image_before_another(b: ModelBuilder) -> tuple[str, tuple[int, ...], str]:
    """They were taken for rows of one image."""
    x = _conv(b, _dequantized(b), 3, 5)
    limits = [b.constant(np.array(each)) for each in ([1], [4], [2])]
    parts = b.node("Slice", [x, *limits]), b.node("Neg", [x])
    parts = [_dequantized(b, b.quantize(part, 0.0411, np.int8(3)), 0.0411) for part in parts]
    joined = b.quantize(b.node("Concat", parts, axis=2), 0.0411, np.int8(3))
    joined = _dequantized(b, joined, 0.0411)
    return b.quantize(_conv(b, joined, 5, 4), 0.0411, np.int8(3)), (1, 3, 6, 5), "int8"


def products_with_rows_that_other_parts_read(b: ModelBuilder) -> tuple[str, tuple[int, ...], str]:
    """The rows, spread to blocks, are outputs of the accelerator's part too."""
    shape = b.constant(np.array([1, 5, 7, 1]))
    x = b.node("Reshape", [_dequantized(b), shape])
    rows = _dequantized(b, b.quantize(x, 0.04, np.int8(3)), 0.04)
    lengths = b.constant(np.ones(5, np.int64))
    other = b.node("ReverseSequence", [rows, lengths], batch_axis=1, time_axis=0)
    other = _dequantized(b, b.quantize(other, 0.04, np.int8(3)), 0.04)
    turned = b.node("Transpose", [other], perm=[0, 1, 3, 2])
    turned = _dequantized(b, b.quantize(turned, 0.04, np.int8(3)), 0.04)
    return b.quantize(b.node("MatMul", [rows, turned]), 0.1, np.int8(3)), (1, 5, 1, 7), "int8"


FOUND: tuple[Build, ...] = (
    products_with_rows_that_other_parts_read,
    part_of_one_row,
    rows_of_an_image_before_another,
    small_softplus,
    product_with_its_rows_repeated,
    product_with_rows_that_are_an_output,
    product_of_a_row_with_itself,
    products_of_heads_of_five_channels,
    gelu_of_onnx_runtime,
    input_as_output,
    product_of_bytes,
    joined_along_the_batch,
    softmax_in_small_steps,
    limits_of_float,
    rows_times_large_negative_numbers,
    _function_in_a_border(0.5),
    _function_in_a_border(0),
)


@pytest.mark.parametrize("target", ["cpu", "vta:tiny"])
@pytest.mark.parametrize("build", FOUND, ids=lambda build: build.__name__)
def test_a_model_is_right(build: Build, target: str) -> None:
    b = ModelBuilder()
    outputs, shape, dtype = build(b)
    first, *others = outputs.split()
    model = b.build({"x": (dtype, shape)}, first, dtype)
    for name in others:
        model.graph.output.append(model.graph.output[0])
        model.graph.output[-1].name = name
    rng = np.random.default_rng(1)
    limits = np.iinfo(dtype)
    x = rng.integers(limits.min, limits.max + 1, shape, dtype)
    check(Sample(model, ({"x": x},)), target)
