"""Quantised models on tensor cores: the framework's bytes, from interpreted PTX."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from dovetail.compiler import compile
from dovetail.compiler.options import CompileOptions, Precision
from dovetail.compiler.schedule.rules.gpu import estimate, tensor_tiles
from dovetail.runtime.gpu.part import GpuPart
from dovetail.runtime.session import Session
from tests.ptx.device import InterpreterDevice


def layer(path: Path, node: onnx.NodeProto, inputs: list[int], weights: list[int]) -> None:
    """A quantised layer with a bias, of float32[inputs]; its result is int8.

    node: of ``xd`` and ``wd``, with or without the bias ``bd``, to ``m``.
    """
    rng = np.random.default_rng(len(inputs))
    axis = 0 if node.op_type == "Conv" else 1
    columns = weights[axis]
    x_scale, scales = np.float32(0.02), rng.uniform(0.005, 0.02, columns).astype(np.float32)
    values = {
        "w": rng.integers(-127, 128, weights).astype(np.int8),
        "b": rng.integers(-999, 999, columns).astype(np.int32),
        "sx": x_scale,
        "zx": np.int8(-7),
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
        helper.make_node("DequantizeLinear", ["w", "sw", "zw"], ["wd"], axis=axis),
        helper.make_node("DequantizeLinear", ["b", "sb", "zb"], ["bd"], axis=0),
        node,
        *([] if "bd" in node.input else [helper.make_node("Add", ["m", "bd"], ["a"])]),
        helper.make_node("QuantizeLinear", ["m" if "bd" in node.input else "a", "sy", "zy"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "layer",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, inputs)],
        [helper.make_tensor_value_info("y", TensorProto.INT8, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in values.items()],
    )
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path
    )


DENSE = helper.make_node("MatMul", ["xd", "wd"], ["m"])
STRIDED = helper.make_node(
    "Conv", ["xd", "wd", "bd"], ["m"], pads=[1] * 4, strides=[2, 2], kernel_shape=[3, 3]
)


@pytest.mark.parametrize(
    ("node", "inputs", "weights"),
    [(DENSE, [33, 50], [50, 47]), (STRIDED, [1, 10, 9, 9], [18, 10, 3, 3])],
)
def test_a_quantised_layer_has_the_bytes_of_the_framework(
    node: onnx.NodeProto, inputs: list[int], weights: list[int], tmp_path: Path
) -> None:
    path = tmp_path / "layer.onnx"
    layer(path, node, inputs, weights)
    x = np.random.default_rng(1).standard_normal(inputs).astype(np.float32)
    want = onnxruntime.InferenceSession(str(path)).run(None, {"x": x})[0]
    assert len(np.unique(want)) > 50
    module = compile(path, "cuda")
    (part,) = module.parts
    assert isinstance(part, GpuPart)
    assert b"mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32" in bytes(part.source)
    np.testing.assert_array_equal(Session(module, InterpreterDevice()).run(None, x)[0], want)


@pytest.mark.parametrize(
    ("left", "right", "size"),
    [(np.int8(0), np.int8(0), 33), (np.int8(-7), np.uint8(130), 17), (np.int8(5), np.int8(3), 9)],
)
def test_a_product_of_two_activations_has_the_bytes_of_the_framework(
    left: np.int8, right: np.int8 | np.uint8, size: int
) -> None:
    """Scales are powers of two, so that the framework's float32 is exact; small products stay."""
    rng = np.random.default_rng(size)
    shapes = {"x": (2, size, 40), "w": (2, 40, 18)}
    zeros = {"x": left, "w": right}
    given = {
        name: rng.integers(np.iinfo(zero.dtype).min, 100, shapes[name]).astype(zero.dtype)
        for name, zero in zeros.items()
    }
    constants = {f"z{name}": zero for name, zero in zeros.items()}
    constants |= {"s": np.float32(2**-5), "sy": np.float32(2), "zy": np.int8(3)}
    nodes = [
        helper.make_node("DequantizeLinear", [name, "s", f"z{name}"], [f"{name}d"]) for name in "xw"
    ]
    nodes += [
        helper.make_node("MatMul", ["xd", "wd"], ["m"]),
        helper.make_node("QuantizeLinear", ["m", "sy", "zy"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "product",
        [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
            )
            for name, array in given.items()
        ],
        [helper.make_tensor_value_info("y", TensorProto.INT8, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    want = onnxruntime.InferenceSession(model.SerializeToString()).run(None, given)[0]
    assert len(np.unique(want)) > 30
    module = compile(model, "cuda")
    (part,) = module.parts
    assert isinstance(part, GpuPart)
    assert (b"mma.sync.aligned.m16n8k32" in bytes(part.source)) == (size >= 16)
    np.testing.assert_array_equal(Session(module, InterpreterDevice()).run(None, given)[0], want)


@pytest.fixture
def slow_warps(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Products for which the estimate prefers warpgroups, however small they are."""
    monkeypatch.setattr(estimate, "MEETING", 100.0)
    tensor_tiles._best.cache_clear()
    yield
    tensor_tiles._best.cache_clear()


@pytest.mark.usefixtures("slow_warps")
def test_a_feed_forward_layer_by_warpgroups_is_that_of_the_cpu(tmp_path: Path) -> None:
    """In float16, with GELU and a residual sum fused after the products."""
    path, rng = tmp_path / "layer.onnx", np.random.default_rng(6)
    values = {
        "w0": rng.standard_normal((64, 128)).astype(np.float32) / 8,
        "w1": rng.standard_normal((128, 64)).astype(np.float32) / 11,
        "b0": rng.standard_normal(128).astype(np.float32),
        "b1": rng.standard_normal(64).astype(np.float32),
        "half": np.float32(0.5),
        "root": np.float32(2**-0.5),
        "one": np.float32(1),
    }
    nodes = [
        helper.make_node(kind, inputs.split(), [output])
        for kind, inputs, output in (
            ("MatMul", "x w0", "m0"),
            ("Add", "m0 b0", "a0"),
            ("Mul", "a0 root", "scaled"),
            ("Erf", "scaled", "erf"),
            ("Add", "erf one", "more"),
            ("Mul", "a0 more", "twice"),
            ("Mul", "twice half", "gelu"),
            ("MatMul", "gelu w1", "m1"),
            ("Add", "m1 b1", "a1"),
            ("Add", "a1 x", "y"),
        )
    ]
    graph = helper.make_graph(
        nodes,
        "layer",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 96, 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in values.items()],
    )
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path
    )
    x = rng.standard_normal((2, 96, 64)).astype(np.float32)
    want = onnxruntime.InferenceSession(str(path)).run(None, {"x": x})[0]
    module = compile(path, "cuda:sm_90a", CompileOptions(precision=Precision.FP16))
    (part,) = module.parts
    assert isinstance(part, GpuPart)
    assert b"wgmma.mma_async" in bytes(part.source)
    with Session(module, InterpreterDevice()) as session:
        (found,) = session.run(None, {"x": x})
    assert np.abs(found - want).max() < 2e-3 * np.abs(want).max()
