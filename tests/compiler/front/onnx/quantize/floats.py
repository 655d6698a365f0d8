"""Small float models, and what ONNX Runtime makes of models."""

from collections.abc import Callable, Sequence

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from dovetail.compiler.graph.ir import Array

__all__ = ["onnx_runtime", "onnx_runtime_model", "onnx_runtime_session", "small_model"]


def small_model(
    nodes: Sequence[onnx.NodeProto],
    shape: Sequence[int | str],
    constants: dict[str, Array] | None = None,
    *,
    outputs: Sequence[str] = ("y",),
    opset: int = 13,
) -> onnx.ModelProto:
    """A model with the float32 input ``x``."""
    graph = helper.make_graph(
        list(nodes),
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()],
    )
    graph = onnx.shape_inference.infer_shapes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    ).graph
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def onnx_runtime(model: onnx.ModelProto, x: Array, optimized: str = "") -> list[Array]:
    """All outputs for the only input; the graph that runs is written to ``optimized``."""
    return onnx_runtime_session(model, optimized)(x)


def onnx_runtime_session(
    model: onnx.ModelProto, optimized: str = ""
) -> Callable[[Array], list[Array]]:
    """The model as a function of its only input."""
    kinds = {each.data_type for each in model.graph.initializer}
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    if onnx.TensorProto.UINT8 in kinds:  # whose sums saturate on x86 that has no VNNI
        options.add_session_config_entry("session.x64quantprecision", "1")
    options.log_severity_level = 3
    options.optimized_model_filepath = optimized
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return lambda x: session.run(None, {session.get_inputs()[0].name: x})


def onnx_runtime_model(model: onnx.ModelProto, path: str, x: Array) -> list[str]:
    """The operators that ONNX Runtime computes ``model`` with."""
    onnx_runtime(model, x, path)
    return [node.op_type for node in onnx.load(path).graph.node]


def random(shape: Sequence[int], seed: int = 0, scale: float = 1.0) -> Array:
    """Normal, float32."""
    return (scale * np.random.default_rng(seed).standard_normal(shape)).astype(np.float32)
