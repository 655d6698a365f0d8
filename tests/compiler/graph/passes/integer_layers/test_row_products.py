"""Matrix products of two quantised tensors against ONNX Runtime's QLinearMatMul."""

import numpy as np
import pytest

from dovetail.compiler import compile
from dovetail.compiler.graph.operators.integer.products import RowProducts
from dovetail.compiler.graph.operators.integer.values import Requantize
from dovetail.compiler.graph.passes.simplify import simplify
from dovetail.runtime import run

from .models import F32, Array, ModelBuilder, check, integer_graph


def drawn(seed: int, shape: tuple[int, ...], dtype: str = "int8") -> Array:
    """Random bytes, the ends among them."""
    limits = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(limits.min, limits.max + 1, shape).astype(dtype)


@pytest.mark.parametrize(
    ("left", "right", "dtype", "zeros"),
    [
        ((1, 2, 9, 16), (1, 2, 16, 7), "int8", (-128, 5, 3)),
        ((1, 9, 300), (1, 300, 12), "int8", (127, -128, -1)),
        ((1, 1, 6, 20), (1, 1, 20, 5), "int8", (0, 0, 0)),
        ((1, 3, 4, 33), (1, 3, 33, 4), "uint8", (0, 128, 255)),
        ((1, 3, 4, 16), (1, 1, 16, 5), "int8", (3, -4, 9)),
    ],
)
def test_products_of_two_tensors_equal_onnxruntime(
    left: tuple[int, ...], right: tuple[int, ...], dtype: str, zeros: tuple[int, ...]
) -> None:
    b = ModelBuilder()
    kind = np.dtype(dtype).type
    x = b.dequantize("x", F32(0.02), kind(zeros[0]))
    y = b.dequantize("y", F32(0.03), kind(zeros[1]))
    product = b.quantize(b.node("MatMul", [x, y]), F32(0.11), kind(zeros[2]))
    model = b.build({"x": (dtype, left), "y": (dtype, right)}, product, dtype)
    inputs = {"x": drawn(1, left, dtype), "y": drawn(2, right, dtype)}
    wanted = check(model, inputs)
    found = run(compile(model, "cpu"), inputs).outputs
    np.testing.assert_array_equal(found[product], wanted)


def test_keys_that_the_model_transposes_are_rows_already() -> None:
    b = ModelBuilder()
    x, y = (b.dequantize(name, F32(0.02), np.int8(4)) for name in "xy")
    turned = b.node("Transpose", [y], perm=[0, 1, 3, 2])
    product = b.quantize(b.node("MatMul", [x, turned]), F32(0.11), np.int8(0))
    shape = (1, 2, 5, 8)
    model = b.build({"x": ("int8", shape), "y": ("int8", shape)}, product)
    check(model, {"x": drawn(1, shape), "y": drawn(2, shape)})
    graph = simplify(integer_graph(model))
    assert [type(node.operator) for node in graph.nodes] == [RowProducts, Requantize]
