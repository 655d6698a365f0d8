"""Simplified models compute what they computed before, with fewer nodes."""

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx import helper

from dovetail.compiler.errors import ModelError
from dovetail.compiler.front.onnx.quantize.calibrate import tensors_of
from dovetail.compiler.front.onnx.quantize.evaluate import Evaluator
from dovetail.compiler.front.onnx.quantize.model import FloatModel, read_model
from dovetail.compiler.front.onnx.quantize.simplify import simplify
from dovetail.compiler.graph.ir import Array

from .floats import onnx_runtime, random, small_model


def simplified(model: onnx.ModelProto, x: Array) -> tuple[FloatModel, Array]:
    """The simplified model, and its output."""
    read = read_model(model)
    simple = simplify(read, *tensors_of(read, {"x": x}))
    return simple, dict(Evaluator(simple).run({"x": x}))["y"]


def check(
    nodes: Sequence[onnx.NodeProto],
    x: Array,
    constants: dict[str, Array],
    kinds: list[str],
    opset: int = 13,
) -> FloatModel:
    model = small_model(nodes, x.shape, constants, opset=opset)
    simple, found = simplified(model, x)
    np.testing.assert_allclose(found, onnx_runtime(model, x)[0], rtol=1e-3, atol=1e-4)
    assert [node.kind for node in simple.nodes] == kinds
    return simple


def statistics(channels: int) -> dict[str, Array]:
    rng = np.random.default_rng(5)
    limits = {"s": (0.5, 2), "o": (-1, 1), "m": (-1, 1), "v": (0.2, 3)}
    return {name: rng.uniform(*pair, channels).astype(np.float32) for name, pair in limits.items()}


CONV = helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1], group=1)
WEIGHTS = {"w": random((5, 3, 3, 3), 1)}
IMAGE = random((1, 3, 6, 6))


def test_batch_normalisation_folds_into_a_convolution() -> None:
    norm = helper.make_node("BatchNormalization", ["c", "s", "o", "m", "v"], ["y"], epsilon=1e-3)
    check([CONV, norm], IMAGE, WEIGHTS | statistics(5), ["Conv"])


def test_casts_and_shapes_that_change_nothing_go() -> None:
    same = helper.make_node("Cast", ["c"], ["a"], to=1)
    again = helper.make_node("Concat", ["a"], ["b"], axis=0)
    shape = helper.make_node("Reshape", ["b", "k"], ["e"])
    other = helper.make_node("Reshape", ["e", "f"], ["y"])
    shapes = {"k": np.array([1, 5, 6, 6]), "f": np.array([1, 5, 36])}
    check([CONV, same, again, shape, other], IMAGE, WEIGHTS | shapes, ["Conv", "Reshape"])


def test_batch_normalisation_of_anything_else_becomes_depthwise() -> None:
    norm = helper.make_node("BatchNormalization", ["x", "s", "o", "m", "v"], ["y"])
    check([norm], IMAGE, statistics(3), ["Conv"])


@pytest.mark.parametrize(
    ("kind", "inputs"),
    [
        ("Add", ["c", "k"]),
        ("Add", ["k", "c"]),
        ("Sub", ["c", "k"]),
        ("Sub", ["k", "c"]),
        ("Mul", ["k", "c"]),
        ("Div", ["c", "k"]),
    ],
)
@pytest.mark.parametrize("shape", [(5, 1, 1), (1, 5, 1, 1), (), (1,)])
def test_arithmetic_with_a_constant_a_channel_folds(
    kind: str, inputs: list[str], shape: tuple[int, ...]
) -> None:
    constant = {"k": 1.5 + np.abs(random(shape, 3)).astype(np.float32)}
    check([CONV, helper.make_node(kind, inputs, ["y"])], IMAGE, WEIGHTS | constant, ["Conv"])


@pytest.mark.parametrize(
    ("kind", "inputs", "shape"),
    [("Div", ["k", "c"], (5, 1, 1)), ("Add", ["c", "k"], (6, 6)), ("Mul", ["c", "k"], (1, 1, 6))],
)
def test_other_arithmetic_stays(kind: str, inputs: list[str], shape: tuple[int, ...]) -> None:
    constant = {"k": 1.5 + np.abs(random(shape, 3)).astype(np.float32)}
    node = helper.make_node(kind, inputs, ["y"])
    check([CONV, node], IMAGE, WEIGHTS | constant, ["Conv", kind])


