"""No plan goes below the roof, and the roof counts what any program has to do."""

from dataclasses import replace

import numpy as np
import pytest

from dovetail.compiler import compile
from dovetail.compiler.options import CompileOptions, Overlap
from dovetail.isa.config import HardwareConfig
from dovetail.isa.configs import find_config
from dovetail.runtime.accelerator.part import accelerator_part
from tests.end_to_end.models import Network, random_network

TINY = find_config("tiny")


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("overlap", [Overlap.TILES, Overlap.LAYERS])
def test_no_program_is_faster_than_the_roof(seed: int, overlap: Overlap) -> None:
    config = TINY if seed % 2 else replace(TINY, wgt_depth=64)
    part = accelerator_part(compile(random_network(seed), config, CompileOptions(overlap=overlap)))
    assert 0 < part.roof_cycles <= part.expected_cycles


def roof(channels: int, config: HardwareConfig) -> int:
    net = Network(np.random.default_rng(0))
    x = net.conv(net.input(4, 8, 8), channels, pads=(1, 1, 1, 1))
    model = net.model(net.dense(net.global_average(x), 32))
    return accelerator_part(compile(model, config)).roof_cycles


def test_weights_that_wgt_cannot_hold_raise_the_roof() -> None:
    """12 blocks in, 8 out: 96 tiles, of which WGT holds 32; all pixels of a channel come before."""
    small, large = replace(TINY, wgt_depth=32, name="s"), replace(TINY, wgt_depth=256, name="l")
    assert roof(48, small) >= 64 * TINY.block**2 // TINY.bus_bytes
    assert roof(48, small) >= roof(48, large)
