"""Cycles that a module states are those of a run with data."""

import numpy as np
import pytest

from dovetail.compiler import compile
from dovetail.compiler.options import CompileOptions, Overlap
from dovetail.runtime import run
from dovetail.runtime.accelerator.part import accelerator_part
from dovetail.runtime.profile.shares import share_cycles

from .models import Network


@pytest.mark.parametrize(
    ("config", "overlap"),
    [("zynq7020", Overlap.LAYERS), ("ecp5_85", Overlap.LAYERS), ("zynq7020", Overlap.NOTHING)],
)
def test_every_layer_takes_the_cycles_expected(config: str, overlap: Overlap) -> None:
    net = Network(np.random.default_rng(0))
    x = net.conv(net.input(16, 28, 28), 32, pads=(1, 1, 1, 1), activation="Relu")
    x = net.add(net.conv(x, 32, pads=(1, 1, 1, 1)), x, relu=True)
    x = net.conv(x, 64, strides=(2, 2), pads=(1, 1, 1, 1))
    module = compile(net.model(x), f"vta:{config}", options=CompileOptions(overlap=overlap))
    (tensor,) = module.inputs
    result = run(module, {tensor.name: np.zeros(tensor.shape, tensor.dtype)}, device="sim")
    part = accelerator_part(module)
    assert result.cycles == part.expected_cycles
    layers = part.layers
    found = share_cycles(result.timeline, len(layers), result.cycles)
    assert [layer.expected_cycles for layer in layers] == found
