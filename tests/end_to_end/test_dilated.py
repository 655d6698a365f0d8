"""Dilated convolutions: on the accelerator only the taps take time, not the gaps between them."""

import numpy as np
import onnx
import pytest

from dovetail.compiler import compile
from dovetail.runtime import run
from dovetail.runtime.accelerator.part import accelerator_part
from tests.compiler.graph.passes.integer_layers.models import F32, ModelBuilder, check
from tests.kept_costs import check_costs

SHAPE = (1, 3, 13, 12)


def network(
    dilations: tuple[int, int], strides: tuple[int, int], pads: list[int]
) -> onnx.ModelProto:
    """A convolution and a depthwise one, both dilated."""
    rng = np.random.default_rng(3)
    b = ModelBuilder()
    x, x_zero = b.dequantize("x", F32(0.04), np.int8(-5)), np.int8(9)
    for shape, group in (((6, 3, 3, 3), 1), ((6, 1, 3, 2), 6)):
        values = rng.integers(-127, 128, shape).astype(np.int8)
        w = b.dequantize(b.constant(values), F32(0.01), np.int8(0))
        conv = b.node("Conv", [x, w], dilations=dilations, strides=strides, pads=pads, group=group)
        y = b.quantize(conv, F32(0.15), x_zero)
        x = b.dequantize(y, F32(0.05), x_zero)
    return b.build({"x": ("int8", SHAPE)}, y)


CASES = [
    ((2, 2), (1, 1), [2, 2, 2, 2]),
    ((1, 3), (1, 1), [1, 3, 1, 3]),
    ((2, 1), (2, 1), [2, 1, 2, 1]),
]


@pytest.mark.parametrize("target", ["cpu", "vta:tiny", "vta:zynq7020"])
@pytest.mark.parametrize(("dilations", "strides", "pads"), CASES)
def test_dilated_convolutions_match_onnx_runtime(
    dilations: tuple[int, int], strides: tuple[int, int], pads: list[int], target: str
) -> None:
    model = network(dilations, strides, pads)
    x = np.random.default_rng(1).integers(-128, 128, SHAPE).astype(np.int8)
    wanted = check(model, {"x": x})
    module = compile(model, target)
    check_costs(module.parts)
    (found,) = run(module, {"x": x}, "cpu" if target == "cpu" else "sim").outputs.values()
    assert np.array_equal(found, wanted)


def test_gaps_take_no_time() -> None:
    """Multiply-accumulates are those of the taps, as many as without dilation."""
    module = compile(network((2, 2), (1, 1), [2, 2, 2, 2]), "vta:tiny")
    first, second = (layer.macs for layer in accelerator_part(module).layers)
    assert first == 13 * 12 * 6 * 3 * 9
    assert second == 13 * 14 * 6 * 6


def test_hardware_runs_them_as_the_simulator_does() -> None:
    module = compile(network((2, 2), (1, 1), [2, 2, 2, 2]), "vta:tiny")
    x = np.random.default_rng(2).integers(-128, 128, SHAPE).astype(np.int8)
    simulated, real = (run(module, {"x": x}, device) for device in ("sim", "rtl"))
    assert simulated.cycles == real.cycles
    for name, found in simulated.outputs.items():
        assert np.array_equal(found, real.outputs[name])
