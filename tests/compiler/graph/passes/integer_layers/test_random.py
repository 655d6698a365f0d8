"""Random small models: the imported graph gives ONNX Runtime's bytes."""

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from .models import F32, ModelBuilder, check

DTYPES = {"int8": np.int8, "uint8": np.uint8}
SCALES = st.floats(0.004, 0.2).map(F32)


def quantization(draw: Callable[..., Any], dtype: str) -> tuple[np.float32, np.generic]:
    """A scale and a zero point."""
    limits = np.iinfo(DTYPES[dtype])
    return draw(SCALES), DTYPES[dtype](draw(st.integers(int(limits.min), int(limits.max))))


@given(st.data())
@settings(max_examples=40)
def test_convolutions_of_any_shape_equal_onnxruntime(data: st.DataObject) -> None:
    draw = data.draw
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    dtype = draw(st.sampled_from(["int8", "uint8"]))
    kernel = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    groups, per_group = draw(st.sampled_from([(1, 3), (1, 8), (4, 1), (2, 3)]))
    outputs = groups * draw(st.sampled_from([1, 2, 5]))
    per_channel, form = draw(st.booleans()), draw(st.sampled_from(["qdq", "qlinear"]))
    weights = rng.integers(-127, 128, (outputs, per_group, *kernel)).astype(np.int8)
    w_scale = rng.uniform(0.001, 0.02, outputs if per_channel else ()).astype(F32)
    w_zero = np.zeros(w_scale.shape, np.int8)
    x_scale, x_zero = quantization(draw, dtype)
    y_scale, y_zero = quantization(draw, dtype)
    attributes: dict[str, Any] = {
        "kernel_shape": kernel,
        "strides": draw(st.tuples(st.integers(1, 2), st.integers(1, 2))),
        "pads": draw(st.tuples(*[st.integers(0, 2)] * 4)),
        "group": groups,
    }
    if form == "qdq":
        attributes["dilations"] = draw(st.tuples(st.integers(1, 2), st.integers(1, 2)))
    bias = rng.integers(-2000, 2000, outputs).astype(np.int32)
    b = ModelBuilder()
    if form == "qlinear":
        constants = [b.constant(v) for v in (x_scale, x_zero, weights, w_scale, w_zero)]
        constants += [b.constant(v) for v in (y_scale, y_zero, bias)]
        y = b.node("QLinearConv", ["x", *constants], **attributes)
    else:
        w = b.dequantize(b.constant(weights), w_scale, w_zero, axis=0)
        bias_scale = (x_scale * w_scale).astype(F32)
        z = b.dequantize(b.constant(bias), bias_scale, np.zeros(w_scale.shape, np.int32), axis=0)
        real = b.node("Conv", [b.dequantize("x", x_scale, x_zero), w, z], **attributes)
        y = b.quantize(real, y_scale, y_zero)
    shape = (1, groups * per_group, draw(st.integers(5, 9)), draw(st.integers(5, 9)))
    model = b.build({"x": (dtype, shape)}, y, dtype)
    limits = np.iinfo(DTYPES[dtype])
    check(model, {"x": rng.integers(limits.min, limits.max + 1, shape).astype(DTYPES[dtype])})


@given(st.data())
@settings(max_examples=30)
def test_sums_equal_onnxruntime_on_every_pair(data: st.DataObject) -> None:
    draw = data.draw
    dtype = draw(st.sampled_from(["int8", "uint8"]))
    a, b, y = (quantization(draw, dtype) for _ in range(3))
    builder = ModelBuilder()
    if draw(st.booleans()):
        names = [builder.constant(v) for v in (*a, *b, *y)]
        inputs = ["a", *names[:2], "b", *names[2:]]
        output = builder.node("QLinearAdd", inputs, domain="com.microsoft")
    else:
        real = builder.node("Add", [builder.dequantize("a", *a), builder.dequantize("b", *b)])
        output = builder.quantize(real, *y)
    model = builder.build({"a": (dtype, (1, 65536)), "b": (dtype, (1, 65536))}, output, dtype)
    limits = np.iinfo(DTYPES[dtype])
    values = np.arange(limits.min, limits.max + 1).astype(DTYPES[dtype])
    pairs = np.meshgrid(values, values, indexing="ij")
    check(model, {"a": pairs[0].reshape(1, -1), "b": pairs[1].reshape(1, -1)})


