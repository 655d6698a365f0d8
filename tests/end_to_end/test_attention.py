"""Products of two activations on the accelerator, as in attention, against ONNX Runtime."""

from collections.abc import Callable

import numpy as np
import pytest

from dovetail.compiler import CompileOptions, compile
from dovetail.compiler.front.onnx.quantize import QuantizeOptions, quantize_model
from dovetail.compiler.options import Overlap
from dovetail.runtime import run
from tests.kept_costs import check_costs

from ..compiler.graph.passes.integer_layers.models import (
    F32,
    Array,
    ModelBuilder,
    reference,
)

WIDTH = 16


class Rows(ModelBuilder):
    """Networks of quantised rows ``[1, count, C]``, with random weights and zero points.

    head: channels of one.
    """

    def __init__(self, count: int, head: int = WIDTH) -> None:
        super().__init__()
        self.rows, self.head = count, head
        self.rng = np.random.default_rng(7)

    def again(self, y: str, scale: float) -> str:
        """Quantised and dequantised."""
        parameters = F32(scale), np.int8(self.rng.integers(-20, 21))
        return self.dequantize(self.quantize(y, *parameters), *parameters)

    def linear(self, x: str, inputs: int, outputs: int) -> str:
        """A product with weights, quantised."""
        weights = self.rng.integers(-127, 128, (inputs, outputs)).astype(np.int8)
        w = self.dequantize(self.constant(weights), F32(0.01), np.int8(0))
        return self.again(self.node("MatMul", [x, w]), 0.05)

    def known(self, *shape: int) -> str:
        """A constant, dequantised."""
        values = self.rng.integers(-128, 128, shape).astype(np.int8)
        return self.dequantize(self.constant(values), F32(0.013), np.int8(-4))

    def heads(self, x: str, count: int, order: tuple[int, ...]) -> str:
        """The channels of ``count`` heads apart."""
        shape = self.constant(np.array([1, self.rows, count, -1], np.int64))
        return self.node("Transpose", [self.node("Reshape", [x, shape])], perm=list(order))


def scores(net: Rows, x: str) -> str:
    q, k = (net.linear(x, WIDTH, net.head) for _ in range(2))
    return net.node("MatMul", [q, net.node("Transpose", [k], perm=[0, 2, 1])])


def scores_of_sums(net: Rows, x: str) -> str:
    """No product with weights makes the keys."""
    q, *sides = (net.linear(x, WIDTH, net.head) for _ in range(3))
    k = net.again(net.node("Add", sides), 0.0937)
    return net.node("MatMul", [q, net.node("Transpose", [k], perm=[0, 2, 1])])


def gated_heads(net: Rows, x: str, kind: str = "Sigmoid") -> str:
    """Attention of two heads with a table in place of Softmax, and what follows it."""
    both = 2 * net.head
    q, k, v = (net.linear(x, WIDTH, both) for _ in range(3))
    product = net.node("MatMul", [net.heads(q, 2, (0, 2, 1, 3)), net.heads(k, 2, (0, 2, 3, 1))])
    weights = net.again(net.node(kind, [net.again(product, 0.4)]), 1 / 256)
    mixed = net.again(net.node("MatMul", [weights, net.heads(v, 2, (0, 2, 1, 3))]), 0.03)
    flat = net.node("Transpose", [mixed], perm=[0, 2, 1, 3])
    shape = net.constant(np.array([1, net.rows, both], np.int64))
    return net.linear(net.node("Reshape", [flat, shape]), both, WIDTH)


def attention(net: Rows, x: str) -> str:
    return gated_heads(net, x, "Softmax")


def shared_heads(net: Rows, x: str) -> str:
    """Attention of four heads of queries, two of which share a head of keys and values."""
    q = net.heads(net.linear(x, WIDTH, 4 * net.head), 4, (0, 2, 1, 3))
    sizes = (1, 2, 1, net.rows, net.head), (1, 1, 2, 1, 1), (1, 4, net.rows, net.head)
    apart, times, whole = (net.constant(np.array(size, np.int64)) for size in sizes)
    k, v = (
        net.node(
            "Reshape",
            [
                net.node(
                    "Tile", [net.node("Reshape", [net.heads(y, 2, (0, 2, 1, 3)), apart]), times]
                ),
                whole,
            ],
        )
        for y in (net.linear(x, WIDTH, 2 * net.head) for _ in range(2))
    )
    product = net.node("MatMul", [q, net.node("Transpose", [k], perm=[0, 1, 3, 2])])
    weights = net.again(net.node("Sigmoid", [net.again(product, 0.4)]), 1 / 256)
    mixed = net.again(net.node("MatMul", [weights, v]), 0.03)
    flat = net.node("Transpose", [mixed], perm=[0, 2, 1, 3])
    shape = net.constant(np.array([1, net.rows, 4 * net.head], np.int64))
    return net.linear(net.node("Reshape", [flat, shape]), 4 * net.head, WIDTH)


