"""Models that run partly on the accelerator and partly on the CPU, against ONNX Runtime."""

import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper, numpy_helper

from dovetail.compiler import compile
from dovetail.compiler.__main__ import main
from dovetail.compiler.errors import ModelError
from dovetail.runtime import run
from dovetail.runtime.accelerator.part import accelerator_part
from dovetail.runtime.errors import DeviceError
from dovetail.runtime.module import Module


@pytest.fixture(scope="module")
def model(digits_model: Path) -> onnx.ModelProto:
    """Digits, from a picture twice as large to the probabilities of the three likeliest."""
    model = onnx.load(digits_model)
    graph = model.graph
    (source,), (result,) = list(graph.input), list(graph.output)
    scales = numpy_helper.from_array(np.array([1, 1, 0.5, 0.5], np.float32), "scales")
    sixteen = numpy_helper.from_array(np.array(255, np.float32), "most")
    three = numpy_helper.from_array(np.array([3], np.int64), "three")
    graph.initializer.extend([scales, sixteen, three])
    shape = [d.dim_value for d in source.type.tensor_type.shape.dim]
    picture = helper.make_tensor_value_info(
        "picture", TensorProto.UINT8, [*shape[:2], 2 * shape[2], 2 * shape[3]]
    )
    head = [
        helper.make_node("Cast", ["picture"], ["cast"], "to_float", to=TensorProto.FLOAT),
        helper.make_node("Div", ["cast", "most"], ["scaled"], "to_unit"),
        helper.make_node(
            "Resize", ["scaled", "", "scales"], [source.name], "smaller", mode="nearest"
        ),
    ]
    tail = [
        helper.make_node("Softmax", [result.name], ["likely"], "softmax", axis=-1),
        helper.make_node("TopK", ["likely", "three"], ["values", "places"], "best", axis=-1),
    ]
    nodes = [*head, *graph.node, *tail]
    del graph.node[:], graph.input[:], graph.output[:]
    graph.node.extend(nodes)
    graph.input.append(picture)
    graph.output.extend(
        [
            helper.make_tensor_value_info("values", TensorProto.FLOAT, [1, 3]),
            helper.make_tensor_value_info("places", TensorProto.INT64, [1, 3]),
        ]
    )
    onnx.checker.check_model(model)
    return model


@pytest.fixture(scope="module")
def compiled(model: onnx.ModelProto) -> Module:
    return compile(model, target="vta:tiny")


def test_the_parts_together_are_the_model(model: onnx.ModelProto, compiled: Module) -> None:
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    rng = np.random.default_rng(0)
    module = Module.from_bytes(compiled.to_bytes())
    for _ in range(5):
        x = rng.integers(0, 256, module.inputs[0].shape, dtype=np.uint8)
        found = run(module, {"picture": x}, device="sim")
        values, places = session.run(None, {"picture": x})
        assert np.array_equal(found.outputs["places"], places)
        assert np.allclose(found.outputs["values"], values, rtol=1e-5)
        assert found.cycles
        assert found.macs


def test_where_each_node_runs_is_said(model: onnx.ModelProto, compiled: Module) -> None:
    placed = {each.node: each for each in compiled.placement}
    assert placed["smaller"].where == placed["best"].where == "cpu"
    assert placed["best"].reason == "the accelerator has no TopK"
    convolutions = [each for each in placed.values() if each.operator == "Conv"]
    assert convolutions
    assert all(each.where == "accelerator" for each in convolutions)
    assert [part.target for part in compiled.parts] == ["cpu", "vta:tiny", "cpu"]


def test_the_accelerators_part_alone_takes_what_all_takes(compiled: Module) -> None:
    part = accelerator_part(compiled)
    alone = Module(part.target, part.inputs, part.outputs, (part,))
    x = np.zeros(part.inputs[0].shape, part.inputs[0].dtype)
    whole = run(compiled, np.zeros(compiled.inputs[0].shape, np.uint8), "sim")
    assert run(alone, x, "sim").macs == whole.macs


def test_its_program_can_be_profiled(compiled: Module, tmp_path: Path) -> None:
    path = tmp_path / "parts.dvt"
    compiled.save(path)
    done = CliRunner().invoke(main, ["profile", str(path), "--json"])
    assert done.exit_code == 0, done.output
    assert len(json.loads(done.stdout)["layers"]) == len(accelerator_part(compiled).layers)
    shown = CliRunner().invoke(main, ["disassemble", str(path)])
    assert shown.exit_code == 0
    assert len(shown.stdout.splitlines()) == accelerator_part(compiled).instruction_count


def test_a_model_in_parts_needs_an_accelerator(compiled: Module) -> None:
    x = np.zeros(compiled.inputs[0].shape, np.uint8)
    with pytest.raises(DeviceError, match="cannot run on 'cpu'"):
        run(compiled, {"picture": x}, "cpu")
    with pytest.raises(DeviceError, match="cannot run on 'sim:zynq7020'"):
        run(compiled, {"picture": x}, "sim:zynq7020")


def test_what_depends_on_data_is_compiled_as_it_runs(digits_model: Path) -> None:
    model = onnx.load(digits_model)
    (result,) = model.graph.output
    model.graph.node.append(helper.make_node("NonZero", [result.name], ["places"], "places"))
    del model.graph.output[:]
    model.graph.output.append(helper.make_tensor_value_info("places", TensorProto.INT64, [2, None]))
    compiled = Module.from_bytes(compile(model, "vta:tiny").to_bytes())
    assert [type(part).__name__ for part in compiled.parts] == ["AcceleratorPart", "ModelPart"]
    (placed,) = (each for each in compiled.placement if each.operator == "NonZero")
    assert placed.where == "cpu"
    assert "depends on data" in placed.reason
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    source = compiled.inputs[0]
    rng = np.random.default_rng(1)
    for _ in range(3):
        x = rng.random(source.shape).astype(source.dtype)
        found = run(compiled, {source.name: x}, device="sim").outputs["places"]
        np.testing.assert_array_equal(found, session.run(None, {source.name: x})[0])


def test_a_float_model_has_no_part_for_the_accelerator() -> None:
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"], "product")],
        "float",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2])],
        [numpy_helper.from_array(np.ones((4, 2), np.float32), "w")],
    )
    with pytest.raises(ModelError, match="float model"):
        compile(helper.make_model(graph), target="vta:tiny")
