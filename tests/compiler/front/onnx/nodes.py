"""Models of one node, run by ONNX Runtime and as compiled code."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import TensorProto, helper

from dovetail.compiler.targets.cpu.executor.executor import Executor

__all__ = ["compare", "compiled", "model_of", "runtime"]

Array = NDArray[Any]


def model_of(
    kind: str,
    inputs: Sequence[Array | None],
    outputs: int = 1,
    opset: int = 21,
    constant: Sequence[int] = (),
    **attributes: object,
) -> onnx.ModelProto:
    """``kind`` on inputs ``x0``, ``x1``, ...; None is left out, ``constant`` ones are weights."""
    names = ["" if array is None else f"x{place}" for place, array in enumerate(inputs)]
    results = [f"y{place}" for place in range(outputs)]
    node = helper.make_node(kind, names, results, name="node", **attributes)
    values, initializers = [], []
    for place, array in enumerate(inputs):
        if array is None:
            continue
        element = helper.np_dtype_to_tensor_dtype(array.dtype)
        if place in constant:
            initializers.append(onnx.numpy_helper.from_array(array, f"x{place}"))
        else:
            values.append(helper.make_tensor_value_info(f"x{place}", element, array.shape))
    unknown = [helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None) for name in results]
    for value in unknown:
        value.ClearField("type")
    graph = helper.make_graph([node], "test", values, unknown, initializers)
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def given(model: onnx.ModelProto, inputs: Sequence[Array | None]) -> dict[str, Array]:
    """The arrays that the model's inputs get."""
    named = {f"x{place}": array for place, array in enumerate(inputs)}
    return {each.name: named[each.name] for each in model.graph.input}  # type: ignore[misc]


def runtime(model: onnx.ModelProto, inputs: Sequence[Array | None]) -> list[Array]:
    """ONNX Runtime's results, without its graph optimisations."""
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.x64quantprecision", "1")
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    inferred = onnx.shape_inference.infer_shapes(model)
    session = onnxruntime.InferenceSession(
        inferred.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return list(session.run(None, given(model, inputs)))


def compiled(model: onnx.ModelProto, inputs: Sequence[Array | None]) -> list[Array]:
    """The compiled model's results."""
    return list(Executor(model).run(given(model, inputs)).values())


def compare(
    kind: str, inputs: Sequence[Array | None], tolerance: float = 1e-4, **options: Any
) -> None:
    """Both, on the same inputs."""
    model = model_of(kind, inputs, **options)
    for found, expected in zip(compiled(model, inputs), runtime(model, inputs), strict=True):
        assert found.dtype == expected.dtype
        assert found.shape == expected.shape
        if np.issubdtype(found.dtype, np.floating):
            np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
        else:
            np.testing.assert_array_equal(found, expected)
