"""Fate of each kind of operator: integer, with equal bytes, or float and reported."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from dovetail.compiler import compile
from dovetail.compiler.errors import CalibrationError, ModelError
from dovetail.compiler.front.onnx.quantize import QuantizedModel, QuantizeOptions, quantize_model
from dovetail.compiler.graph.ir import Array
from dovetail.runtime import run

from .floats import onnx_runtime, random, small_model
from .kept_models import check_model

SHAPE = (1, 4, 8, 8)
CONSTANTS = {
    "w1": random((8, 4, 3, 3), 1, 0.2),
    "b1": random((8,), 2, 0.1),
    "w2": random((6, 8, 1, 1), 3, 0.3),
    "w4": random((4, 4, 1, 1), 5, 0.3),
    "b4": random((4,), 6, 0.3),
    "w8": random((8, 8, 2, 2), 7, 0.2),
    "zero": np.float32(0),
    "one": np.float32(1),
    "halves": np.array([1, 2, 4, 8, 8]),
    "whole": np.array([1, 8, 8, 8]),
    "rows": random((8, 8), 4),
    "six": np.float32(6),
    "half": np.float32(0.5),
    "three": np.float32(3),
    "shape": np.array([1, -1]),
    "sides": np.array([0, 0, 1, 1, 0, 0, 1, 1]),
    "scales": np.array([1, 1, 2, 2], np.float32),
}


def quantized(
    nodes: list[onnx.NodeProto], options: QuantizeOptions | None = None, opset: int = 13
) -> tuple[QuantizedModel, onnx.ModelProto]:
    """Conv, then ``nodes`` from ``c`` to ``d``, then Conv 1x1; and the float model."""
    first = helper.make_node("Conv", ["x", "w1", "b1"], ["c"], pads=[1, 1, 1, 1], name="first")
    last = helper.make_node("Conv", ["d", "w2"], ["y"], name="last")
    used = {name for node in (first, *nodes, last) for name in node.input}
    constants = {name: array for name, array in CONSTANTS.items() if name in used}
    model = small_model([first, *nodes, last], SHAPE, constants, opset=opset)
    samples = [{"x": random(SHAPE, seed)} for seed in range(10, 18)]
    return quantize_model(model, samples, options), model


def check_near(found: QuantizedModel, model: onnx.ModelProto) -> None:
    """Within 5 % of the largest output of the float model, with ranges as they were."""
    check_model(found)
    x = random(SHAPE, 12)
    (expected,), (value,) = onnx_runtime(model, x), onnx_runtime(found.model, x)
    np.testing.assert_allclose(value, expected, atol=0.05 * np.abs(expected).max())


def check_equal(found: QuantizedModel) -> None:
    """The bytes of ONNX Runtime."""
    x = random(SHAPE, 12)
    module = compile(found.model, "cpu")
    (value,) = run(module, {"x": x}, "cpu").outputs.values()
    np.testing.assert_array_equal(value, onnx_runtime(found.model, x)[0])


def node(kind: str, *more: str, **attributes: object) -> list[onnx.NodeProto]:
    return [helper.make_node(kind, ["c", *more], ["d"], name="middle", **attributes)]


SWISH = [helper.make_node("Sigmoid", ["c"], ["s"]), helper.make_node("Mul", ["c", "s"], ["d"])]
GELU = [
    helper.make_node("Mul", ["c", "half"], ["h"]),
    helper.make_node("Erf", ["c"], ["e"]),
    helper.make_node("Add", ["e", "one"], ["f"]),
    helper.make_node("Mul", ["h", "f"], ["d"]),
]
SHUFFLE = [
    helper.make_node("Reshape", ["c", "halves"], ["r"]),
    helper.make_node("Transpose", ["r"], ["t"], perm=[0, 2, 1, 3, 4]),
    helper.make_node("Reshape", ["t", "whole"], ["s"]),
    helper.make_node("Split", ["s"], ["left", "right"], axis=1),
    helper.make_node("Conv", ["right", "w4", "b4"], ["e"]),
    helper.make_node("Concat", ["left", "e"], ["d"], axis=1),
]
RESIDUAL = [
    helper.make_node("Neg", ["c"], ["n"]),
    helper.make_node("Relu", ["c"], ["r"]),
    helper.make_node("Add", ["n", "r"], ["a"]),
    helper.make_node("Relu", ["a"], ["d"]),
]

CHANNEL_SCALES = [
    helper.make_node("GlobalAveragePool", ["c"], ["p"]),
    helper.make_node("HardSigmoid", ["p"], ["s"]),
    helper.make_node("Mul", ["s", "c"], ["m"]),
    helper.make_node("Relu", ["m"], ["d"]),
]

INTEGER = {
    "relu": node("Relu"),
    "relu6": node("Clip", "zero", "six"),
    "clip within the values": node("Clip", "zero", "half"),
    "clip of one side": node("Clip", "", "half"),
    "leaky relu": node("LeakyRelu", alpha=0.1),
    "sigmoid": node("Sigmoid"),
    "tanh": node("Tanh"),
    "hard sigmoid": node("HardSigmoid"),
    "elu": node("Elu"),
    "swish": SWISH,
    "gelu in arithmetic": GELU,
    "channels shuffled and split": SHUFFLE,
    "scaled by a number": [
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Mul", ["r", "half"], ["d"]),
    ],
    "transposed convolution": node("ConvTranspose", "w8", "b1", strides=[2, 2]),
    "softmax over channels": node("Softmax", axis=1),
    "border that repeats": node("Pad", "sides", mode="edge"),
    "linear resize": node("Resize", "", "scales", mode="linear"),
    "residual sum": RESIDUAL,
    "channel scales": CHANNEL_SCALES,
    "square": node("Mul", "c"),
    "max pool": node("MaxPool", kernel_shape=[2, 2], strides=[2, 2]),
    "average of all": node("GlobalAveragePool"),
    "mean of all": node("ReduceMean", axes=[2, 3]),
    "means of columns": node("ReduceMean", axes=[3]),
    "border": node("Pad", "sides"),
    "sum with a constant tensor": node("Add", "rows"),
    "product with a constant tensor": node("Mul", "rows"),
}


@pytest.mark.parametrize("unsigned", [False, True], ids=["int8", "uint8"])
@pytest.mark.parametrize("name", INTEGER)
def test_operators_become_integer(name: str, unsigned: bool) -> None:
    found, model = quantized(INTEGER[name], QuantizeOptions(unsigned=unsigned))
    assert found.kept == ()
    assert sum(found.integer.values()) >= len(model.graph.node)
    check_near(found, model)
    check_equal(found)


def test_hard_swish_becomes_integer() -> None:
    found, model = quantized(node("HardSwish"), opset=14)
    assert found.kept == ()
    check_near(found, model)
    check_equal(found)


def test_hard_swish_in_arithmetic_becomes_one_function() -> None:
    nodes = [
        helper.make_node("Add", ["c", "three"], ["a"]),
        helper.make_node("Clip", ["a", "zero", "six"], ["b"]),
        helper.make_node("Mul", ["c", "b"], ["e"]),
        helper.make_node("Div", ["e", "six"], ["d"]),
    ]
    found, model = quantized(nodes)
    assert found.kept == ()
    assert found.integer == {"Conv": 2, "HardSigmoid": 1, "Mul": 1}
    check_near(found, model)
    check_equal(found)


@pytest.mark.parametrize(
    ("nodes", "kind", "reason"),
    [
        (node("Exp"), "Exp", "no integer operator"),
        (node("Pad", "sides", "half"), "Pad", "border of zeros"),
        (node("ReduceMean", axes=[0]), "ReduceMean", "one or two dimensions"),
        (node("Div", "rows"), "Div", "or one and numbers"),
    ],
)
def test_others_stay_float_and_are_reported(
    nodes: list[onnx.NodeProto], kind: str, reason: str
) -> None:
    found, model = quantized(nodes)
    ((where, why),) = found.kept
    assert where == f"node 'middle' ({kind})"
    assert reason in why
    assert found.integer == {"Conv": 2}
    check_near(found, model)


def test_a_softmax_at_the_end_has_the_scale_of_a_probability() -> None:
    nodes = [
        helper.make_node("Flatten", ["x"], ["f"]),
        helper.make_node("Gemm", ["f", "w", "b"], ["g"], transB=1),
        helper.make_node("Softmax", ["g"], ["y"]),
    ]
    constants = {"w": random((10, 256), 1, 0.2), "b": random((10,), 2)}
    model = small_model(nodes, SHAPE, constants)
    found = quantize_model(model, [{"x": random(SHAPE, seed)} for seed in range(4)])
    assert found.kept == ()
    scales = {each.name: each for each in found.model.graph.initializer}
    assert numpy_helper.to_array(scales["y/scale"]) == np.float32(1 / 256)
    assert numpy_helper.to_array(scales["y/zero_point"]) == -128
    check_near(found, model)
    check_equal(found)


def test_tensors_that_are_joined_have_one_scale() -> None:
    nodes = [
        helper.make_node("Relu", ["c"], ["small"]),
        helper.make_node("Concat", ["small", "big"], ["e"], axis=1),
        helper.make_node("MaxPool", ["e"], ["d"], kernel_shape=[2, 2]),
    ]
    nodes.insert(0, helper.make_node("Conv", ["x", "w1"], ["big"], pads=[1, 1, 1, 1]))
    constants = CONSTANTS | {"w2": random((6, 16, 1, 1), 3, 0.3), "w1": 9 * CONSTANTS["w1"]}
    first = helper.make_node("Conv", ["x", "w1", "b1"], ["c"], pads=[1, 1, 1, 1])
    last = helper.make_node("Conv", ["d", "w2"], ["y"])
    model = small_model([first, *nodes, last], SHAPE, {n: constants[n] for n in ("w1", "b1", "w2")})
    found = quantize_model(model, [{"x": random(SHAPE, 12)}])
    values = {each.name: numpy_helper.to_array(each) for each in found.model.graph.initializer}
    assert len({float(values[f"{name}/scale"]) for name in ("small", "big", "e", "d")}) == 1
    assert len({int(values[f"{name}/zero_point"]) for name in ("small", "big", "e", "d")}) == 1
    check_near(found, model)


def test_boxes_and_scores_are_joined_as_floats_at_the_end() -> None:
    """Their ranges are 48 and 1 in a detector; coordinates alone are joined as bytes."""
    ends = [("Sigmoid", "c", "score"), ("Sigmoid", "e", "left"), ("Sigmoid", "f", "right")]
    nodes = [helper.make_node("Conv", ["x", "w1"], [name], pads=[1] * 4) for name in "cef"]
    nodes += [helper.make_node(kind, [x], [y]) for kind, x, y in ends]
    nodes += [helper.make_node("Mul", [x, "edge"], [x + "s"]) for x in ("left", "right")]
    nodes.append(helper.make_node("Concat", ["lefts", "rights"], ["box"], axis=1))
    nodes.append(helper.make_node("Concat", ["box", "score"], ["all"], axis=1, name="last"))
    nodes.append(helper.make_node("Flatten", ["all"], ["y"]))
    constants = {"w1": CONSTANTS["w1"], "edge": np.float32(48)}
    model = small_model(nodes, SHAPE, constants)
    found = quantize_model(model, [{"x": random(SHAPE, 12)}])
    assert found.integer["Concat"] == 1
    assert dict(found.kept).keys() == {"node 'last' (Concat)", "node 'y' (Flatten)"}
    (expected,), (value,) = (onnx_runtime(each, random(SHAPE, 12)) for each in (model, found.model))
    assert np.abs(value - expected)[:, 16 * 64 :].max() < 0.02, "scores"


@pytest.mark.parametrize("ends", [True, False])
def test_coordinates_at_the_end_stay_float(*, ends: bool) -> None:
    """Each pixel's place is added, and all is moved, joined and multiplied by a step."""
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["c"], pads=[1] * 4),
        helper.make_node("Sub", ["places", "c"], ["low"], name="low"),
        helper.make_node("Add", ["places", "c"], ["high"], name="high"),
        helper.make_node("Concat", ["low", "high"], ["box"], axis=1, name="join"),
        helper.make_node("Mul", ["box", "step"], ["y"] if ends else ["scaled"], name="scale"),
    ]
    constants = {
        "w1": CONSTANTS["w1"],
        "places": 100 * random((1, 1, *SHAPE[2:]), 3).astype(np.float32),
        "step": np.float32(8),
    }
    if not ends:
        nodes.append(helper.make_node("Conv", ["scaled", "w2"], ["y"]))
        constants["w2"] = random((6, 16, 1, 1), 3, 0.3)
    found = quantize_model(small_model(nodes, SHAPE, constants), [{"x": random(SHAPE, 12)}])
    kept = {} if not ends else {"low": "Sub", "high": "Add", "join": "Concat", "scale": "Mul"}
    assert dict(found.kept).keys() == {f"node {name!r} ({kind})" for name, kind in kept.items()}
    if ends:
        assert "1x1x8x8 places" in dict(found.kept)["node 'low' (Sub)"]


