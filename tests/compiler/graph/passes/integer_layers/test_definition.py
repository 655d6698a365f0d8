"""Where ONNX Runtime's kernels of bytes leave ONNX's definition: ours keep to it, or refuse."""

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import numpy_helper

from dovetail.compiler import compile
from dovetail.compiler.errors import UnsupportedOperatorError
from dovetail.runtime import run

Bytes = NDArray[np.uint8]
HEAD = '<ir_version: 8, opset_import: ["": 18]> m '


def _expected(model: onnx.ModelProto, inputs: dict[str, Bytes], *, optimised: bool) -> Bytes:
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.x64quantprecision", "1")
    options.log_severity_level = 4
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return np.asarray(session.run(None, inputs)[0])


def _element_wise(kind: str, scale: float) -> onnx.ModelProto:
    """A sum of ``a``, whose scale is given, and ``b``; the other scales are 0.1."""
    model = onnx.parser.parse_model(
        f"{HEAD} (uint8[1, 256] a, uint8[1, 256] b) => (uint8[1, 256] y) <float s = {{1.0}}, "
        "float t = {0.1}, uint8 u = {10}, uint8 v = {20}, uint8 w = {30}> { "
        f"d = DequantizeLinear (a, s, u) e = DequantizeLinear (b, t, v) f = {kind} (d, e) "
        "y = QuantizeLinear (f, t, w) }"
    )
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.float32(scale), "s"))
    return model


def _operands() -> dict[str, Bytes]:
    rng = np.random.default_rng(0)
    return {name: rng.integers(0, 256, (1, 256)).astype(np.uint8) for name in "ab"}


@pytest.mark.parametrize("kind", ["Add", "Mul"])
@pytest.mark.parametrize("scale", [1e6, 1e9, 1e30, 1e38])
def test_results_that_leave_int32_are_those_of_the_definition(kind: str, scale: float) -> None:
    model, inputs = _element_wise(kind, scale), _operands()
    with np.errstate(over="ignore"):
        found = run(compile(model, "cpu"), inputs).outputs["y"]
    np.testing.assert_array_equal(found, _expected(model, inputs, optimised=False))
    with pytest.raises(UnsupportedOperatorError, match=r"operands reach .* below 2\*\*31"):
        compile(model, "vta:tiny")


@pytest.mark.parametrize(
    ("kind", "scale", "targets"),
    [("Add", 8e5, ["cpu"]), ("Add", 1e4, ["cpu", "vta:tiny"]), ("Mul", 3e4, ["cpu", "vta:tiny"])],
)
def test_results_within_int32_are_those_of_kernels_of_bytes(
    kind: str, scale: float, targets: list[str]
) -> None:
    model, inputs = _element_wise(kind, scale), _operands()
    expected = _expected(model, inputs, optimised=True)
    for target in targets:
        found = run(compile(model, target), inputs).outputs["y"]
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("kernel", "strides", "pads", "size"),
    [
        ([3, 1], [2, 2], [2, 0, 0, 0], (8, 5)),
        ([3, 3], [3, 2], [2, 1, 2, 0], (5, 7)),
        ([2, 3], [2, 2], [1, 2, 1, 1], (7, 5)),
    ],
)
def test_a_mean_counts_no_cell_beyond_the_pads(
    kernel: list[int], strides: list[int], pads: list[int], size: tuple[int, int]
) -> None:
    """ONNX Runtime's QLinearAveragePool divides by the whole kernel, its AveragePool does not."""
    model = onnx.parser.parse_model(
        f"{HEAD} (uint8[1, 1, {size[0]}, {size[1]}] x) => (uint8[1, 1, a, b] y) "
        "<float s = {0.1}, "
        "uint8 z = {7}, float t = {0.07}, uint8 w = {20}> { d = DequantizeLinear (x, s, z) "
        f"e = AveragePool <kernel_shape = {kernel}, strides = {strides}, pads = {pads}, "
        "ceil_mode = 1, count_include_pad = 1> (d) y = QuantizeLinear (e, t, w) }"
    )
    inputs = {"x": np.random.default_rng(1).integers(0, 256, (1, 1, *size)).astype(np.uint8)}
    expected = _expected(model, inputs, optimised=False)
    found = run(compile(model, "cpu"), inputs).outputs["y"]
    np.testing.assert_array_equal(found, expected)
    other = _expected(model, inputs, optimised=True)
    assert np.abs(other.astype(int) - expected).max() > 1
