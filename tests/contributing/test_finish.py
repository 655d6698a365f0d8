"""A finish of another package, from a model to its run, and a module where it is not installed."""

import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from dovetail.compiler import compile
from dovetail.compiler.front.table import open_model
from dovetail.compiler.translation.module import validate_module
from dovetail.isa.configs import find_config
from dovetail.isa.finishes import OwnFinish, find_finish
from dovetail.isa.instructions import Finish, Vector
from dovetail.runtime.accelerator.part import accelerator_parts
from dovetail.runtime.errors import ModuleError
from dovetail.runtime.module import Module
from dovetail.runtime.session import run
from dovetail.vta_sim.native.errors import MissingCodeError
from dovetail.vta_sim.replay import _library

TINY = find_config("tiny")


def pooled_leaky(alpha: float) -> onnx.ModelProto:
    """A pool, a leaky ReLU and a convolution."""
    weights = np.random.default_rng(1).integers(-9, 9, (4, 4, 1, 1)).astype(np.int8)
    known = {"w": weights, "s": np.float32(1 / 16), "z": np.int8(0)}
    nodes = [helper.make_node("DequantizeLinear", ["w", "s", "z"], ["weights"])]

    def quantised(name: str, result: str) -> str:
        nodes.append(helper.make_node("QuantizeLinear", [name, "s", "z"], [f"{result}q"]))
        nodes.append(helper.make_node("DequantizeLinear", [f"{result}q", "s", "z"], [result]))
        return result

    nodes.append(helper.make_node("MaxPool", [quantised("x", "a")], ["b"], kernel_shape=[2, 2]))
    nodes.append(helper.make_node("LeakyRelu", [quantised("b", "c")], ["d"], alpha=alpha))
    nodes.append(helper.make_node("Conv", [quantised("d", "e"), "weights"], ["f"]))
    quantised("f", "y")
    x, y = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4, size, size])
        for name, size in (("x", 8), ("y", 7))
    )
    constants = [numpy_helper.from_array(np.array(each), name) for name, each in known.items()]
    graph = helper.make_graph(nodes, "leaky", [x], [y], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def finishes(module: Module) -> set[Finish]:
    program = (each for part in accelerator_parts(module) for each in part.program)
    return {each.finish for each in program if isinstance(each, Vector)}


def test_a_model_uses_it_where_it_computes_the_table(leaky: OwnFinish, tmp_path: Path) -> None:
    config = replace(TINY, name="own", finish="leaky")
    x = 3 * np.random.default_rng(2).standard_normal((1, 4, 8, 8)).astype(np.float32)
    for alpha, used in ((0.125, True), (0.1, False)):
        model = pooled_leaky(alpha)
        usual, own = compile(model, "vta:tiny"), compile(model, config)
        assert (Finish.CUSTOM in finishes(own)) is used
        assert Finish.CUSTOM not in finishes(usual)
        results = [run(module, x) for module in (usual, own)]
        (wanted,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
        for result in results:
            np.testing.assert_array_equal(result.outputs["y"], wanted)
        assert (results[1].cycles < results[0].cycles) is used
        onnx.save(model, tmp_path / "leaky.onnx")
        (found,) = validate_module(own, open_model(tmp_path / "leaky.onnx"))
        assert found.found is not None


def test_a_module_is_refused_where_it_is_not_installed(leaky: OwnFinish, packages: Path) -> None:
    data = compile(pooled_leaky(0.125), replace(TINY, name="own", finish="leaky")).to_bytes()
    assert b"acme" not in data
    shutil.rmtree(packages / "acme_finishes-1.0.dist-info")
    find_finish.cache_clear()
    said = "own.dvt: finish 'leaky@1' is brought by no installed package; there are: none; install"
    with pytest.raises(ModuleError, match=re.escape(said)):
        Module.from_bytes(data, "own.dvt")


def test_the_machine_code_in_the_wheel_has_no_finish_of_yours(
    leaky: OwnFinish, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = replace(TINY, name="own", finish="leaky")
    monkeypatch.setattr("dovetail.vta_sim.native.find.find_spec", lambda name: None)
    _library.cache_clear()
    with pytest.raises(MissingCodeError, match=r"none for a finish of your own came with"):
        _library(config.block, config.own_finish)
