"""Depthwise kernels wider than three columns: VECTOR sums windows of three."""

import numpy as np
import onnx
import pytest

from dovetail.compiler import compile
from dovetail.isa.instructions import Multiplier, Vector
from dovetail.runtime import run
from dovetail.runtime.accelerator.part import accelerator_part
from dovetail.runtime.module import Module
from tests.compiler.graph.passes.integer_layers.models import F32, ModelBuilder, check
from tests.kept_costs import check_costs

SHAPE = (1, 6, 12, 13)
Pair = tuple[int, int]


def network(kernel: Pair, strides: Pair, *, residual: bool = False) -> onnx.ModelProto:
    """A depthwise convolution whose weights have a zero point, perhaps added to its input."""
    rng = np.random.default_rng(5)
    b = ModelBuilder()
    x = b.dequantize("x", F32(0.04), np.uint8(120))
    values = b.constant(rng.integers(0, 256, (SHAPE[1], 1, *kernel)).astype(np.uint8))
    weights = b.dequantize(values, F32(0.01), np.uint8(100))
    before, after = ([(k - left) // 2 for k in kernel] for left in (1, 0))
    y = b.node("Conv", [x, weights], strides=strides, pads=[*before, *after], group=SHAPE[1])
    y = b.quantize(y, F32(0.16), np.uint8(90))
    if residual:
        total = b.node("Add", [b.dequantize(y, F32(0.16), np.uint8(90)), x])
        y = b.quantize(total, F32(0.16), np.uint8(110))
    return b.build({"x": ("uint8", SHAPE)}, y, "uint8")


def windows(module: Module) -> list[Vector]:
    """The instructions that apply three taps a cycle."""
    found = accelerator_part(module).program
    return [x for x in found if isinstance(x, Vector) and x.multiplier is Multiplier.WINDOW]


CASES = [
    ((5, 5), (1, 1), 2, True),
    ((3, 4), (1, 1), 2, True),
    ((1, 9), (1, 1), 3, False),
    ((1, 8), (1, 1), 6, False),
    ((3, 6), (2, 2), 2, True),
]
"""Kernel, strides, groups of three columns, and whether a column of them has two levels."""


@pytest.mark.parametrize(("kernel", "strides", "groups", "wide"), CASES)
@pytest.mark.parametrize("target", ["vta:tiny", "vta:zynq7020"])
def test_wide_kernels_give_the_bytes_of_onnxruntime(
    kernel: Pair, strides: Pair, groups: int, wide: bool, target: str
) -> None:
    model = network(kernel, strides, residual=kernel == (5, 5))
    x = np.random.default_rng(1).integers(0, 256, SHAPE).astype(np.uint8)
    wanted = check(model, {"x": x})
    module = compile(model, target)
    check_costs(module.parts)
    found = windows(module)
    assert {each.extent[0] for each in found} == {groups}
    assert {each.wide_window for each in found} == {wide}
    (output,) = run(module, {"x": x}, "sim").outputs.values()
    assert np.array_equal(output, wanted)


def test_where_windows_would_not_be_faster_taps_are_applied_one_a_cycle() -> None:
    """Two groups of three columns, each with a stride of its own to go, for five taps."""
    assert not windows(compile(network((5, 5), (3, 3)), "vta:zynq7020"))


def test_hardware_runs_them_as_the_simulator_does() -> None:
    module = compile(network((5, 5), (1, 1), residual=True), "vta:tiny")
    x = np.random.default_rng(2).integers(0, 256, SHAPE).astype(np.uint8)
    simulated, real = (run(module, {"x": x}, device) for device in ("sim", "rtl"))
    assert simulated.cycles == real.cycles
    for name, found in simulated.outputs.items():
        assert np.array_equal(found, real.outputs[name])
