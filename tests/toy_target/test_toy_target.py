"""A third target, of this folder alone, runs networks through the compiler and a session."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from dovetail.compiler import CompileOptions, compile
from dovetail.compiler.errors import UnsupportedOperatorError
from dovetail.runtime.errors import DeviceError
from dovetail.runtime.module import Module
from dovetail.runtime.session import Session

from .device import SourceDevice, SourcePart
from .target import NumpySource


def multilayer(last: str = "Softmax") -> tuple[onnx.ModelProto, list[np.ndarray]]:
    rng = np.random.default_rng(3)
    arrays = [
        rng.standard_normal(shape).astype(np.float32) for shape in ((6, 8), (8,), (8, 4), (4,))
    ]
    nodes = [
        helper.make_node("Gemm", ["x", "w0", "w1"], ["h"]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("MatMul", ["r", "w2"], ["m"]),
        helper.make_node("Add", ["m", "w3"], ["s"]),
        helper.make_node(last, ["s"], ["y"], name="last"),
    ]
    graph = helper.make_graph(
        nodes,
        "mlp",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 6])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 4])],
        [numpy_helper.from_array(array, f"w{n}") for n, array in enumerate(arrays)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), arrays


def test_a_float_network_runs_as_source(tmp_path: Path) -> None:
    model, (w0, w1, w2, w3) = multilayer()
    module = compile(model, NumpySource(), CompileOptions(dump=tmp_path / "dump"), {"batch": 5})
    module.save(tmp_path / "mlp.dvt")
    read = Module.load(tmp_path / "mlp.dvt", {SourcePart.kind: SourcePart})
    x = np.random.default_rng(4).standard_normal((5, 6)).astype(np.float32)
    found = Session(read, SourceDevice()).run({"x": x}).outputs["y"]
    weights = np.exp(np.maximum(x @ w0 + w1, 0) @ w2 + w3)
    np.testing.assert_allclose(found, weights / weights.sum(-1, keepdims=True), rtol=1e-5)
    steps = sorted(path.name for path in (tmp_path / "dump").iterdir())
    assert steps == ["00_import.txt", "01_source.txt"]


def test_an_integer_network_runs_as_source(shared_models: Path) -> None:
    folder = shared_models / "mlperf_tiny"
    model, golden = folder / "ic_resnet8_int8.onnx", np.load(folder / "ic_resnet8_int8.golden.npz")
    session = Session(compile(model, NumpySource()), SourceDevice())
    (given,), (name,) = session.inputs, (each.name for each in session.outputs)
    for image, expected in list(zip(golden["input"], golden["onnxruntime"], strict=True))[:4]:
        found = session.run({given.name: image.reshape(given.shape)}).outputs[name]
        assert int(found.argmax()) == int(expected.argmax())
        # Float sums are not in the order of integer ones: a result may be a step away.
        distance = found.reshape(-1).astype(int) - expected.reshape(-1).astype(int)
        assert np.abs(distance).max() <= 2


def test_what_it_lacks_is_named() -> None:
    model, _ = multilayer("Tanh")
    with pytest.raises(UnsupportedOperatorError, match="node 'last': numpy has no Unary"):
        compile(model, NumpySource(), dims={"batch": 1})


def test_its_modules_run_on_its_device_only() -> None:
    model, _ = multilayer()
    module = compile(model, NumpySource(), dims={"batch": 1})
    with pytest.raises(DeviceError, match="compiled for 'numpy' cannot run on 'cpu'"):
        Session(module, "cpu")
