"""Corrections: equalisation changes no float output, and each makes int8 lose less."""

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from networks import Options, build, calibration_images, shuffle_detector, unbalanced
from onnx import helper

from dovetail.compiler.front.onnx.quantize import QuantizeOptions, correct, quantize_model
from dovetail.compiler.front.onnx.quantize.calibrate import tensors_of
from dovetail.compiler.front.onnx.quantize.equalize import EQUALIZED, equalize
from dovetail.compiler.front.onnx.quantize.evaluate import Evaluator
from dovetail.compiler.front.onnx.quantize.model import read_model
from dovetail.compiler.front.onnx.quantize.simplify import simplify
from dovetail.compiler.graph.ir import Array

from .floats import onnx_runtime, random, small_model
from .test_random import drawn

SIZE = 32
NETWORKS = {
    "mobilenet": build("mobilenet_v1", Options(SIZE, 10, 0.25)),
    "detector": shuffle_detector(Options(SIZE, 4, 0.5)),
}
IMAGES = calibration_images(12, SIZE)


def joined() -> onnx.ModelProto:
    """Residual sum, transposed and grouped convolutions, PRelu's kin, pools, features, a gate."""

    def node(kind: str, names: str, out: str, **attributes: object) -> onnx.NodeProto:
        return helper.make_node(kind, names.split(), [out], name=out, **attributes)

    nodes = [
        node("Conv", "x w1 b1", "a", pads=[1] * 4),
        node("LeakyRelu", "a", "b", alpha=0.1),
        node("Conv", "b w2", "c", group=2, pads=[1] * 4),
        node("Add", "b c", "d"),
        node("MaxPool", "d", "e", kernel_shape=[2, 2], strides=[2, 2]),
        node("ConvTranspose", "e w3", "f", kernel_shape=[2, 2], strides=[2, 2]),
        node("Concat", "d f", "g", axis=1),
        node("Relu", "g", "h"),
        node("GlobalAveragePool", "h", "i"),
        node("Conv", "i w4", "j"),
        node("Sigmoid", "j", "k"),
        node("Mul", "h k", "l"),
        node("Conv", "l w5", "m"),
        node("Relu", "m", "n"),
        node("AveragePool", "n", "o", kernel_shape=[2, 2], strides=[2, 2]),
        node("Flatten", "o", "p"),
        node("Gemm", "p w6 b6", "q", transB=1),
        node("Relu", "q", "r"),
        node("Gemm", "r w7", "y", transB=1),
    ]
    shapes = {
        "w1": (4, 3, 3, 3),
        "b1": (4,),
        "w2": (4, 2, 3, 3),
        "w3": (4, 3, 2, 2),
        "w4": (7, 7, 1, 1),
        "w5": (4, 7, 1, 1),
        "w6": (5, 64),
        "b6": (5,),
        "w7": (2, 5),
    }
    weights = {name: random(shape, seed) for seed, (name, shape) in enumerate(shapes.items())}
    return small_model(nodes, [1, 3, 8, 8], weights)


def check_the_same(model: onnx.ModelProto, images: Sequence[Array]) -> int:
    """Equalised, a model computes what ONNX Runtime does; how many layers it changes."""
    name = model.graph.input[0].name
    samples = [{name: image} for image in images]
    read = read_model(model)
    simple = simplify(read, *tensors_of(read, samples[0]))
    shapes, _ = tensors_of(simple, samples[0])
    equal = equalize(simple, shapes, samples[:4])
    for sample in samples[:6]:
        (expected,) = onnx_runtime(model, sample[name])
        found = dict(Evaluator(equal).run(sample))[equal.outputs[0]]
        error = np.linalg.norm(found - expected) / np.linalg.norm(expected)
        assert error < 2e-5
    return sum(name.endswith(EQUALIZED) for name in equal.constants)


def test_equalisation_changes_no_output() -> None:
    assert check_the_same(joined(), [random((1, 3, 8, 8), seed) for seed in range(6)]) == 7
    for model in NETWORKS.values():
        assert check_the_same(unbalanced(model, 4), [image[None] for image in IMAGES]) >= 20


def test_a_layer_whose_bias_is_computed_stays_as_it_is() -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("ReduceMean", ["x"], ["c"], axes=[0, 2, 3], keepdims=0),
        helper.make_node("Conv", ["b", "w2", "c"], ["y"]),
    ]
    weights = {"w1": random((4, 3, 1, 1), 0), "w2": random((3, 4, 1, 1), 1)}
    images = [random((1, 3, 8, 5), seed) for seed in range(6)]
    assert check_the_same(small_model(nodes, [1, 3, 8, 5], weights), images) == 0


def test_channels_that_become_rows_have_no_factors() -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"]),
        helper.make_node("Transpose", ["a"], ["b"], perm=[0, 2, 1, 3]),
        helper.make_node("MaxPool", ["b"], ["c"], kernel_shape=[2, 2]),
        helper.make_node("Conv", ["c", "w2"], ["d"]),
        helper.make_node("Transpose", ["a"], ["e"], perm=[0, 1, 3, 2]),
        helper.make_node("Conv", ["e", "w3"], ["f"]),
        helper.make_node("Conv", ["b", "w4"], ["g"]),
        helper.make_node("Concat", ["d", "f", "g"], ["y"], axis=3),
    ]
    shapes = {"w1": (6, 3, 1, 1), "w2": (4, 8, 1, 1), "w3": (4, 6, 1, 5), "w4": (4, 8, 2, 2)}
    weights = {name: random(shape, seed) for seed, (name, shape) in enumerate(shapes.items())}
    images = [random((1, 3, 8, 5), seed) for seed in range(6)]
    assert check_the_same(small_model(nodes, [1, 3, 8, 5], weights), images) == 0


