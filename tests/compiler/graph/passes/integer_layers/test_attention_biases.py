"""Constants added to the scores of heads, and images that are read as rows, as in LeViT."""

import numpy as np
import pytest

from dovetail.compiler.graph.interpreter import run
from dovetail.compiler.graph.operators.integer.values import Add
from dovetail.compiler.graph.operators.movement import Transpose

from .models import F32, ModelBuilder, check, integer_graph, reference
from .test_row_products import drawn


@pytest.mark.parametrize("shape", [(3, 5, 5), (1, 3, 5, 5), (1, 2, 1, 5, 5)])
def test_a_constant_for_each_head_is_added_as_a_tensor(shape: tuple[int, ...]) -> None:
    b = ModelBuilder()
    scores = b.dequantize("x", F32(0.05), np.int8(3))
    bias = b.dequantize(b.constant(drawn(1, shape)), F32(0.02), np.int8(-7))
    total = b.quantize(b.node("Add", [scores, bias]), F32(0.06), np.int8(5))
    whole = (1, 3, 5, 5) if len(shape) < 5 else (1, 2, 3, 5, 5)
    model = b.build({"x": ("int8", whole)}, total)
    check(model, {"x": drawn(2, whole)})
    assert [type(node.operator) for node in integer_graph(model).nodes] == [Add]


def test_an_image_flattened_to_rows_is_not_turned() -> None:
    """The pixels of [N, C, H, W] are rows of channels, added to what a product of rows makes."""
    b = ModelBuilder()
    image = b.dequantize("x", F32(0.05), np.int8(3))
    weights = b.dequantize(b.constant(drawn(3, (8, 3, 1, 1)) // 8), F32(0.02), np.int8(0))
    pixels = b.dequantize(
        b.quantize(b.node("Conv", [image, weights]), F32(0.06), np.int8(0)), F32(0.06), np.int8(0)
    )
    flat = b.node("Reshape", [pixels, b.constant(np.array([1, 8, 12]))])
    rows = b.node("Transpose", [flat], perm=[0, 2, 1])
    matrix = b.dequantize(b.constant(drawn(4, (8, 8)) // 8), F32(0.02), np.int8(0))
    made = b.quantize(b.node("MatMul", [rows, matrix]), F32(0.07), np.int8(1))
    total = b.node("Add", [rows, b.dequantize(made, F32(0.07), np.int8(1))])
    model = b.build({"x": ("int8", (1, 3, 3, 4))}, b.quantize(total, F32(0.1), np.int8(0)))
    check(model, {"x": drawn(5, (1, 3, 3, 4))})
    turned = [n for n in integer_graph(model).nodes if isinstance(n.operator, Transpose)]
    assert [node.inputs for node in turned] == [("x",)]


def test_a_mean_of_rows_is_scaled_before_it_is_quantised() -> None:
    """ONNX Runtime computes this in float: ties may come out one step apart."""
    b = ModelBuilder()
    rows = b.dequantize("x", F32(0.05), np.int8(3))
    mean = b.node("ReduceMean", [rows], axes=[1], keepdims=0)
    rng = np.random.default_rng(6)
    parameters = [rng.normal(0, deviation, 500).astype(F32) for deviation in (1, 0.3, 0.2)]
    parameters.append(rng.uniform(0.5, 2, 500).astype(F32))
    scaled = b.node("BatchNormalization", [mean, *map(b.constant, parameters)])
    result = b.quantize(scaled, F32(0.012), np.int8(5))
    model = b.build({"x": ("int8", (1, 7, 500))}, result)
    inputs = {"x": drawn(7, (1, 7, 500))}
    found = run(integer_graph(model), inputs)[result].astype(int)
    apart = np.abs(found - reference(model, inputs))
    assert apart.max() <= 1
    assert np.count_nonzero(apart) <= 2
