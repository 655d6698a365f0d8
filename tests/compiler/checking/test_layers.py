"""Checking a model's layers: all agree, and a planted difference is found where it is."""

from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper, numpy_helper

from dovetail.compiler import compile
from dovetail.compiler.__main__ import main
from dovetail.compiler.checking import layers
from dovetail.compiler.checking.layers import check_layers
from dovetail.compiler.cli.arrays import random_inputs
from dovetail.vta_sim.timing import time_program

from ..graph.passes.integer_layers.models import ModelBuilder


def inputs_of(path: Path) -> dict[str, Any]:
    return dict(random_inputs(compile(path, target="cpu")))


@pytest.mark.parametrize(("target", "device"), [("vta:tiny", "sim"), ("cpu", "cpu")])
def test_all_layers_of_digits_agree(digits_model: Path, target: str, device: str) -> None:
    model, inputs = onnx.load(digits_model), inputs_of(digits_model)
    found = list(check_layers(model, target, device, inputs, time_program))
    assert len(found) >= 9
    assert all(each.passes for each in found)
    assert {each.where for each in found} == {device}
    assert all(not each.difference.unequal for each in found)


def test_the_scores_of_a_softmax_are_not_shown() -> None:
    """A program that overwrites them cannot give them."""
    b, zero = ModelBuilder(), np.int8(0)
    x, y, v = (b.dequantize(name, 0.05, zero) for name in "xyv")
    scores = b.quantize(b.node("MatMul", [x, y]), 0.05, zero)
    shares = b.node("Softmax", [b.dequantize(scores, 0.05, zero)], axis=-1)
    shares = b.dequantize(b.quantize(shares, 1 / 256, np.int8(-128)), 1 / 256, np.int8(-128))
    result = b.quantize(b.node("MatMul", [shares, v]), 0.05, zero)
    shape = (1, 1, 8, 8)
    model = b.build(dict.fromkeys("xyv", ("int8", shape)), result)
    rng = np.random.default_rng(2)
    inputs = {name: rng.integers(-128, 128, shape).astype(np.int8) for name in "xyv"}
    found = list(check_layers(model, "vta:tiny", "sim", inputs, time_program))
    assert all(each.passes for each in found)
    assert scores not in {each.difference.tensor for each in found}
    assert len(found) > 2


def float_model() -> onnx.ModelProto:
    """Two convolutions with activations between, its batch open."""
    rng = np.random.default_rng(0)
    weights = {
        "w1": rng.standard_normal((8, 3, 3, 3), np.float32),
        "w2": rng.standard_normal((4, 8, 1, 1), np.float32),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"], "first"),
        helper.make_node("Relu", ["a"], ["b"], "relu"),
        helper.make_node("Conv", ["b", "w2"], ["c"], "second"),
        helper.make_node("Softmax", ["c"], ["y"], "softmax", axis=1),
    ]
    graph = helper.make_graph(
        nodes,
        "float",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 4, 6, 6])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def test_float_layers_are_close() -> None:
    x = np.random.default_rng(1).standard_normal((2, 3, 8, 8)).astype(np.float32)
    found = list(check_layers(float_model(), "cpu", "cpu", {"x": x}, time_program))
    assert found[-1].difference.tensor == "y"
    assert len(found) > 1
    assert all(each.passes for each in found)
    assert all(each.difference.relative < 1e-5 for each in found)


def test_the_first_layer_that_differs_is_named(
    small_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, device = "vta:tiny", "sim"
    inputs = inputs_of(small_model)
    checked = check_layers(onnx.load(small_model), target, device, inputs, time_program)
    victim = next(islice(checked, 1, None))
    truth = layers.interpret

    def wrong(graph: Any, given: Any) -> dict[str, Any]:
        values = truth(graph, given)
        changed = values[victim.difference.tensor].copy()
        changed[..., -1] ^= 1
        return {**values, victim.difference.tensor: changed}

    monkeypatch.setattr(layers, "interpret", wrong)
    module, picture = tmp_path / "small.dvt", tmp_path / "image.npy"
    compile(small_model, target=target).save(module)
    ((name, array),) = inputs.items()
    np.save(picture, array)
    arguments = ["run", module, "--device", device, "--input", f"{name}={picture}"]
    arguments += ["--output-dir", tmp_path, "--check", small_model]
    done = CliRunner().invoke(main, [str(each) for each in arguments])
    assert done.exit_code == 1
    assert f"layer '{victim.layer}' on {device}" in done.output.replace("\n", " ")
    assert "all layers before it agree" in done.output.replace("\n", " ")


def test_the_wrong_model_is_noticed(small_model: Path, tmp_path: Path) -> None:
    model = onnx.load(small_model)
    other = tmp_path / "other.onnx"
    old = model.graph.output[0].name
    for node in model.graph.node:
        node.output[:] = ["renamed" if name == old else name for name in node.output]
    model.graph.output[0].name = "renamed"
    onnx.save(model, other)
    module, picture = tmp_path / "small.dvt", tmp_path / "image.npy"
    compile(small_model, target="vta:tiny").save(module)
    ((name, array),) = inputs_of(small_model).items()
    np.save(picture, array)
    arguments = ["run", module, "--input", f"{name}={picture}", "--output-dir", tmp_path]
    done = CliRunner().invoke(main, [str(each) for each in [*arguments, "--check", other]])
    assert done.exit_code == 1
    assert f"has no output '{old}'" in done.output
