"""Rotary positions left in float, caches and masks that only a model's own nodes make."""

import numpy as np
import onnx
import pytest

from dovetail.compiler import compile
from dovetail.compiler.front.table import open_model
from dovetail.compiler.graph.interpreter import run
from dovetail.compiler.graph.ir import Graph
from dovetail.compiler.graph.operators.integer.scaled_sum import ScaledSum
from dovetail.compiler.graph.operators.integer.values import Add
from dovetail.compiler.graph.operators.movement import Concatenate
from dovetail.compiler.graph.passes.integer_layers.recognition import integer_layers
from dovetail.runtime.session import run as run_module

from .models import F32, Array, ModelBuilder, reference

INPUTS = {
    "x": ("int8", (1, 32)),
    "cos": ("float32", (1, 1, 4, 1)),
    "sin": ("float32", (1, 1, 4, 1)),
}
HEADS = 3


def rotated(kind: str = "") -> onnx.ModelProto:
    """Pairs of a dense layer's results, each turned, as bytes."""
    b, rng = ModelBuilder(), np.random.default_rng(4)
    x = b.dequantize("x", 0.03, np.int8(5))
    weights = b.constant(rng.integers(-127, 128, (32, 8 * HEADS)).astype(np.int8))
    scales = rng.uniform(0.002, 0.004, 8 * HEADS).astype(F32)
    w = b.dequantize(weights, scales, np.zeros(8 * HEADS, np.int8), axis=1)
    y = b.node("MatMul", [x, w])
    if kind == "bytes":
        y = b.dequantize(b.quantize(y, 0.1, np.int8(2)), 0.1, np.int8(2))
    cos, sin = "cos", "sin"
    if kind == "constant":
        cos, sin = (b.constant(np.full((1, 1, 4, 1), each, F32)) for each in (0.6, 0.8))
    if kind == "layers":
        cos = b.node("Reshape", [b.node("Sigmoid", [y]), b.constant(np.array([1, HEADS, 4, 2]))])
        cos = b.node("Slice", [cos, *(b.constant(np.array([n])) for n in (0, 1, 3))])
    pairs = b.node("Reshape", [y, b.constant(np.array([1, HEADS, 4, 2]))])
    even, odd = (
        b.node("Slice", [pairs, *(b.constant(np.array([n])) for n in (place, place + 1, 3))])
        for place in (0, 1)
    )
    first = b.node("Sub", [b.node("Mul", [even, cos]), b.node("Mul", [sin, odd])])
    second = b.node("Add", [b.node("Mul", [even, sin]), b.node("Mul", [odd, cos])])
    turned = b.node("Concat", [first, second], axis=3)
    turned = b.node("Reshape", [turned, b.constant(np.array([HEADS, 1, 8]))])
    zero_point = np.uint8(121) if kind == "uint8" else np.int8(-7)
    return b.build(INPUTS, b.quantize(turned, 0.09, zero_point), zero_point.dtype.name, 17)


def drawn(seed: int) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    angle = rng.uniform(-3, 3, (1, 1, 4, 1)).astype(F32)
    x = rng.integers(-128, 128, (1, 32)).astype(np.int8)
    return {"x": x, "cos": np.cos(angle), "sin": np.sin(angle)}


def integer_graph(model: onnx.ModelProto) -> Graph:
    """The integer layers of a model, and what is left of it between them."""
    imported = open_model(model).to_graph_and_rest(batch=1)
    assert imported is not None
    return integer_layers(imported.graph, imported.kinds).graph


def counted(graph: Graph, kind: type) -> int:
    return sum(isinstance(node.operator, kind) for node in graph.nodes)


def test_few_bytes_are_one_step_from_onnx_runtimes() -> None:
    model = rotated()
    graph, module = integer_graph(model), compile(model, "cpu")
    assert counted(graph, ScaledSum) == 2
    known_by = [node.origin.rstrip("0123456789") for node in graph.nodes]
    assert {*known_by} == {"matmul", "reshape", "slice", "mul", "sub", "add", "concat"}
    assert known_by[-2:] == ["concat", "reshape"]
    far = 0
    for seed in range(100):
        inputs = drawn(seed)
        found = run(graph, inputs)[graph.outputs[0]]
        apart = np.abs(found.astype(int) - reference(model, inputs))
        assert apart.max() <= 1
        far += np.count_nonzero(apart)
        compiled = run_module(module, inputs, "cpu").outputs[graph.outputs[0]]
        np.testing.assert_array_equal(compiled, found)
    assert far <= 0.002 * 100 * 8 * HEADS


@pytest.mark.parametrize("kind", ["bytes", "constant", "layers", "uint8"])
def test_what_is_no_sum_of_scaled_terms_stays_as_it_is(kind: str) -> None:
    """Bytes are turned as bytes, and other products, or those to uint8, as floats."""
    graph = integer_graph(rotated(kind))
    assert not counted(graph, ScaledSum)


def cached(least: float = -1e4) -> onnx.ModelProto:
    """Scores of a row over a cache in float, with others where a condition is not."""
    b = ModelBuilder()

    def given(name: str, scale: float, zero_point: int, *shape: int) -> str:
        x = b.dequantize(name, scale, np.int8(zero_point))
        return b.node("Reshape", [x, b.constant(np.array(shape))])

    past = b.node("Gather", ["past", b.constant(np.array(1))])
    past = b.dequantize(b.quantize(past, 0.05, np.int8(4)), 0.05, np.int8(4))
    joined = b.node("Concat", [past, given("new", 0.05, 4, 3, 1, 8)], axis=1)
    joined = b.dequantize(b.quantize(joined, 0.05, np.int8(4)), 0.05, np.int8(4))
    keys = b.node("Transpose", [joined], perm=[0, 2, 1])
    scores = b.node("MatMul", [given("q", 0.02, -3, 3, 2, 8), keys])
    scores = b.dequantize(b.quantize(scores, 0.1, np.int8(9)), 0.1, np.int8(9))
    visible = b.node("Less", [b.constant(np.arange(7, dtype=F32)), "position"])
    masked = b.node("Where", [visible, scores, b.constant(F32(least))])
    inputs = {
        "past": ("float32", (2, 3, 6, 8)),
        "new": ("int8", (1, 24)),
        "q": ("int8", (1, 48)),
        "position": ("float32", (1,)),
    }
    return b.build(inputs, b.quantize(masked, 0.1, np.int8(9)), opset=17)


def test_a_cache_in_float_is_joined_as_bytes_and_a_condition_is_a_mask() -> None:
    model, rng = cached(), np.random.default_rng(6)
    for position in (0, 3, 7):
        inputs = {
            "past": rng.normal(0, 3, (2, 3, 6, 8)).astype(F32),
            "new": rng.integers(-128, 128, (1, 24)).astype(np.int8),
            "q": rng.integers(-128, 128, (1, 48)).astype(np.int8),
            "position": np.array([position], F32),
        }
        graph = integer_graph(model)
        np.testing.assert_array_equal(
            run(graph, inputs)[graph.outputs[0]], reference(model, inputs)
        )
    joined = [node.output for node in graph.nodes if isinstance(node.operator, Concatenate)]
    assert [str(graph.types[name].dtype) for name in joined] == ["int8"]
    assert counted(graph, Add) == 1


def test_a_condition_that_picks_more_than_the_least_byte_is_no_mask() -> None:
    assert not counted(integer_graph(cached(-12)), Add)
