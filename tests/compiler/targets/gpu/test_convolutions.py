"""Convolutions on tensor cores, channels last: interpreted PTX against ONNX Runtime."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from dovetail.compiler import compile
from dovetail.compiler.options import CompileOptions, Precision
from dovetail.runtime.gpu.part import GpuPart
from dovetail.runtime.session import Session
from tests.ptx.device import InterpreterDevice

CASES = [
    # batch, channels, side, outputs, kernel, stride, groups
    (1, 3, 15, 16, 7, 2, 1),
    (2, 16, 9, 24, 3, 1, 1),
    (1, 24, 10, 40, 3, 2, 1),
    (1, 20, 8, 33, 1, 1, 1),
    (1, 64, 7, 48, 1, 2, 1),
    (1, 32, 9, 32, 5, 1, 32),
]
BY_WARPGROUPS = (1, 64, 14, 96, 1, 1, 1)


def network(path: Path, case: tuple[int, ...]) -> np.ndarray:
    """A convolution, a limit, a pool, and another convolution on both; its input."""
    batch, channels, side, outputs, kernel, stride, groups = case
    rng = np.random.default_rng(sum(case))
    shapes = {"w": (outputs, channels // groups, kernel, kernel), "b": (outputs,)}
    shapes |= {"v": (outputs, outputs, 3, 3)}
    arrays = {
        name: (rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)
        for name, shape in shapes.items()
    }
    nodes = [
        helper.make_node(
            "Conv", ["x", "w", "b"], ["c"], kernel_shape=[kernel] * 2, pads=[kernel // 2] * 4,
            strides=[stride] * 2, group=groups,
        ),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node(
            "MaxPool", ["r"], ["p"], kernel_shape=[3, 3], pads=[1] * 4, strides=[1, 1]
        ),
        helper.make_node("Conv", ["p", "v"], ["d"], kernel_shape=[3, 3], pads=[1, 0, 1, 2]),
        helper.make_node("Add", ["d", "r"], ["y"]),
    ]  # fmt: skip
    given = [batch, channels, side, side]
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, given)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    imports = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=8), path)
    return rng.standard_normal(given).astype(np.float32)


@pytest.mark.parametrize(
    ("case", "target"),
    [*((each, "cuda") for each in CASES), ((1, 64, 14, 96, 1, 1, 1), "cuda:sm_90a")],
)
def test_a_network_in_float16_has_the_framework_s_answers(
    case: tuple[int, ...], target: str, tmp_path: Path
) -> None:
    path = tmp_path / "network.onnx"
    x = network(path, case)
    want = onnxruntime.InferenceSession(str(path)).run(None, {"x": x})[0]
    options = replace(CompileOptions(), precision=Precision.FP16)
    module = compile(path, target, options)
    (part,) = module.parts
    assert isinstance(part, GpuPart)
    assert b"cp.async.cg.shared.global" in bytes(part.source)
    found = Session(module, InterpreterDevice()).run(None, x)[0]
    np.testing.assert_allclose(found, want, rtol=0, atol=4e-3 * np.abs(want).max())