def test_weights_may_share_one_scale() -> None:
    found, model = quantized(node("Relu"), QuantizeOptions(per_channel=False))
    values = {each.name: each for each in found.model.graph.initializer}
    assert list(values["y/w/scale"].dims) == []
    check_near(found, model)
    check_equal(found)


def test_outputs_keep_their_names_and_order() -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["y"]),
        helper.make_node("Conv", ["y", "w2"], ["z"]),
    ]
    constants = {name: CONSTANTS[name] for name in ("w1", "w2")}
    model = small_model(nodes, SHAPE, constants, outputs=("z", "y", "c"))
    found = quantize_model(model, [{"x": random(SHAPE)}])
    assert [each.name for each in found.model.graph.output] == ["z", "y", "c"]
    for value, expected in zip(
        onnx_runtime(found.model, random(SHAPE)), onnx_runtime(model, random(SHAPE)), strict=True
    ):
        np.testing.assert_allclose(value, expected, atol=0.05 * np.abs(expected).max())


def test_a_channel_of_zeros_is_harmless() -> None:
    weights = CONSTANTS["w1"].copy()
    weights[2] = 0
    model = small_model(
        [helper.make_node("Conv", ["x", "w", "b"], ["y"])],
        SHAPE,
        {"w": weights, "b": CONSTANTS["b1"]},
    )
    found = quantize_model(model, [{"x": random(SHAPE, 12)}])
    check_near(found, model)
    check_equal(found)