def test_nothing_folds_into_a_convolution_that_others_read() -> None:
    shifted = helper.make_node("Add", ["k", "c"], ["a"])
    both = helper.make_node("Mul", ["a", "c"], ["y"])
    constant = {"k": random((5, 1, 1), 3)}
    simple = check([CONV, shifted, both], IMAGE, WEIGHTS | constant, ["Conv", "Conv", "Mul"])
    assert simple.nodes[1].integer("group", 1) == 5


def test_batch_normalisation_folds_into_a_transposed_convolution() -> None:
    nodes = [
        helper.make_node("ConvTranspose", ["x", "w", "b"], ["c"], strides=[2, 2]),
        helper.make_node("BatchNormalization", ["c", "s", "o", "m", "v"], ["y"]),
    ]
    weights = {"w": random((3, 5, 2, 2), 1), "b": random((5,), 2)}
    check(nodes, IMAGE, weights | statistics(5), ["ConvTranspose"])


@pytest.mark.parametrize(
    ("shape", "kinds"),
    [
        ((1, 6, 6, 4), ["Transpose", "Conv", "Transpose"]),
        ((1, 6, 4), ["Reshape", "Gemm", "Reshape"]),
    ],
)
def test_a_matrix_product_of_any_rank_takes_bias_and_scale(
    shape: tuple[int, ...], kinds: list[str]
) -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["c"]),
        helper.make_node("Add", ["b", "c"], ["a"]),
        helper.make_node("Mul", ["a", "k"], ["y"]),
    ]
    constants = {"w": random((4, 3), 1), "b": random((3,), 2), "k": random((3,), 3)}
    check(nodes, random(shape), constants, kinds)


def test_transposes_that_undo_each_other_vanish() -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("Transpose", ["c"], ["t"], perm=[0, 2, 3, 1]),
        helper.make_node("MatMul", ["t", "v"], ["d"]),
        helper.make_node("Transpose", ["d"], ["u"], perm=[0, 3, 1, 2]),
        helper.make_node("Mul", ["u", "k"], ["y"]),
    ]
    constants = {"v": random((5, 4), 2), "k": random((4, 1, 1), 3)}
    check(nodes, IMAGE, WEIGHTS | constants, ["Conv", "Conv"])


def test_groups_of_channels_become_channels_of_images() -> None:
    """Split attention: two groups, weighed by numbers for each channel, and added."""
    nodes = [
        helper.make_node("Reshape", ["x", "apart"], ["g"]),
        helper.make_node("GlobalAveragePool", ["x"], ["p"]),
        helper.make_node("Reshape", ["p", "beside"], ["a"]),
        helper.make_node("Softmax", ["a"], ["s"], axis=1),
        helper.make_node("Mul", ["g", "s"], ["m"]),
        helper.make_node("ReduceSum", ["m", "one"], ["y"], keepdims=0),
    ]
    constants = {
        "apart": np.array([1, 2, 4, 6, 6]),
        "beside": np.array([1, 2, 4, 1, 1]),
        "one": np.array([1]),
    }
    kinds = ["GlobalAveragePool", "Reshape", "Transpose", "Softmax", "Transpose", "Reshape"]
    check(nodes, random((1, 8, 6, 6)), constants, [*kinds, "Mul", "Conv"])


def test_a_convolution_of_rows_becomes_one_of_images() -> None:
    conv = helper.make_node("Conv", ["x", "w", "b"], ["y"], pads=[1, 2], strides=[2], group=2)
    constants = {"w": random((6, 2, 3), 1), "b": random((6,), 2)}
    check([conv], random((1, 4, 9)), constants, ["Reshape", "Conv", "Reshape"])


def test_what_an_operator_repeats_itself_is_not_expanded() -> None:
    nodes = [
        helper.make_node("GlobalAveragePool", ["x"], ["p"]),
        helper.make_node("Expand", ["p", "shape"], ["e"]),
        helper.make_node("Mul", ["x", "e"], ["y"]),
    ]
    constants = {"shape": np.array(IMAGE.shape)}
    check(nodes, IMAGE, constants, ["GlobalAveragePool", "Mul"])


def test_stacked_images_are_joined() -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("Unsqueeze", ["x", "one"], ["a"]),
        helper.make_node("Unsqueeze", ["r", "one"], ["b"]),
        helper.make_node("Concat", ["a", "b"], ["c"], axis=1),
        helper.make_node("ReduceSum", ["c", "one"], ["y"], keepdims=0),
    ]
    check(nodes, IMAGE, {"one": np.array([1])}, ["Relu", "Concat", "Conv"])


