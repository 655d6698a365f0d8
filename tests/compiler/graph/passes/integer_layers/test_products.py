"""Products of two quantised tensors, against ONNX Runtime."""

from collections.abc import Sequence

import numpy as np
import pytest

from dovetail.compiler.errors import UnsupportedOperatorError
from dovetail.compiler.front.onnx.quantize import QuantizeOptions, quantize_model
from dovetail.compiler.graph.operators.integer.values import Multiply

from .models import F32, Array, ModelBuilder, check, integer_graph
from .static import check_on_targets, conv, statically_quantized

SHAPE = (1, 6, 4, 5)


def random_bytes(seed: int, shape: Sequence[int], dtype: str) -> Array:
    """Random ones of ``dtype``."""
    info = np.iinfo(dtype)
    values = np.random.default_rng(seed).integers(info.min, info.max + 1, shape)
    return values.astype(dtype)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("shape", [SHAPE, (1, 6, 1, 1), (1, 1, 4, 5), (1, 1, 1, 1)])
def test_products_of_tensors_equal_onnxruntime(
    shape: tuple[int, ...], swapped: bool, dtype: str
) -> None:
    b = ModelBuilder()
    zero = 128 if dtype == "uint8" else 0
    kind = np.dtype(dtype).type
    operands = [
        b.dequantize("x", F32(0.05), kind(zero - 3)),
        b.dequantize("scale", F32(0.02), kind(zero - 41)),
    ]
    product = b.node("Mul", operands[::-1] if swapped else operands)
    y = b.quantize(product, F32(0.07), kind(zero + 7))
    model = b.build({"x": (dtype, SHAPE), "scale": (dtype, shape)}, y, dtype)
    inputs = {"x": random_bytes(1, SHAPE, dtype), "scale": random_bytes(2, shape, dtype)}
    check(model, inputs)
    assert any(isinstance(node.operator, Multiply) for node in integer_graph(model).nodes)


@pytest.mark.parametrize("scales", [(0.031, 0.017, 0.06), (2.0**-5, 2.0**-6, 2.0**-4)])
@pytest.mark.parametrize("zero", [7, 8])
def test_every_pair_of_bytes_equals_onnxruntime_also_where_products_tie(
    scales: tuple[float, ...], zero: int
) -> None:
    b = ModelBuilder()
    x = b.dequantize("x", F32(scales[0]), np.int8(-100))
    scale = b.dequantize("scale", F32(scales[1]), np.int8(-128))
    y = b.quantize(b.node("Mul", [x, scale]), F32(scales[2]), np.int8(zero))
    values = np.arange(-128, 128).astype(np.int8)
    shapes = ((1, 256, 1, 256), (1, 256, 1, 1))
    inputs = {
        "x": np.broadcast_to(values, shapes[0]).copy(),
        "scale": values.reshape(shapes[1]),
    }
    check(b.build({name: ("int8", array.shape) for name, array in inputs.items()}, y), inputs)


def test_a_clip_after_a_product_is_part_of_it() -> None:
    b = ModelBuilder()
    x = b.dequantize("x", F32(0.05), np.int8(-3))
    scale = b.dequantize("scale", F32(0.02), np.int8(4))
    clipped = b.node("Relu", [b.node("Mul", [x, scale])])
    y = b.quantize(clipped, F32(0.03), np.int8(-90))
    model = b.build({"x": ("int8", SHAPE), "scale": ("int8", SHAPE)}, y)
    inputs = {name: random_bytes(seed, SHAPE, "int8") for seed, name in enumerate(("x", "scale"))}
    check(model, inputs)
    assert [type(node.operator) for node in integer_graph(model).nodes] == [Multiply]


def test_tensors_neither_of_which_is_repeated_to_the_other_are_refused() -> None:
    b = ModelBuilder()
    x = b.dequantize("x", F32(0.05), np.int8(-3))
    scale = b.dequantize("scale", F32(0.02), np.int8(4))
    y = b.quantize(b.node("Mul", [x, scale]), F32(0.03), np.int8(0))
    model = b.build({"x": ("int8", (1, 6, 4, 1)), "scale": ("int8", (1, 1, 1, 5))}, y)
    with pytest.raises(UnsupportedOperatorError, match=r"multiplies shapes \[1, 1, 1, 5\] and"):
        integer_graph(model)


def excited(b: ModelBuilder, x: str) -> str:
    """A block of squeeze and excitation between two convolutions."""
    wide = b.node("Relu", [conv(b, x, 3, 24, 3)])
    small = b.node("Relu", [conv(b, b.node("GlobalAveragePool", [wide]), 24, 6)])
    gate = b.node("HardSigmoid", [conv(b, small, 6, 24)])
    return conv(b, b.node("Mul", [gate, wide]), 24, 5)


@pytest.mark.parametrize(
    "options", [{}, {"unsigned": True}, {"per_channel": True}], ids=["int8", "uint8", "channels"]
)
def test_squeeze_and_excitation_by_static_quantisation_equals_onnxruntime(
    options: dict[str, bool],
) -> None:
    model = statically_quantized(excited, (1, 3, 9, 11), **options)
    kinds = check_on_targets(model, ("cpu", "vta:tiny", "vta:zynq7020"))
    assert "Multiply" in kinds


@pytest.mark.parametrize("unsigned", [False, True])
def test_squeeze_and_excitation_by_our_quantisation_equals_onnxruntime(unsigned: bool) -> None:
    b = ModelBuilder()
    shape = (1, 3, 9, 11)
    model = b.build({"x": ("float32", shape)}, excited(b, "x"), "float32", 17)
    rng = np.random.default_rng(4)
    samples = [{"x": rng.normal(size=shape).astype(F32)} for _ in range(4)]
    found = quantize_model(model, samples, QuantizeOptions(unsigned=unsigned))
    assert found.kept == ()
    assert "Multiply" in check_on_targets(found.model, ("cpu", "vta:tiny", "vta:zynq7020"))