def test_a_batch_that_is_not_fixed_becomes_1() -> None:
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"])]
    model = small_model(nodes, ["N", *SHAPE[1:]], {"w": CONSTANTS["w1"]})
    found = quantize_model(model, [{"x": random(SHAPE)}])
    dims = found.model.graph.input[0].type.tensor_type.shape.dim
    assert [dim.dim_value for dim in dims] == list(SHAPE)
    check_equal(found)


def float_conv(**changes: Array) -> onnx.ModelProto:
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"], name="conv")]
    nodes.append(helper.make_node("Log", ["c"], ["y"], name="log"))
    return small_model(nodes, SHAPE, {"w": CONSTANTS["w1"]} | changes)


def refused(model: onnx.ModelProto, kind: type[Exception], message: str, x: Array) -> None:
    with pytest.raises(kind, match=message), np.errstate(all="ignore"):
        quantize_model(model, [{"x": x}] if x.size else [])


def test_what_cannot_be_quantised_is_refused() -> None:
    x = random(SHAPE)
    bad = CONSTANTS["w1"].copy()
    bad[0, 0, 0, 0] = np.nan
    refused(float_conv(w=bad), ModelError, "constant 'w' has a NaN", x)
    refused(float_conv(), CalibrationError, "at least one sample", np.zeros(0))
    log = small_model([helper.make_node("Log", ["x"], ["y"], name="log")], SHAPE)
    refused(log, ModelError, r"no convolution .* node 'log' \(Log\): there is no integer", x)
    done, _ = quantized(node("Relu"))
    refused(done.model, ModelError, "quantised already; required a float model", x)
    relu = small_model([helper.make_node("Relu", ["x"], ["y"])], SHAPE)
    refused(relu, ModelError, "can be quantised: the model has none", x)
    unknown = float_conv()
    unknown.graph.node[0].input[0] = "z"
    refused(unknown, ModelError, r"node .* \(Conv\) reads 'z', which no node before it", x)
    unknown = float_conv()
    unknown.graph.output[0].name = "z"
    refused(unknown, ModelError, "output 'z' is computed by no node", x)
    short = float_conv()
    short.graph.initializer[0].dims[0] += 1
    refused(short, ModelError, "constant 'w' cannot be read", x)
    empty = float_conv()
    empty.graph.node.insert(0, helper.make_node("Constant", [], ["k"]))
    refused(empty, ModelError, r"node 'k' \(Constant\) is malformed", x)
    old = small_model([helper.make_node("Foo", ["x"], ["y"])], SHAPE)
    old.opset_import[0].version = 9
    refused(old, ModelError, "of opset 9 and cannot be converted to 13: .*Foo", x)
    sizes = small_model([helper.make_node("Relu", ["x"], ["y"])], [1, "width"])
    refused(sizes, ModelError, r"input 'x' has shape \[1, 'width'\]; required fixed sizes", x)