NETWORKS: dict[str, Callable[[Rows, str], str]] = {
    "scores": scores,
    "scores_of_sums": scores_of_sums,
    "gated_heads": gated_heads,
    "attention": attention,
    "shared_heads": shared_heads,
}


@pytest.mark.parametrize("target", ["vta:tiny", "vta:zynq7020"])
@pytest.mark.parametrize(
    ("name", "rows", "head"),
    [
        *(("scores", 16, WIDTH), ("gated_heads", 16, WIDTH), ("gated_heads", 9, WIDTH)),
        *(("attention", 9, WIDTH), ("scores_of_sums", 5, 6), ("gated_heads", 9, 21)),
        ("shared_heads", 9, WIDTH),
    ],
)
def test_products_of_activations_run_in_one_launch_and_match_onnx_runtime(
    name: str, rows: int, head: int, target: str
) -> None:
    net = Rows(rows, head)
    x = net.dequantize("x", F32(0.02), np.int8(3))
    y = net.quantize(NETWORKS[name](net, x), F32(0.2), np.int8(-9))
    model = net.build({"x": ("int8", (1, rows, WIDTH))}, y)
    module = compile(model, target)
    assert [type(part).__name__ for part in module.parts] == ["AcceleratorPart"]
    values: Array = np.random.default_rng(1).integers(-128, 128, (1, rows, WIDTH)).astype(np.int8)
    result = run(module, {"x": values}, "sim")
    np.testing.assert_array_equal(result.outputs[y], reference(model, {"x": values}))
    assert result.cycles == module.parts[0].expected_cycles
    check_costs(module.parts)
    if target == "vta:tiny":
        other = run(module, {"x": values}, "rtl")
        np.testing.assert_array_equal(other.outputs[y], result.outputs[y])
        assert other.counters == result.counters


def reordered(net: Rows, x: str, *steps: tuple[int, ...]) -> str:
    """Reshaped, transposed, reshaped, and so on."""
    for number, step in enumerate(steps):
        if number % 2:
            x = net.node("Transpose", [x], perm=list(step))
        else:
            x = net.node("Reshape", [x, net.constant(np.array(step, np.int64))])
    return x


def hybrid(net: Rows, x: str) -> str:
    """Attention between the pixels at each of four places of 2x2 patches, as in MobileViT, with
    queries, keys and values of one product; between two convolutions.
    """
    weights = net.constant(net.rng.integers(-127, 128, (WIDTH, WIDTH, 1, 1), np.int8))
    kernel = net.dequantize(weights, F32(0.01), np.int8(0))
    image = net.again(net.node("Conv", [x, kernel]), 0.04)
    planes = (2 * WIDTH, 2, 2, 2), (0, 2, 1, 3), (1, WIDTH, 4, 4), (0, 3, 2, 1), (4, 4, WIDTH)
    y = reordered(net, image, *planes)
    heads = (4, 4, 3, 2, net.head), (2, 0, 3, 1, 4)
    mixed = reordered(net, net.linear(y, WIDTH, 3 * 2 * net.head), *heads)
    q, k, v = (
        net.node("Gather", [mixed, net.constant(np.int64(place))], axis=0) for place in range(3)
    )
    q = net.again(net.node("Mul", [q, net.constant(F32(0.3))]), 0.021)
    k = net.node("Transpose", [k], perm=[0, 1, 3, 2])
    k = net.again(net.node("Mul", [k, net.constant(F32(0.4))]), 0.017)
    shares = net.again(net.node("Softmax", [net.again(net.node("MatMul", [q, k]), 0.1)]), 1 / 256)
    z = net.again(net.node("MatMul", [shares, v]), 0.03)
    z = reordered(net, net.node("Transpose", [z], perm=[0, 2, 1, 3]), (4, 4, 2 * net.head))
    y = net.again(net.node("Add", [y, net.linear(z, 2 * net.head, WIDTH)]), 0.113)
    shape = (1, 4, 4, WIDTH), (0, 3, 2, 1), (2 * WIDTH, 2, 2, 2), (0, 2, 1, 3), (1, WIDTH, 4, 4)
    return net.node("Conv", [reordered(net, y, *shape), kernel])


