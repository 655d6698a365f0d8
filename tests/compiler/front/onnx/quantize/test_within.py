"""Losses of layers, and mixtures of int8 and float, against ONNX Runtime."""

import numpy as np
import onnx
import pytest
from onnx import helper

from dovetail.compiler.errors import CalibrationError, ModelError
from dovetail.compiler.front.onnx.quantize import QuantizeOptions, quantize_model
from dovetail.compiler.front.onnx.quantize.calibrate import Calibrated, calibrate
from dovetail.compiler.front.onnx.quantize.driver import settle
from dovetail.compiler.front.onnx.quantize.model import read_model
from dovetail.compiler.front.onnx.quantize.within import losses_of, quantize_within
from dovetail.compiler.graph.ir import Array
from dovetail.compiler.quantize.loss import Kind

from .floats import onnx_runtime, random, small_model

SAMPLES = [{"x": random((1, 3, 8, 8), seed)} for seed in range(4)]


def chain(wild: float = 1.0) -> onnx.ModelProto:
    """Three convolutions and a pool; a channel of the second one is ``wild`` times the others."""
    second = random((4, 4, 2, 2), 2, 0.3)
    second[0] *= wild
    third = random((2, 4, 2, 2), 3, 0.3)
    third[:, 0] /= wild
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"], name="first"),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "w2"], ["c"], name="second"),
        helper.make_node("Relu", ["c"], ["d"]),
        helper.make_node("MaxPool", ["d"], ["e"], kernel_shape=[2, 2]),
        helper.make_node("Conv", ["e", "w3"], ["y"], name="third"),
    ]
    weights = {"w1": random((4, 3, 3, 3), 1, 0.3), "w2": second, "w3": third}
    return small_model(nodes, [1, 3, 8, 8], weights)


def calibrated(model: onnx.ModelProto) -> Calibrated:
    told = list[int]()
    found = calibrate(read_model(model), SAMPLES, QuantizeOptions(), told.append)
    assert told == [*range(1, len(SAMPLES) + 1)]
    return found


def error(model: onnx.ModelProto, exact: onnx.ModelProto) -> float:
    """Relative, over all samples."""
    found, expected = (
        np.stack([onnx_runtime(each, sample["x"])[0] for sample in SAMPLES])
        for each in (model, exact)
    )
    return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))


def with_weights(model: onnx.ModelProto, name: str, weights: Array) -> onnx.ModelProto:
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    for each in changed.graph.initializer:
        if each.name == name:
            each.CopyFrom(onnx.numpy_helper.from_array(weights, name))
    return changed


def test_a_layers_loss_is_that_of_the_model_with_its_weights_rounded() -> None:
    model = chain()
    losses = losses_of(calibrated(model), QuantizeOptions(), SAMPLES)
    (second,) = (each for each in losses if (each.kind, each.name) == (Kind.WEIGHTS, "second"))
    weights = random((4, 4, 2, 2), 2, 0.3)
    step = np.abs(weights).max(axis=(1, 2, 3), keepdims=True) / 127
    rounded = with_weights(model, "w2", (np.rint(weights / step) * step).astype(np.float32))
    assert second.output == pytest.approx(error(rounded, model), rel=1e-3)
    tensors = {each.name: each.layers for each in losses if each.kind is Kind.TENSOR}
    assert tensors == {
        "x": {"first"},
        "b": {"first", "second"},
        "d": {"second", "third"},
        "y": {"third"},
    }


def test_a_corrected_bias_is_part_of_what_its_layer_loses() -> None:
    model, options = chain(), QuantizeOptions(correct_bias=True)
    ready = calibrate(read_model(model), SAMPLES, options)
    (second,) = (
        each
        for each in losses_of(ready, options, SAMPLES)
        if (each.kind, each.name) == (Kind.WEIGHTS, "second")
    )
    _, corrected = settle(ready, options)
    layer = corrected["c"]
    weights = layer.integers * layer.scales[:, None, None, None]
    assert layer.bias is not None
    step = layer.scales.astype(np.float64) * settle(ready, options)[0].scales["b"].scale
    changed = with_weights(model, "w2", weights.astype(np.float32))
    changed.graph.node[2].input.append("bias")
    bias = (layer.bias * step).astype(np.float32)
    changed.graph.initializer.append(onnx.numpy_helper.from_array(bias, "bias"))
    assert second.output == pytest.approx(error(changed, model), rel=1e-3)


def test_the_layers_that_lose_most_stay_float() -> None:
    model, options = chain(wild=500.0), QuantizeOptions()
    ready = calibrated(model)
    whole = error(quantize_model(model, SAMPLES).model, model)
    bound = whole / 4

    def losses() -> tuple:
        return losses_of(ready, options, SAMPLES)

    mixed, all_int8, found = quantize_within(
        ready, options, bound, lambda m: error(m, model), losses
    )
    assert found.keep == {"second", "third"}, "what writes and reads the wild tensor"
    assert error(mixed.model, model) == pytest.approx(found.drop)
    assert found.drop <= bound < whole
    assert ("node 'second' (Conv)", "it is kept float") in mixed.kept
    assert error(all_int8.model, model) == pytest.approx(whole)
    plain, _, none = quantize_within(ready, options, 1.0, lambda m: error(m, model), losses)
    assert (none.keep, plain.kept) == (frozenset(), ())


def test_a_bound_that_no_mixture_keeps_is_an_error_of_its_own() -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"], name="first"),
        helper.make_node("Conv", ["x", "w2"], ["b"], name="second"),
        helper.make_node("Mul", ["a", "b"], ["c"], name="product"),
        helper.make_node("Add", ["c", "a"], ["y"], name="sum"),
    ]
    weights = {"w1": random((4, 3, 3, 3), 1, 0.3), "w2": random((4, 3, 3, 3), 2, 0.3)}
    ready, options = calibrated(small_model(nodes, [1, 3, 8, 8], weights)), QuantizeOptions()
    with pytest.raises(CalibrationError, match=r"100.00% at best, with . layers in float"):
        quantize_within(
            ready, options, 0.5, lambda m: 1.0, lambda: losses_of(ready, options, SAMPLES)
        )


def test_unknown_nodes_to_keep_are_named() -> None:
    with pytest.raises(ModelError, match="no node 'fourth' to keep float; there are first"):
        quantize_model(chain(), SAMPLES, QuantizeOptions(keep=frozenset(["fourth"])))
