"""Models of float32 in 16 bits: answers near those of the framework, on tensor cores too."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from dovetail.compiler import compile
from dovetail.compiler.errors import TargetError
from dovetail.compiler.options import CompileOptions, Precision
from dovetail.runtime.device import Device
from dovetail.runtime.gpu.part import GpuPart
from dovetail.runtime.module import Module
from dovetail.runtime.session import Session
from tests.ptx.device import InterpreterDevice

HALF = CompileOptions(precision=Precision.FP16)
ERRORS = {Precision.FP16: 0.01, Precision.BF16: 0.05}
"""Allowed errors, relative to the largest output."""


def network(path: Path) -> None:
    """A convolution of 16 channels, a dense layer of 16 rows, and a softmax."""
    rng = np.random.default_rng(4)
    shapes = {"w": (16, 16, 3, 3), "d": (16, 16), "b": (16,)}
    weights = {
        name: (rng.standard_normal(shape) / shape[0] ** 0.5).astype(np.float32)
        for name, shape in shapes.items()
    }
    weights["shape"] = np.array([16, 16])  # type: ignore[assignment]
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1] * 4),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Reshape", ["r", "shape"], ["f"]),
        helper.make_node("MatMul", ["f", "d"], ["m"]),
        helper.make_node("Add", ["m", "b"], ["a"]),
        helper.make_node("Softmax", ["a"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 16, 4, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [16, 16])],
        [numpy_helper.from_array(each, name) for name, each in weights.items()],
    )
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)


def relative_error(session: Session, model: Path, rng: np.random.Generator) -> float:
    """The largest difference of outputs from the framework's, of the largest output."""
    reference = onnxruntime.InferenceSession(str(model))
    given = {
        each.name: rng.standard_normal(each.shape).astype(each.dtype) for each in session.inputs
    }
    pairs = zip(session.run(None, given), reference.run(None, given), strict=True)
    return max(float(np.abs(found - want).max() / np.abs(want).max()) for found, want in pairs)


def test_convolutions_and_dense_layers_run_on_tensor_cores(tmp_path: Path) -> None:
    network(tmp_path / "network.onnx")
    module = compile(tmp_path / "network.onnx", "cuda", options=HALF)
    (part,) = module.parts
    assert isinstance(part, GpuPart)
    entries = bytes(part.source).decode().split(".visible .entry")[1:]
    mma = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    assert sum(mma in each for each in entries) == 2
    session = Session(module, InterpreterDevice())
    error = relative_error(session, tmp_path / "network.onnx", np.random.default_rng(5))
    assert 0 < error < ERRORS[Precision.FP16]


@pytest.mark.parametrize("precision", ERRORS)
def test_a_real_network_gives_the_answers_of_float32(
    precision: Precision, shared_models: Path, opencl: Device, tmp_path: Path
) -> None:
    model = shared_models / "mlperf_tiny" / "ic_resnet8_fp32.onnx"
    whole = compile(model, "opencl").parts[0]
    compile(model, "opencl", options=CompileOptions(precision=precision)).save(tmp_path / "m.dvt")
    module = Module.load(tmp_path / "m.dvt")
    (part,) = module.parts
    assert isinstance(part, GpuPart)
    assert isinstance(whole, GpuPart)
    assert part.data.nbytes < 0.6 * whole.data.nbytes
    session, rng = Session(module, opencl), np.random.default_rng(6)
    assert all(each.dtype == "float32" for each in (*session.inputs, *session.outputs))
    errors = [relative_error(session, model, rng) for _ in range(2)]
    assert 0 < max(errors) < ERRORS[precision]


@pytest.mark.parametrize("target", ["cpu", "vta"])
def test_other_targets_refuse_it(target: str, digits_model: Path) -> None:
    with pytest.raises(TargetError, match=r"precision fp16 for the target \w+.*required fp32"):
        compile(digits_model, target, options=HALF)