def between_pixels(net: Rows, x: str) -> str:
    """Attention between all pixels, between two convolutions."""
    weights = net.constant(net.rng.integers(-127, 128, (WIDTH, WIDTH, 3, 3), np.int8))
    kernel, size = net.dequantize(weights, F32(0.003), np.int8(0)), (1, WIDTH, 2, 8)
    image = net.again(net.node("Conv", [x, kernel], pads=[0, 1, 0, 1]), 0.04)
    rows = reordered(net, image, (1, WIDTH, 16), (0, 2, 1))
    mixed = net.again(net.node("Add", [rows, attention(net, rows)]), 0.113)
    image = reordered(net, mixed, (1, 2, 8, WIDTH), (0, 3, 1, 2), size)
    return net.node("Conv", [image, kernel], pads=[1, 1, 1, 1])


@pytest.mark.parametrize(
    ("network", "head", "shape"),
    [(hybrid, 6, (1, WIDTH, 4, 4)), (between_pixels, 6, (1, WIDTH, 4, 8))],
)
def test_pixels_attend_to_each_other_in_one_launch(
    network: Callable[[Rows, str], str], head: int, shape: tuple[int, ...]
) -> None:
    net = Rows(16, head)
    x = net.dequantize("x", F32(0.02), np.int8(3))
    y = net.quantize(network(net, x), F32(0.07), np.int8(-9))
    model = net.build({"x": ("int8", shape)}, y)
    module = compile(model, "vta:tiny", CompileOptions(overlap=Overlap.TILES))
    assert [type(part).__name__ for part in module.parts] == ["AcceleratorPart"]
    values = {"x": np.random.default_rng(1).integers(-128, 128, shape).astype(np.int8)}
    found = run(module, values, "sim").outputs[y]
    np.testing.assert_array_equal(found, run(compile(model, "cpu"), values, "cpu").outputs[y])
    check_costs(module.parts)
    # Softmax may be one step off, which the sums of two layers make a few.
    apart = np.abs(found.astype(int) - reference(model, values))
    assert (apart > 0).mean() < 0.05
    assert apart.max() < 8


def block(net: Rows, x: str) -> str:
    """Attention, a residual sum, a normalisation with a quantised scale, a layer and another."""
    scale, bias = (net.rng.integers(-90, 128, 2 * WIDTH).astype(np.int8) for _ in range(2))
    y = net.again(net.node("Add", [x, attention(net, x)]), 0.113)
    for inner in (WIDTH, 0):
        factor = net.dequantize(net.constant(scale[:WIDTH]), F32(0.01), np.int8(0))
        y = net.again(
            net.node("LayerNormalization", [y, factor, net.constant(bias[WIDTH:] * F32(0.01))]),
            0.03,
        )
        if inner:
            y = net.again(net.node("Add", [y, net.linear(y, inner, WIDTH)]), 0.0937)
    return y


def test_a_block_of_an_encoder_is_one_launch() -> None:
    rows, shape = 8, (1, 8, WIDTH)
    net = Rows(rows)
    y = net.quantize(block(net, net.dequantize("x", F32(0.02), np.int8(3))), F32(0.05), np.int8(2))
    model = net.build({"x": ("int8", shape)}, y, opset=17)
    module = compile(model, "vta:tiny")
    assert [type(part).__name__ for part in module.parts] == ["AcceleratorPart"]
    values = {"x": np.random.default_rng(1).integers(-128, 128, shape).astype(np.int8)}
    found = run(module, values, "sim").outputs[y]
    np.testing.assert_array_equal(found, run(compile(model, "cpu"), values, "cpu").outputs[y])
    assert np.abs(found.astype(int) - reference(model, values)).max() <= 1