@given(st.data())
@settings(max_examples=30)
def test_matrix_products_equal_onnxruntime(data: st.DataObject) -> None:
    draw = data.draw
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    dtype = draw(st.sampled_from(["int8", "uint8"]))
    size, outputs = draw(st.integers(1, 40)), draw(st.integers(1, 12))
    x, y = quantization(draw, dtype), quantization(draw, dtype)
    form = draw(st.sampled_from(["gemm", "matmul", "matmul_add", "qlinear", "qgemm"]))
    transposed = form in ("gemm", "qgemm") and draw(st.booleans())
    shape = (outputs, size) if transposed else (size, outputs)
    weights = rng.integers(-127, 128, shape).astype(np.int8)
    w_scale, zero = F32(0.013), np.int8(0)
    bias = rng.integers(-2000, 2000, outputs).astype(np.int32)
    b = ModelBuilder()
    constants = [b.constant(v) for v in (*x, weights, w_scale, zero)]
    if form == "qlinear":
        output = b.node("QLinearMatMul", ["x", *constants, *map(b.constant, y)])
    elif form == "qgemm":
        inputs = ["x", *constants, b.constant(bias), *map(b.constant, y)]
        output = b.node("QGemm", inputs, domain="com.microsoft", transB=int(transposed))
    else:
        w = b.dequantize(constants[2], w_scale, zero)
        z = b.dequantize(b.constant(bias), x[0] * w_scale, np.int32(0))
        real = [b.dequantize("x", *x), w]
        if form == "gemm":
            product = b.node("Gemm", [*real, z], transB=int(transposed))
        else:
            product = b.node("MatMul", real)
            product = b.node("Add", [product, z]) if form == "matmul_add" else product
        output = b.quantize(product, *y)
    model = b.build({"x": (dtype, (1, size))}, output, dtype)
    limits = np.iinfo(DTYPES[dtype])
    check(model, {"x": rng.integers(limits.min, limits.max + 1, (1, size)).astype(DTYPES[dtype])})


@given(st.data())
@settings(max_examples=40)
def test_pools_equal_onnxruntime(data: st.DataObject) -> None:
    draw = data.draw
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    dtype = draw(st.sampled_from(["int8", "uint8"]))
    x = quantization(draw, dtype)
    kind = draw(st.sampled_from(["MaxPool", "AveragePool", "GlobalAveragePool"]))
    attributes: dict[str, Any] = {}
    if kind != "GlobalAveragePool":
        # Windows of odd size: the mean of none lies half way between two int8 values.
        odd = st.sampled_from([1, 3, 5])
        attributes["kernel_shape"] = draw(st.tuples(odd, odd))
        attributes["strides"] = draw(st.tuples(st.integers(1, 2), st.integers(1, 2)))
        pads = draw(st.tuples(*[st.integers(0, 1)] * 4))
        if min(attributes["kernel_shape"]) > 1:
            attributes["pads"] = pads
            if kind == "AveragePool":
                attributes["count_include_pad"] = 1
    # One quantisation before and after, as converters from TensorFlow Lite give it.
    y = x if kind != "GlobalAveragePool" else quantization(draw, dtype)
    b = ModelBuilder()
    real = b.node(kind, [b.dequantize("x", *x)], **attributes)
    shape = (1, 6, draw(st.integers(5, 9)), draw(st.integers(5, 9)))
    model = b.build({"x": (dtype, shape)}, b.quantize(real, *y), dtype)
    limits = np.iinfo(DTYPES[dtype])
    check(model, {"x": rng.integers(limits.min, limits.max + 1, shape).astype(DTYPES[dtype])})