def test_preparation_of_the_image_becomes_depthwise() -> None:
    nodes = [
        helper.make_node("Sub", ["x", "mean"], ["m"]),
        helper.make_node("Div", ["m", "deviation"], ["n"]),
        helper.make_node("Conv", ["n", "w"], ["y"], pads=[1, 1, 1, 1]),
    ]
    constants = {"mean": random((3, 1, 1), 4), "deviation": np.float32(0.3)}
    simple = check(nodes, IMAGE, WEIGHTS | constants, ["Conv", "Conv"])
    assert simple.nodes[0].integer("group", 1) == 3


def test_matmul_and_bias_become_gemm() -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["c"]),
        helper.make_node("Add", ["c", "b"], ["y"]),
    ]
    constants = {"w": random((4, 3), 1), "b": random((1, 3), 2)}
    simple = check(nodes, random((1, 4)), constants, ["Gemm"])
    assert simple.nodes[0].integer("transB", 0) == 1


def test_gemm_loses_its_factors() -> None:
    node = helper.make_node("Gemm", ["x", "w", "b"], ["y"], alpha=0.5, beta=3.0)
    simple = check([node], random((1, 4)), {"w": random((4, 3), 1), "b": random((3,), 2)}, ["Gemm"])
    assert set(simple.nodes[0].attributes) == {"transB"}


def test_a_shortcut_without_weights_becomes_a_convolution() -> None:
    """Every second pixel, and channels of zeros around: as in ResNet-20."""
    nodes = [
        helper.make_node("Slice", ["x", "from", "to", "axes", "steps"], ["c"]),
        helper.make_node("Pad", ["c", "sides"], ["y"]),
    ]
    constants = {
        "from": np.array([0, 0]),
        "to": np.array([2**31, 2**31]),
        "axes": np.array([2, 3]),
        "steps": np.array([2, 2]),
        "sides": np.array([0, 2, 0, 0, 0, 1, 0, 0]),
    }
    check(nodes, IMAGE, constants, ["Conv"])
    constants["from"] = np.array([1, 0])
    check(nodes, IMAGE, constants, ["Slice", "Pad"])


def test_shapes_are_constants() -> None:
    """The way PyTorch flattens: a Reshape to sizes that are computed."""
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "zero"], ["batch"], axis=0),
        helper.make_node("Concat", ["batch", "rest"], ["sizes"], axis=0),
        helper.make_node("Identity", ["x"], ["same"]),
        helper.make_node("Reshape", ["same", "sizes"], ["y"]),
    ]
    constants = {"zero": np.array([0]), "rest": np.array([-1])}
    check(nodes, IMAGE, constants, ["Reshape"])


SIX = {"three": np.float32(3), "zero": np.float32(0), "six": np.float32(6)}
GATE = [
    helper.make_node("Neg", ["x"], ["c"]),
    helper.make_node("Add", ["c", "three"], ["a"]),
    helper.make_node("Clip", ["a", "zero", "six"], ["b"]),
]
SWISHES = {
    "gate alone": [helper.make_node("Div", ["b", "six"], ["y"])],
    "gate, then product": [
        helper.make_node("Mul", ["b", "sixth"], ["g"]),
        helper.make_node("Mul", ["c", "g"], ["y"]),
    ],
    "product, then factor": [
        helper.make_node("Mul", ["c", "b"], ["g"]),
        helper.make_node("Div", ["g", "six"], ["y"]),
    ],
}


@pytest.mark.parametrize("name", SWISHES)
def test_hard_sigmoids_written_as_arithmetic_are_found(name: str) -> None:
    kinds = ["Neg", "HardSigmoid"] + ["Mul"] * (name != "gate alone")
    check([*GATE, *SWISHES[name]], 4 * IMAGE, SIX | {"sixth": np.float32(1 / 6)}, kinds)


@pytest.mark.parametrize(
    "constants",
    [SIX | {"six": np.float32(5), "sixth": np.float32(1 / 6)}, SIX | {"sixth": np.float32(0.5)}],
)
def test_arithmetic_that_is_no_hard_sigmoid_stays(constants: dict[str, Array]) -> None:
    kinds = ["Neg", "Add", "Clip", "Mul", "Mul"]
    check([*GATE, *SWISHES["gate, then product"]], 4 * IMAGE, constants, kinds)


def test_an_output_that_is_another_name_keeps_it() -> None:
    nodes = [CONV, helper.make_node("Identity", ["c"], ["y"])]
    simple = check(nodes, IMAGE, WEIGHTS, ["Conv"])
    assert simple.nodes[0].outputs == ("y",)


def test_a_model_without_inputs_in_its_outputs_is_refused() -> None:
    model = small_model([helper.make_node("Add", ["k", "k"], ["y"])], [1, 2], {"k": random((2,))})
    with pytest.raises(ModelError, match="nothing to quantise"):
        simplified(model, random((1, 2)))
