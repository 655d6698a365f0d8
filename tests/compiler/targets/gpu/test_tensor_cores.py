"""Quantised models on tensor cores: the framework's bytes, from interpreted PTX."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from dovetail.compiler import compile
from dovetail.runtime.gpu.part import GpuPart
from dovetail.runtime.session import Session
from tests.ptx.device import InterpreterDevice


def dense(path: Path, rows: int, columns: int, depth: int, zero: int) -> None:
    """A quantised dense layer with a bias, of float32[rows, depth]; its result is int8."""
    rng = np.random.default_rng(depth)
    x_scale, scales = np.float32(0.02), rng.uniform(0.005, 0.02, columns).astype(np.float32)
    values = {
        "w": rng.integers(-127, 128, (depth, columns)).astype(np.int8),
        "b": rng.integers(-999, 999, columns).astype(np.int32),
        "sx": x_scale,
        "zx": np.int8(zero),
        "sw": scales,
        "zw": np.zeros(columns, np.int8),
        "sb": x_scale * scales,
        "zb": np.zeros(columns, np.int32),
        "sy": np.float32(0.05),
        "zy": np.int8(3),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "sx", "zx"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "sx", "zx"], ["xd"]),
        helper.make_node("DequantizeLinear", ["w", "sw", "zw"], ["wd"], axis=1),
        helper.make_node("MatMul", ["xd", "wd"], ["m"]),
        helper.make_node("DequantizeLinear", ["b", "sb", "zb"], ["bd"], axis=0),
        helper.make_node("Add", ["m", "bd"], ["a"]),
        helper.make_node("QuantizeLinear", ["a", "sy", "zy"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "dense",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, depth])],
        [helper.make_tensor_value_info("y", TensorProto.INT8, [rows, columns])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in values.items()],
    )
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path
    )


@pytest.mark.parametrize(("sizes", "zero"), [((33, 47, 50), -7)])
def test_a_dense_layer_has_the_bytes_of_the_framework(
    sizes: tuple[int, int, int], zero: int, tmp_path: Path
) -> None:
    path = tmp_path / "dense.onnx"
    dense(path, *sizes, zero)
    x = np.random.default_rng(1).standard_normal((sizes[0], sizes[2])).astype(np.float32)
    want = onnxruntime.InferenceSession(str(path)).run(None, {"x": x})[0]
    assert len(np.unique(want)) > 50
    module = compile(path, "cuda")
    (part,) = module.parts
    assert isinstance(part, GpuPart)
    assert b"mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32" in bytes(part.source)
    np.testing.assert_array_equal(Session(module, InterpreterDevice()).run(None, x)[0], want)