def rows() -> onnx.ModelProto:
    """A product of the sum of two inputs, x float32[1, 4] and ids int64[1, 4]."""
    nodes = [
        helper.make_node("Cast", ["ids"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["x", "f"], ["s"]),
        helper.make_node("MatMul", ["s", "w"], ["y"]),
    ]
    model = small_model(nodes, [1, 4], {"w": random((4, 4))})
    model.graph.input.append(helper.make_tensor_value_info("ids", TensorProto.INT64, [1, 4]))
    return model


X, IDS = np.ones((1, 4), np.float32), np.arange(4)[None]
UNFIT = {
    "no array for input 'ids'; found 'x'": {"x": X},
    "no array for input 'x'; found nothing": {},
    r"sample 1: array \[4\] for input 'x'; required \[1, 4\]": {"x": X[0], "ids": IDS},
    "sample 1: array of complex64 for input 'x'; required numbers": {"x": X * 1j, "ids": IDS},
    "sample 1: NaN or infinity for input 'x'": {"x": X * np.nan, "ids": IDS},
    "input 'ids' is int64, and float64 array has 0.5": {"x": X, "ids": IDS / 2},
    "input 'x' is not an array": {"x": [[1, 2], [3]], "ids": IDS},
    "sample 1 is list; required a mapping with an array by input": [X, IDS],
}


@pytest.mark.parametrize("message", UNFIT)
def test_a_sample_that_does_not_fit_is_named(message: str) -> None:
    samples: Any = [{"x": X, "ids": IDS}, UNFIT[message]]
    with pytest.raises(CalibrationError, match=message):
        quantize_model(rows(), iter(samples))


def test_samples_that_are_not_a_list_of_mappings_are_refused() -> None:
    once: Any = {"x": X, "ids": IDS}
    for samples, message in (
        (once, "sample 0 is str; required a mapping .* as {'x': array}"),
        (None, "samples are NoneType; required a list of mappings"),
        (iter(()), "at least one sample"),
    ):
        with pytest.raises(CalibrationError, match=message):
            quantize_model(rows(), samples)


def test_samples_may_be_of_other_types_and_have_more_arrays() -> None:
    samples = [{"x": random((1, 4), seed), "ids": IDS} for seed in range(2)]
    wanted = quantize_model(rows(), samples).model
    others = [
        {"ids": each["ids"].astype(np.uint8), "x": each["x"].astype(np.float64), "w": X}
        for each in samples
    ]
    assert quantize_model(rows(), others).model == wanted


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"method": "most"}, "method 'most'; required one of minmax, percentile, entropy, mse"),
        ({"keep": "conv"}, "keep is str; required a set of nodes' names"),
        ({"weight_bits": 2}, "weights of 2 bits; required 4 or 8"),
        ({"weight_bits": 4, "per_channel": False}, "leave per_channel set"),
        ({"samples": 0}, "0 samples; required at least 1"),
        ({"held": 0}, "0 held samples; required at least 1"),
        ({"percentile": 50}, "percentile 50; required above 50"),
    ],
)
def test_options_that_cannot_be_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        QuantizeOptions(**given)


