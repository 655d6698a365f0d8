"""Joining and parting tensors, against ONNX Runtime."""

import numpy as np
import pytest

from dovetail.compiler.graph.operators.integer.values import Add

from .models import F32, ModelBuilder, check, integer_graph
from .static import check_on_targets, conv, statically_quantized

SHAPE = (1, 6, 4, 5)
X = (F32(0.05), np.int8(-3))
Y = (F32(0.031), np.int8(7))


def image(seed: int, shape: tuple[int, ...] = SHAPE) -> np.ndarray:
    """Random int8 of ``shape``."""
    return np.random.default_rng(seed).integers(-128, 128, shape).astype(np.int8)


@pytest.mark.parametrize("axis", [1, 2, 3, -1])
def test_parts_are_brought_to_the_scale_of_the_whole(axis: int) -> None:
    b = ModelBuilder()
    x = b.dequantize("x", *X)
    other = b.dequantize(
        b.quantize(b.node("Relu", [x]), F32(0.02), np.int8(-9)), F32(0.02), np.int8(-9)
    )
    y = b.quantize(b.node("Concat", [x, other], axis=axis), *Y)
    check(b.build({"x": ("int8", SHAPE)}, y), {"x": image(1)})


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("kind", ["Add", "Sub", "Mul", "Concat"])
def test_constants_of_bytes_are_operands(kind: str, dtype: str) -> None:
    """A row before others, a number for each pixel, in other bytes than those of the tensor."""
    b, number = ModelBuilder(), np.dtype(dtype).type
    x = b.dequantize("x", F32(0.043), number(90))
    held = np.random.default_rng(5).integers(0, 127, (1, 1 if kind == "Concat" else 5, 6))
    known = b.dequantize(b.constant(held.astype(dtype)), F32(0.0171), number(33))
    joined = b.node(kind, [known, x], **({"axis": 1} if kind == "Concat" else {}))
    y = b.quantize(joined, F32(0.0631), number(70))
    model = b.build({"x": (dtype, (1, 5, 6))}, y, dtype)
    check(model, {"x": np.random.default_rng(6).integers(0, 127, (1, 5, 6)).astype(dtype)})
    assert type(integer_graph(model).nodes[-1].operator).__name__ != "DequantizeLinear"


@pytest.mark.parametrize("turned", [False, True])
def test_channels_are_multiplied_by_a_gate_of_pixels(*, turned: bool) -> None:
    """Each is repeated to the shape of the result, as in FocalNet."""
    b = ModelBuilder()
    shapes = {"x": (1, 6, 1, 1), "z": (1, 1, 4, 5)}
    pair = [b.dequantize("x", *X), b.dequantize("z", *Y)]
    y = b.quantize(b.node("Mul", pair[::-1] if turned else pair), F32(0.1), np.int8(4))
    model = b.build({name: ("int8", shape) for name, shape in shapes.items()}, y)
    check(model, {name: image(9, shape) for name, shape in shapes.items()})


@pytest.mark.parametrize("index", [0, 3, -1])
def test_one_of_many_rows_is_a_slice(index: int) -> None:
    b = ModelBuilder()
    x = b.node("Gather", [b.dequantize("x", *X), b.constant(np.int64(index))], axis=1)
    model = b.build({"x": ("int8", (1, 5, 6))}, b.quantize(x, *Y))
    check(model, {"x": image(4, (1, 5, 6))})


def test_a_result_that_is_quantised_for_each_reader_is_made_once() -> None:
    """As ONNX Runtime's quantiser does with ``DedicatedQDQPair``."""
    b = ModelBuilder()
    total = b.node("Add", [b.dequantize("x", *X), b.dequantize("z", *Y)])
    alike, other = [b.dequantize(b.quantize(total, *Y), *Y) for _ in range(2)], F32(0.05)
    last = b.dequantize(b.quantize(total, other, Y[1]), other, Y[1])
    y = b.quantize(b.node("Concat", [*alike, last], axis=1), *Y)
    model = b.build(dict.fromkeys("xz", ("int8", SHAPE)), y)
    check(model, {"x": image(7), "z": image(8)})
    made = [node for node in integer_graph(model).nodes if isinstance(node.operator, Add)]
    assert len(made) == 2