@pytest.mark.parametrize("seed", range(0, 40, 5))
def test_equalisation_changes_no_output_of_random_networks(seed: int) -> None:
    model = drawn(seed)
    shape = [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim]
    check_the_same(model, [random(shape, seed + place) for place in range(6)])


def loss(model: onnx.ModelProto, options: QuantizeOptions) -> float:
    """The error of the outputs on other images than those that calibrate, relative to float."""
    samples = [{"image": image[None]} for image in IMAGES[:8]]
    quantized = quantize_model(model, samples, options).model
    exact, found = (
        np.stack([onnx_runtime(each, image[None])[0] for image in IMAGES[8:]])
        for each in (model, quantized)
    )
    return float(np.linalg.norm(found - exact) / np.linalg.norm(exact))


@pytest.mark.parametrize("name", NETWORKS)
def test_what_badly_scaled_channels_lose_comes_back(name: str) -> None:
    """At least nine tenths of the error of min-max with one scale a layer."""
    model = unbalanced(NETWORKS[name], 4)
    image = IMAGES[0][None]
    exact = onnx_runtime(NETWORKS[name], image)[0]
    np.testing.assert_array_equal(onnx_runtime(model, image)[0], exact)
    lost = loss(model, QuantizeOptions(per_channel=False))
    assert lost > 0.5
    assert loss(model, QuantizeOptions(per_channel=False, equalize=True)) < lost / 10
    every = QuantizeOptions(equalize=True, correct_bias=True, adaptive=True)
    assert loss(model, every) < lost / 10


def test_biases_and_rounding_lose_less_than_rounding_to_the_nearest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A channel that is small, and weights that make it large again, at one scale a layer."""
    mixed = random((12, 12), 5)
    weights = {"w1": random((12, 12, 1, 1), 6), "w2": random((3, 12, 3, 3), 7)}
    weights["w1"][0] /= 30
    weights["w2"][:, 0] *= 30
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "w2"], ["y"]),
    ]
    model = small_model(nodes, [1, 12, 16, 16], weights)
    images = [np.einsum("oc,nchw->nohw", mixed, random((1, 12, 16, 16), s)) for s in range(12)]
    images = [(np.abs(image) + 1).astype(np.float32) for image in images]
    samples = [{"x": image} for image in images[:8]]
    lost = {}
    for name, options in {
        "nearest": QuantizeOptions(per_channel=False),
        "bias": QuantizeOptions(per_channel=False, correct_bias=True),
        "rounding": QuantizeOptions(per_channel=False, correct_bias=True, adaptive=True),
        "by parts": QuantizeOptions(per_channel=False, correct_bias=True, adaptive=True),
    }.items():
        if name == "by parts":
            monkeypatch.setattr(correct, "WIDEST", 50)
        quantized = quantize_model(model, samples, options).model
        (exact, found) = (
            np.stack([onnx_runtime(each, image)[0] for image in images[8:]])
            for each in (model, quantized)
        )
        lost[name] = float(np.linalg.norm(found - exact) / np.linalg.norm(exact))
    assert lost["bias"] < 0.9 * lost["nearest"]
    assert lost["rounding"] < 0.95 * lost["bias"]
    assert lost["rounding"] != lost["by parts"] < lost["bias"], "108 inputs, 50 at a time"


def cut_off(wild: bool) -> onnx.ModelProto:
    """Two convolutions with a Relu between that ends at 6; some channels are far from there, the
    more so if ``wild``.
    """
    first, second = random((8, 3, 3, 3), 1, 0.5), random((2, 8, 3, 3), 2, 0.3)
    factors = np.array([9, 3, 1, 1, 2**-4, 2**-5, 2**-6, 2**-7] if wild else [9] * 8, np.float32)
    first *= factors[:, None, None, None]
    second /= factors[:, None, None]
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"]),
        helper.make_node("Clip", ["a", "low", "high"], ["b"]),
        helper.make_node("Conv", ["b", "w2"], ["y"]),
    ]
    limits = {"low": np.float32(0), "high": np.float32(6)}
    return small_model(nodes, [1, 3, 8, 8], {"w1": first, "w2": second, **limits})


def test_a_relu_that_ends_at_6_lets_factors_pass_as_far_as_nothing_more_is_cut_off() -> None:
    model, images = cut_off(wild=True), [random((1, 3, 8, 8), seed) for seed in range(4)]
    assert check_the_same(model, images) == 2
    assert check_the_same(cut_off(wild=False), images) == 0, "every channel is cut off"
    samples = [{"x": image} for image in images]
    exact = np.stack([onnx_runtime(model, image)[0] for image in images])

    def error(options: QuantizeOptions) -> float:
        made = quantize_model(model, samples, options).model
        found = np.stack([onnx_runtime(made, image)[0] for image in images])
        return float(np.linalg.norm(found - exact) / np.linalg.norm(exact))

    assert error(QuantizeOptions(equalize=True)) < error(QuantizeOptions()) / 4