def test_a_path_is_not_a_model() -> None:
    path: Any = "model.onnx"
    with pytest.raises(ModelError, match=r"the model is str; required what onnx\.load gives"):
        quantize_model(path, [{"x": X}])


def test_values_that_are_not_finite_are_reported_with_their_tensor() -> None:
    nodes = [
        helper.make_node("Log", ["x"], ["l"]),
        helper.make_node("Conv", ["l", "w"], ["y"]),
    ]
    model = small_model(nodes, SHAPE, {"w": CONSTANTS["w1"]})
    with (
        pytest.raises(CalibrationError, match="tensor 'l' has a NaN or infinity for sample 1"),
        np.errstate(all="ignore"),
    ):
        quantize_model(model, [{"x": np.ones(SHAPE, np.float32)}, {"x": random(SHAPE)}])


def test_the_number_of_samples_can_be_limited() -> None:
    model = small_model(
        [helper.make_node("Conv", ["x", "w"], ["y"])], SHAPE, {"w": CONSTANTS["w1"]}
    )
    seen: list[int] = []
    samples = [{"x": random(SHAPE, seed)} for seed in range(5)]
    found = quantize_model(model, samples, QuantizeOptions(samples=3), seen.append)
    assert found.samples == 3
    assert seen == [1, 2, 3]
