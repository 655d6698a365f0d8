"""uint8 networks whose weights have zero points, so that not all weights less theirs are int8."""

from pathlib import Path

import numpy as np
import onnx
import pytest

from dovetail.compiler import compile
from dovetail.runtime import run
from tests.compiler.graph.passes.integer_layers.models import F32, ModelBuilder, check, reference
from tests.kept_costs import check_costs

MODEL = "mobilenet_v1/mobilenet_v1_0.25_128_uint8.onnx"
MOST_CYCLES = 190_000


def network(seed: int) -> onnx.ModelProto:
    """Convolution, depthwise and pointwise convolution, dense layer; uint8 throughout."""
    rng = np.random.default_rng(seed)
    b = ModelBuilder()

    def layer(x: str, shape: tuple[int, ...], kind: str = "Conv", **attributes: object) -> str:
        zero = np.uint8(rng.integers(0, 256))
        values = rng.integers(0, 256, shape).astype(np.uint8)
        weights = b.dequantize(b.constant(values), F32(0.02), zero)
        total = b.node(kind, [x, weights], **attributes)
        zero_point = np.uint8(rng.integers(0, 256))
        y = b.quantize(total, F32(0.05 * np.sqrt(np.prod(shape[1:]))), zero_point)
        return y if kind == "Gemm" else b.dequantize(y, F32(0.03), zero_point)

    x = b.dequantize("x", F32(0.04), np.uint8(rng.integers(0, 256)))
    x = layer(x, (6, 3, 3, 3), strides=[2, 2], pads=[1, 1, 1, 1])
    x = layer(x, (6, 1, 3, 3), group=6, pads=[1, 1, 1, 1])
    x = layer(x, (5, 6, 1, 1))
    x = layer(x, (5, 1, 3, 3), group=5, strides=[2, 2], pads=[0, 0, 1, 1])
    x = b.node("Flatten", [x])
    y = layer(x, (7, 5 * 2 * 2), "Gemm", transB=1)
    return b.build({"x": ("uint8", (1, 3, 9, 8))}, y, "uint8")


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("target", ["vta:tiny", "vta:zynq7020"])
def test_asymmetric_weights_give_the_bytes_of_onnxruntime(seed: int, target: str) -> None:
    model = network(seed)
    x = np.random.default_rng(seed).integers(0, 256, (1, 3, 9, 8)).astype(np.uint8)
    wanted = check(model, {"x": x})
    module = compile(model, target)
    check_costs(module.parts)
    (found,) = run(module, {"x": x}, "sim").outputs.values()
    assert np.array_equal(found, wanted)
    if seed == 0 and target == "vta:tiny":
        result = run(module, {"x": x}, "rtl")
        assert np.array_equal(next(iter(result.outputs.values())), wanted)
        assert result.cycles == run(module, {"x": x}, "sim").cycles


@pytest.mark.parametrize("seed", range(4))
def test_machine_code_gives_the_bytes_of_onnxruntime(seed: int) -> None:
    model = network(seed)
    x = np.random.default_rng(seed).integers(0, 256, (1, 3, 9, 8)).astype(np.uint8)
    (found,) = run(compile(model, "cpu"), {"x": x}, "cpu").outputs.values()
    assert np.array_equal(found, check(model, {"x": x}))


def test_a_real_model_gives_the_bytes_of_onnxruntime(shared_models: Path) -> None:
    path = shared_models / MODEL
    if not path.is_file():
        pytest.skip(f"no ../shared/models/{MODEL}")
    model = onnx.load(path)
    module, code = compile(model, "vta:zynq7020"), compile(model, "cpu")
    (signature,) = module.inputs
    rng = np.random.default_rng(5)
    for _ in range(2):
        x = rng.integers(0, 256, signature.shape).astype(np.uint8)
        result = run(module, {signature.name: x}, "sim")
        (found,) = result.outputs.values()
        wanted = reference(model, {signature.name: x})
        assert np.array_equal(found, wanted)
        (found,) = run(code, {signature.name: x}, "cpu").outputs.values()
        assert np.array_equal(found, wanted)
        assert result.cycles is not None
        assert result.cycles <= MOST_CYCLES
