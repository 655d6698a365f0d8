"""One stored tensor as several outputs of a model, against ONNX Runtime."""

from collections.abc import Callable

import numpy as np
import onnx
import onnxruntime
import pytest

from dovetail.compiler import compile
from dovetail.runtime import run

from .models import F32, ModelBuilder

SHAPE = (1, 3, 5, 6)
SCALE = F32(2**-4)
IMAGE = np.random.default_rng(6).integers(-128, 128, SHAPE).astype(np.int8)
Pair = Callable[[ModelBuilder, str], str]


def whole(b: ModelBuilder, q: str) -> str:
    limits = [b.constant(np.array([value], np.int64)) for value in (0, 99, 2)]
    return b.node("Slice", [q, *limits])


def reshaped(b: ModelBuilder, q: str) -> str:
    return b.node("Reshape", [q, b.constant(np.array([1, 4, -1], np.int64))])


def again(b: ModelBuilder, q: str) -> str:
    return b.quantize(b.dequantize(q, F32(0.5), np.int8(-5)), F32(0.5), np.int8(-5))


SECOND: dict[str, Pair] = {
    "identity": lambda b, q: b.node("Identity", [q]),
    "transpose": lambda b, q: b.node("Transpose", [q], perm=[0, 2, 3, 1]),
    "whole slice": whole,
    "reshape": reshaped,
    "quantised again": again,
    "dequantised": lambda b, q: b.dequantize(q, F32(0.5), np.int8(-5)),
}


@pytest.mark.parametrize("target", ["cpu", "vta:tiny"])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", SECOND)
def test_each_output_has_its_own_form(name: str, reverse: bool, target: str) -> None:
    b = ModelBuilder()
    weights = np.random.default_rng(7).integers(-9, 9, (4, 3, 1, 1)).astype(np.int8)
    w = b.dequantize(b.constant(weights), SCALE, np.int8(0))
    q = b.quantize(b.node("Conv", [b.dequantize("x", SCALE, np.int8(3)), w]), 0.5, np.int8(-5))
    outputs = [q, SECOND[name](b, q)]
    model = b.build({"x": ("int8", SHAPE)}, q)
    kind = onnx.TensorProto.FLOAT if name == "dequantised" else onnx.TensorProto.INT8
    model.graph.output.append(onnx.helper.make_tensor_value_info(outputs[1], kind, None))
    if reverse:
        values = list(model.graph.output)
        del model.graph.output[:]
        model.graph.output.extend(values[::-1])
    found = run(compile(model, target), {"x": IMAGE}).outputs
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    for each, wanted in zip(outputs, session.run(outputs, {"x": IMAGE}), strict=True):
        assert found[each].shape == wanted.shape
        np.testing.assert_array_equal(found[each], wanted)
