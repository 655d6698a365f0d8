"""Models that the importer refuses, each with the one error that says why."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from dovetail.compiler.errors import ModelError, UnsupportedOperatorError
from dovetail.compiler.front.onnx.source import SourceModel

from .models import F32, ModelBuilder, integer_graph

X = (F32(0.05), np.int8(-3))
Y = (F32(0.031), np.int8(7))
SHAPE = (1, 3, 8, 6)


def conv_model(
    weights: np.ndarray | None = None,
    bias: np.ndarray | None = None,
    bias_scale: float = 0.05 * 0.01,
    zero: np.generic | np.ndarray | None = None,
    shape: tuple[int | str, ...] = SHAPE,
    **attributes: Any,
) -> onnx.ModelProto:
    """One convolution, by default a good one."""
    b = ModelBuilder()
    values = np.ones((4, 3, 3, 3), np.int8) if weights is None else weights
    zero = values.dtype.type(0) if zero is None else zero
    scale = np.full(np.shape(zero), 0.01)
    w = b.dequantize(b.constant(values), scale, zero, **{"axis": 0} if scale.shape else {})
    inputs = [b.dequantize("x", *X), w]
    if bias is not None:
        inputs.append(b.dequantize(b.constant(bias), bias_scale, bias.dtype.type(0)))
    y = b.quantize(b.node("Conv", inputs, **attributes), *Y)
    return b.build({"x": ("int8", shape)}, y)


def transposed(scales: int = 0, axis: int = 0, **attributes: Any) -> onnx.ModelProto:
    """One transposed convolution; its weights have one scale, or some along an axis."""
    b = ModelBuilder()
    many = [np.full(scales, 0.01), np.zeros(scales, np.int8)] if scales else [0.01, np.int8(0)]
    along = {"axis": axis} if scales else {}
    w = b.dequantize(b.constant(np.ones((3, 4, 3, 3), np.int8)), *many, **along)
    y = b.node("ConvTranspose", [b.dequantize("x", *X), w], **attributes)
    return b.build({"x": ("int8", SHAPE)}, b.quantize(y, *Y))


def one_node(
    kind: str, *constants: np.ndarray, shape: tuple[int, ...] = SHAPE, **attributes: Any
) -> onnx.ModelProto:
    """DequantizeLinear, one node, QuantizeLinear."""
    b = ModelBuilder()
    inputs = [b.dequantize("x", *X), *(b.constant(c) for c in constants)]
    return b.build({"x": ("int8", shape)}, b.quantize(b.node(kind, inputs, **attributes), *Y))


def chain(*steps: tuple[str, np.ndarray]) -> onnx.ModelProto:
    """Nodes between DequantizeLinear and QuantizeLinear, each with a constant."""
    b = ModelBuilder()
    y = b.dequantize("x", *X)
    for kind, constant in steps:
        y = b.node(kind, [y, b.constant(constant)])
    return b.build({"x": ("int8", SHAPE)}, b.quantize(y, *Y))


def ramp(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=F32).reshape(shape)


def float_model() -> onnx.ModelProto:
    b = ModelBuilder()
    y = b.node("Conv", ["x", b.constant(np.ones((4, 3, 3, 3), F32))])
    return b.build({"x": ("float32", SHAPE)}, y, "float32")


def dynamic_model() -> onnx.ModelProto:
    b = ModelBuilder()
    w = b.constant(np.ones((4, 3, 3, 3), np.int8))
    y = b.node("ConvInteger", ["x", w])
    return b.build({"x": ("int8", SHAPE)}, y, "int32")


def half_float_model() -> onnx.ModelProto:
    b = ModelBuilder()
    w = b.dequantize(b.constant(np.ones((4, 3, 3, 3), np.int8)), 0.01, np.int8(0))
    return b.build({"x": ("float32", SHAPE)}, b.quantize(b.node("Conv", ["x", w]), *Y))


def float_weights() -> onnx.ModelProto:
    b = ModelBuilder()
    w = b.constant(np.ones((4, 3, 3, 3), F32))
    y = b.quantize(b.node("Conv", [b.dequantize("x", *X), w]), *Y)
    return b.build({"x": ("int8", SHAPE)}, y)


def float_output() -> onnx.ModelProto:
    b = ModelBuilder()
    w = b.dequantize(b.constant(np.ones((4, 3, 3, 3), np.int8)), 0.01, np.int8(0))
    y = b.node("Conv", [b.dequantize("x", *X), w])
    return b.build({"x": ("int8", SHAPE)}, y, "float32")


def bad_scale(scale: object) -> onnx.ModelProto:
    b = ModelBuilder()
    real = b.node("Relu", [b.dequantize("x", scale, np.int8(0))])
    return b.build({"x": ("int8", SHAPE)}, b.quantize(real, *Y))


def mixed_zero_point() -> onnx.ModelProto:
    b = ModelBuilder()
    real = b.node("Relu", [b.dequantize("x", 0.1, np.uint8(0))])
    return b.build({"x": ("int8", SHAPE)}, b.quantize(real, *Y))


def dangling() -> onnx.ModelProto:
    b = ModelBuilder()
    y = b.quantize(b.node("Relu", ["nowhere"]), *Y)
    return b.build({"x": ("int8", SHAPE)}, y)


def joined_with_sums() -> onnx.ModelProto:
    """A dequantised tensor beside what a convolution makes of it."""
    b = ModelBuilder()
    w = b.dequantize(b.constant(np.ones((3, 3, 1, 1), np.int8)), 0.01, np.int8(0))
    x = b.dequantize("x", *X)
    y = b.node("Concat", [x, b.node("Conv", [x, w])], axis=1)
    return b.build({"x": ("int8", SHAPE)}, b.quantize(y, *Y))


def limited_sums(limit: float) -> onnx.ModelProto:
    """A convolution whose sums are cut off before they are quantised."""
    b = ModelBuilder()
    w = b.dequantize(b.constant(np.ones((4, 3, 1, 1), np.int8)), 0.01, np.int8(0))
    y = b.node("Conv", [b.dequantize("x", *X), w])
    y = b.node("Max", [y, b.constant(np.array(limit, F32))])
    return b.build({"x": ("int8", SHAPE)}, b.quantize(y, *Y))


def scaled_average(kernel: tuple[int, int], factor: np.ndarray) -> onnx.ModelProto:
    b = ModelBuilder()
    y = b.node("AveragePool", [b.dequantize("x", *X)], kernel_shape=kernel, strides=kernel)
    y = b.node("Mul", [y, b.constant(factor.astype(F32))])
    return b.build({"x": ("int8", SHAPE)}, b.quantize(y, *Y))


def large_bias() -> onnx.ModelProto:
    """So large that it is no int32, and not so large that nobody sees the products."""
    b = ModelBuilder()
    w = b.dequantize(b.constant(np.full((4, 3, 1, 1), 127, np.int8)), 0.01, np.int8(0))
    y = b.node("Conv", [b.dequantize("x", *X), w, b.constant(np.full(4, 1.25e6, F32))])
    return b.build({"x": ("int8", SHAPE)}, b.quantize(y, *Y))


def function_of_foreign() -> onnx.ModelProto:
    b = ModelBuilder()
    y = b.node("Relu", [b.node("CumSum", [b.dequantize("x", *X), b.constant(np.array(1))])])
    return b.build({"x": ("int8", SHAPE)}, b.quantize(y, *Y))


LARGE = np.full(4, 2**31 - 1, np.int32)
PADS = np.array([1, 0, 0, 0, 0, 0, 0, 0], np.int64)

MODEL_ERRORS: list[tuple[Callable[[], onnx.ModelProto], str]] = [
    (float_model, r"float model: node 'conv2' \(Conv\) computes in floats; required an int8"),
    (dynamic_model, r"\(ConvInteger\) has only scales that a run computes; .* float model"),
    (dangling, r"\(Relu\) reads 'nowhere', which no node before it computes"),
    (mixed_zero_point, r"\(DequantizeLinear\).*is uint8, and input 'x' is int8; required the same"),
    (lambda: conv_model(group=2), r"\(Conv\).*float32\[4, 3, 3, 3\], required 6 channels"),
    (lambda: conv_model(shape=(1, 3, 2, 2)), r"\(Conv\): a window of 3 on 2"),
    (lambda: conv_model(shape=(1, 3, "H", "W")), r"input 'x' has shape \[1, 3, H, W\]; bind"),
    (lambda: transposed(dilations=[2]), r"\(ConvTranspose\) is malformed"),
    (lambda: one_node("Reshape", np.array([1, 5], np.int64)), r"\(Reshape\).*required 5 elements"),
]

UNSUPPORTED: list[tuple[Callable[[], onnx.ModelProto], str]] = [
    (half_float_model, r"node 'conv\d+' \(Conv\): input 'x' is not quantised"),
    (float_weights, r"\(Conv\): input 'c1' is a float32 constant; required int8"),
    (float_output, r"output 'conv\d+' is a float tensor that was not quantised"),
    (
        lambda: one_node("Add", np.arange(144, dtype=F32).reshape(SHAPE)),
        r"\(Add\): 'c4' is a constant of shape \[1, 3, 8, 6\]; required one number",
    ),
    (lambda: bad_scale(F32(0)), r"\(DequantizeLinear\): scale 0.0; required above 0"),
    (
        lambda: conv_model(bias=LARGE),
        r"node 'conv\d+' \(Conv\): an accumulator can reach \d+; int32",
    ),
    (
        lambda: conv_model(bias=np.ones(4, np.int32), bias_scale=0.70017),
        r"bias scale 0.70\d+ is not the product",
    ),
    (
        lambda: transposed(3, 0),
        r"\(ConvTranspose\).*: 3 weight scales along axis 0; required one, or 4 along axis 1",
    ),
    (lambda: transposed(3, 2), "3 weight scales along axis 2; required one, or 4"),
    (
        lambda: chain(("Mul", ramp(3, 1, 1)), ("Add", ramp(8, 1))),
        r"constants along axes \{1, 2\}; required one axis of channels",
    ),
    (lambda: chain(("Mul", ramp(8, 1))), r"a constant along axis \{2\}; required that of the chan"),
    (lambda: chain(("Mul", ramp(1, 1, 3, 1, 1))), "a constant of more dimensions than the tensor"),
    (
        lambda: chain(("ReduceSum", np.array([2, 3])), ("Div", np.array(5, F32))),
        "a sum divided by other than the number of its elements",
    ),
    (
        lambda: one_node("Gather", np.array([0, 2]), axis=0),
        r"picks \[2\] of dimension 0 of \[1, 3, 8, 6\]; required whole rows or columns",
    ),
    (
        lambda: one_node("Slice", np.array([0]), np.array([0]), np.array([2])),
        "nothing is left; required some elements",
    ),
    (
        lambda: one_node("Pad", np.array([0, 0, 1, 0, 0, 0, 1, 0]), np.array(0.3333, F32)),
        r"the border 0\.333\d* is not a value of its input's quantisation \(scale 0\.05",
    ),
    (lambda: conv_model(shape=(4, 3, 8, 8)), r"input 'x' has batch 4; required 1"),
    (
        lambda: one_node("GRU", *[np.ones((1, 24, 8), F32)] * 2, shape=(1, 1, 8), hidden_size=8),
        r"\(GRU\): there is no integer GRU",
    ),
    (lambda: one_node("CumSum", np.array(1)), r"node 'cumsum\d+' \(CumSum\): there is no integer"),
    (lambda: bad_scale(np.ones(3, F32)), r"an activation with 3 scales; required one"),
    (
        lambda: conv_model(
            np.zeros((4, 3, 3, 3), np.uint8), zero=np.arange(4, dtype=np.uint8) * 60
        ),
        r"weights less their zero points, which differ, reach -180..0; required -128..127, or one",
    ),
    (
        lambda: conv_model(np.ones((4, 3, 3, 3, 3), np.int8), shape=(1, 3, 8, 8, 8)),
        r"3 spatial dimensions; required 2",
    ),
    (
        lambda: one_node("ReduceMax", axes=[1]),
        r"\(ReduceMax\): the maximum over axes \[1\] of 4; required",
    ),
    (
        lambda: one_node("Expand", np.array([1, 3, 8]), shape=(1, 3, 1)),
        r"repeats shape \[1, 3, 1\] to \[1, 3, 8\]; required images of one batch",
    ),
    (lambda: one_node("Pad", PADS), r"required borders of height and width, or channels"),
    (lambda: one_node("ReduceMean", axes=[0]), r"axes \[0\] of 4; required the height and width"),
    (
        lambda: one_node(
            "AveragePool",
            kernel_shape=[3, 3],
            strides=[2, 2],
            pads=[1, 1, 1, 1],
            ceil_mode=1,
            count_include_pad=1,
        ),
        r"\(AveragePool\): sums of windows divided by other than their sizes",
    ),
    (lambda: one_node("LogSoftmax"), r"\(LogSoftmax\): the logarithm of softmax; required softmax"),
    (joined_with_sums, r"\(Concat\): joins Real, Accumulated; required quantised tensors"),
    (lambda: limited_sums(np.nan), r"\(Max\): a limit of nan; required a number"),
    *(
        (lambda pair=pair: scaled_average(*pair), "scales what is not a mean of rows or images, or")
        for pair in (((8, 3), ramp(3, 1, 1) + 1), ((8, 6), ramp(3, 1, 1)), ((2, 2), ramp(1) + 2))
    ),
    (large_bias, r"its bias reaches 2.5e\+09 in units of the sum; int32 holds 2147483647"),
    (function_of_foreign, r"\(CumSum\): there is no integer CumSum"),
]


@pytest.mark.parametrize(("model", "message"), MODEL_ERRORS)
def test_a_bad_model_is_one_model_error(model: Callable[[], onnx.ModelProto], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        integer_graph(model())


@pytest.mark.parametrize(("model", "message"), UNSUPPORTED)
def test_what_is_not_supported_is_named(model: Callable[[], onnx.ModelProto], message: str) -> None:
    with pytest.raises(UnsupportedOperatorError, match=message):
        integer_graph(model())


def test_the_good_form_of_the_bad_models_is_taken() -> None:
    assert integer_graph(conv_model(bias=np.zeros(4, np.int32))).nodes
    assert integer_graph(limited_sums(0.25)).nodes
    assert integer_graph(scaled_average((8, 6), ramp(3, 1, 1) + 1)).nodes


def test_a_missing_file_is_a_model_error(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no model file"):
        SourceModel.load(tmp_path / "none.onnx")


@pytest.mark.parametrize("content", [b"", b"not a model", bytes(range(256)) * 8])
def test_a_file_that_is_not_onnx_is_a_model_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.onnx"
    path.write_bytes(content)
    with pytest.raises(ModelError, match="is not an ONNX model"):
        SourceModel.load(path)


@pytest.mark.parametrize("length", [0.25, 0.5, 0.9])
def test_a_truncated_model_is_one_compiler_error(tmp_path: Path, length: float) -> None:
    data = conv_model(bias=np.zeros(4, np.int32)).SerializeToString()
    path = tmp_path / "cut.onnx"
    path.write_bytes(data[: int(len(data) * length)])
    with pytest.raises((ModelError, UnsupportedOperatorError)):
        integer_graph(path)


@pytest.mark.parametrize("equation", ["xyz,zd->xdy", "xyz,yd->xzd", "xyy,yd->xyd", "xyz,zd->xyzd"])
def test_other_sums_of_products_are_no_matrix_product(equation: str) -> None:
    """Labels of the result in another order, sums over another dimension, diagonals, no sum."""
    b, shape = ModelBuilder(), (1, 4, 4)
    x = b.dequantize("x", 0.03, np.int8(5))
    w = b.dequantize(b.constant(np.ones((4, 4), np.int8)), 0.1, np.int8(0))
    y = b.quantize(b.node("Einsum", [x, w], equation=equation), 0.5, np.int8(0))
    with pytest.raises(UnsupportedOperatorError, match="sums products, but not as a matrix pro"):
        integer_graph(b.build({"x": ("int8", shape)}, y))