def test_parts_of_one_scale_are_only_joined() -> None:
    b = ModelBuilder()
    x = b.dequantize("x", *X)
    same = b.dequantize(b.quantize(b.node("MaxPool", [x], kernel_shape=[1, 1]), *X), *X)
    y = b.quantize(b.node("Concat", [x, same], axis=1), *X)
    model = b.build({"x": ("int8", SHAPE)}, y)
    check(model, {"x": image(2)})
    assert not any("Lookup" in str(node.operator) for node in integer_graph(model).nodes)


def test_qlinear_concat_equals_onnxruntime() -> None:
    b = ModelBuilder()
    scale, zero = b.constant(F32(0.05)), b.constant(np.int8(-3))
    inputs = [b.constant(Y[0]), b.constant(Y[1]), "x", scale, zero, "x", scale, zero]
    y = b.node("QLinearConcat", inputs, domain="com.microsoft", axis=1)
    check(b.build({"x": ("int8", SHAPE)}, y), {"x": image(3)})


@pytest.mark.parametrize(
    ("starts", "ends", "axes", "steps"),
    [
        ([1], [5], [1], [1]),
        ([0, 1], [100, -1], [2, 3], [1, 2]),
        ([-1], [-100], [3], [-1]),
        ([2, 1], [6, 3], [1, 2], [2, 1]),
    ],
)
def test_slices_equal_onnxruntime(
    starts: list[int], ends: list[int], axes: list[int], steps: list[int]
) -> None:
    b = ModelBuilder()
    x = b.dequantize("x", *X)
    limits = [b.constant(np.array(each, np.int64)) for each in (starts, ends, axes, steps)]
    y = b.quantize(b.node("Slice", [x, *limits]), *X)
    check(b.build({"x": ("int8", SHAPE)}, y), {"x": image(4)})


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    ("starts", "ends", "axes", "steps"),
    [([1], [5], [1], [2]), ([-1], [-100], [2], [-1]), ([1, 2], [4, 7], [1, 2], [1, 2])],
)
def test_slices_of_rows_equal_onnxruntime(
    turned: bool, starts: list[int], ends: list[int], axes: list[int], steps: list[int]
) -> None:
    b = ModelBuilder()
    x = b.dequantize("x", *X)
    x = b.node("Transpose", [x], perm=[0, 2, 1]) if turned else x
    limits = [b.constant(np.array(each, np.int64)) for each in (starts, ends, axes, steps)]
    y = b.quantize(b.node("Slice", [x, *limits]), *X)
    rows = np.random.default_rng(8).integers(-128, 128, (1, 6, 8)).astype(np.int8)
    check(b.build({"x": ("int8", rows.shape)}, y), {"x": rows})


@pytest.mark.parametrize("sizes", [None, [4, 2]])
def test_split_parts_are_added_and_joined_again(sizes: list[int] | None) -> None:
    b = ModelBuilder()
    x = b.dequantize("x", *X)
    inputs = [x] if sizes is None else [x, b.constant(np.array(sizes, np.int64))]
    first = b.node("Split", inputs, axis=1)
    second = b.name("second")
    b.nodes[-1].output.append(second)
    y = b.quantize(b.node("Concat", [second, first], axis=1), *X)
    check(b.build({"x": ("int8", SHAPE)}, y), {"x": image(5)})


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("clipped", [False, True])
def test_differences_equal_onnxruntime_on_all_pairs(dtype: str, clipped: bool) -> None:
    b = ModelBuilder()
    kind = np.dtype(dtype).type
    first, second = b.dequantize("x", F32(0.0411), kind(9)), b.dequantize("y", F32(0.03), kind(77))
    y = b.node("Sub", [first, second])
    y = b.quantize(b.node("Relu", [y]) if clipped else y, F32(0.0523), kind(100))
    pairs = np.arange(1 << 16).reshape(1, 1, 256, 256)
    images = {"x": (pairs >> 8).astype(np.uint8), "y": pairs.astype(np.uint8)}
    shapes = dict.fromkeys(images, (dtype, (1, 1, 256, 256)))
    given = {name: image.view(dtype) for name, image in images.items()}
    check(b.build(shapes, y, dtype), given)


def test_differences_run_on_targets() -> None:
    def net(b: ModelBuilder, x: str) -> str:
        x = conv(b, x, 3, 16)
        return conv(b, b.node("Sub", [conv(b, x, 16, 16, 3), x]), 16, 5)

    check_on_targets(statically_quantized(net, (1, 3, 5, 4)))