def patches(net: Rows, x: str) -> str:
    """Pixels of a convolution behind a class token, positions added; a layer of the first row."""
    weights = net.constant(net.rng.integers(-127, 128, (WIDTH, 3, 4, 4), np.int8))
    kernel = net.dequantize(weights, F32(0.01), np.int8(0))
    y = net.again(net.node("Conv", [x, kernel], strides=[4, 4]), 0.04)
    shape = net.constant(np.array([1, WIDTH, -1], np.int64))
    y = net.node("Transpose", [net.node("Reshape", [y, shape])], perm=[0, 2, 1])
    y = net.again(net.node("Concat", [net.known(1, 1, WIDTH), y], axis=1), 0.05)
    y = net.again(net.node("Add", [y, net.known(1, 7, WIDTH)]), 0.0613)
    first = net.node("Gather", [net.linear(y, WIDTH, WIDTH), net.constant(np.int64(0))], axis=1)
    return net.linear(first, WIDTH, 5)


@pytest.mark.parametrize("target", ["vta:tiny", "vta:zynq7020"])
def test_a_class_token_positions_and_one_row_are_in_the_launch(target: str) -> None:
    net, shape = Rows(7), (1, 3, 8, 12)
    x = net.dequantize("x", F32(0.02), np.int8(3))
    y = net.quantize(patches(net, x), F32(0.2), np.int8(-9))
    model = net.build({"x": ("int8", shape)}, y)
    module = compile(model, target)
    assert [type(part).__name__ for part in module.parts] == ["AcceleratorPart"]
    values = {"x": np.random.default_rng(1).integers(-128, 128, shape).astype(np.int8)}
    wanted = reference(model, values)
    np.testing.assert_array_equal(run(module, values, "sim").outputs[y], wanted)
    np.testing.assert_array_equal(run(compile(model, "cpu"), values, "cpu").outputs[y], wanted)


def test_a_constant_is_joined_to_what_the_cpu_makes() -> None:
    net, shape = Rows(4), (1, 4, WIDTH)
    y = net.linear(net.dequantize("x", F32(0.02), np.int8(3)), WIDTH, WIDTH)
    y = net.again(net.node("Softmax", [y], axis=1), 0.004)
    y = net.again(net.node("Concat", [net.known(1, 1, WIDTH), y], axis=1), 0.02)
    y = net.quantize(net.linear(y, WIDTH, WIDTH), F32(0.2), np.int8(-9))
    model = net.build({"x": ("int8", shape)}, y)
    module = compile(model, "vta:tiny")
    assert [type(part).__name__ for part in module.parts].count("AcceleratorPart") == 2
    values = {"x": np.random.default_rng(1).integers(-128, 128, shape).astype(np.int8)}
    np.testing.assert_array_equal(run(module, values, "sim").outputs[y], reference(model, values))


def test_quantising_makes_products_of_two_tensors_integer() -> None:
    b, rng, shape = ModelBuilder(), np.random.default_rng(3), (1, 16, WIDTH)
    weights = [b.constant(rng.normal(0, 0.3, (WIDTH, WIDTH)).astype(F32)) for _ in range(2)]
    q, k = (b.node("MatMul", ["x", w]) for w in weights)
    y = b.node("MatMul", [q, b.node("Transpose", [k], perm=[0, 2, 1])])
    model = b.build({"x": ("float32", shape)}, y, "float32", 17)
    samples = [{"x": rng.normal(size=shape).astype(F32)} for _ in range(4)]
    found = quantize_model(model, samples, QuantizeOptions())
    assert found.kept == ()
    module = compile(found.model, "vta:tiny")
    assert [type(part).__name__ for part in module.parts] == ["AcceleratorPart"]
    result = run(module, samples[0], "sim").outputs[y]
    np.testing.assert_array_equal(result, reference(found.model, samples[0]))


def test_rows_that_stay_float_before_are_multiplied_by_weights_on_the_accelerator() -> None:
    net = Rows(24)
    rows = net.node("Reshape", ["x", net.constant(np.array([24, 16], np.int64))])
    y = net.linear(net.again(net.node("Sin", [rows]), 0.01), 16, 40)
    shape = (1, 24, 16)
    model = net.build({"x": ("float32", shape)}, y, "float32")
    module = compile(model, "vta:tiny")
    assert [type(part).__name__ for part in module.parts] == ["CpuPart", "AcceleratorPart"]
    values = {"x": np.random.default_rng(5).normal(size=shape).astype(F32)}
    result = run(module, values, "sim").outputs[y]
    np.testing.assert_array_equal(result, reference(model, values))
