"""Models with operators between their layers that integers do not compute, against ONNX Runtime."""

import numpy as np
import onnxruntime
import pytest

from dovetail.compiler import compile
from dovetail.runtime import run
from dovetail.runtime.accelerator.part import accelerator_parts
from dovetail.runtime.profile.profile import make_profile
from tests.compiler.graph.passes.integer_layers.models import F32, ModelBuilder

SCALE = F32(2**-4)
SHAPE = (1, 6, 9, 7)


def convolution(b: ModelBuilder, x: str, rng: np.random.Generator, scale: float) -> str:
    """3x3, 6 channels, and a scale that is not a power of two."""
    weights = rng.integers(-60, 60, (6, 6, 3, 3)).astype(np.int8)
    w = b.dequantize(b.constant(weights), F32(0.013), np.int8(0))
    return b.quantize(b.node("Conv", [x, w], pads=[1, 1, 1, 1]), scale, np.uint8(120))


def stored(b: ModelBuilder, q: str, scale: float) -> str:
    return b.dequantize(q, scale, np.uint8(120))


@pytest.mark.parametrize("target", ["cpu", "vta:tiny", "vta:zynq7020"])
@pytest.mark.parametrize("seed", range(3))
def test_layers_stay_integer_beside_floats(seed: int, target: str) -> None:
    b, rng = ModelBuilder(), np.random.default_rng(seed)
    first = stored(b, convolution(b, stored(b, "x", SCALE), rng, 0.11), 0.11)
    second = stored(b, convolution(b, first, rng, 0.17), 0.17)
    shown = b.node("Sin", [second])
    norm = b.node("Mul", [shown, b.node("ReduceMax", [second], axes=[1], keepdims=1)])
    third = stored(b, b.quantize(norm, 0.09, np.uint8(120)), 0.09)
    total = b.quantize(b.node("Add", [third, first]), 0.21, np.uint8(120))
    last = convolution(b, stored(b, total, 0.21), rng, 0.3)
    model = b.build({"x": ("uint8", SHAPE)}, last, "uint8")
    module = compile(model, target)
    if target != "cpu":
        kinds = [part.target.partition(":")[0] for part in module.parts]
        assert kinds == ["vta", "cpu", "vta"]
        convolutions = [each for each in module.placement if each.operator == "Conv"]
        assert {each.where for each in convolutions} == {"accelerator"}
        assert sum(each.macs for each in convolutions) == 3 * 9 * 7 * 6 * 54
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    for _ in range(3):
        x = rng.integers(0, 256, SHAPE).astype(np.uint8)
        (wanted,) = session.run(None, {"x": x})
        np.testing.assert_array_equal(run(module, {"x": x}).outputs[last], wanted)


def test_a_profile_is_of_all_programs() -> None:
    b, rng = ModelBuilder(), np.random.default_rng(5)
    first = stored(b, convolution(b, stored(b, "x", SCALE), rng, 0.11), 0.11)
    norm = b.node("Mul", [first, b.node("ReduceMax", [first], axes=[1], keepdims=1)])
    between = b.quantize(norm, 0.09, np.uint8(120))
    last = convolution(b, stored(b, between, 0.09), rng, 0.3)
    module = compile(b.build({"x": ("uint8", SHAPE)}, last, "uint8"), "vta:tiny")
    parts = accelerator_parts(module)
    assert len(parts) == 2
    found = make_profile("two", module, run(module, {"x": np.zeros(SHAPE, np.uint8)}))
    assert found.cycles == sum(part.expected_cycles for part in parts)
    assert sum(layer.cycles for layer in found.layers) == found.cycles
    assert [layer.macs for layer in found.layers] == [each.macs for p in parts for each in p.layers]
    assert len(found.program) == len(found.timeline) == sum(p.instruction_count for p in parts)
    assert found.timeline[-1].end <= found.cycles
    second = parts[0].instruction_count
    assert found.timeline[second].queued >= parts[0].expected_cycles
    assert len({layer.name for layer in found.layers}) == len(found.layers)
    assert [each.cycles for each in found.breakdowns] == [each.cycles for each in found.layers]
    # Each program finds its own memories: what one leaves there ends with it.
    count = len(parts[0].layers)
    for boxes in found.memory.values():
        for each in boxes:
            if each.layer < count:
                assert each.end <= parts[0].expected_cycles
            else:
                assert each.begin >= max(e.end for e in found.timeline[:second])
