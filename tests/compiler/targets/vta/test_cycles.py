"""Programs take no more cycles than they did: worse choices of a plan are only slower."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import onnx
import pytest

from dovetail.compiler.driver import compile_model
from dovetail.compiler.targets.vta import search
from dovetail.isa.config import HardwareConfig
from dovetail.runtime.accelerator.part import AcceleratorPart
from tests.end_to_end.models import Network, random_network
from tests.kept_costs import check_costs

from .programs import TINY


@pytest.fixture(autouse=True)
def one_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """Faster plans are looked for near the best one, once."""
    monkeypatch.setattr(search, "MOST_ROUNDS", 1)


CRAMPED = replace(TINY, name="cramped", act_depth=512)
NARROW = replace(TINY, name="narrow", act_depth=256, wgt_depth=64)


def mobile() -> onnx.ModelProto:
    """Inverted residuals, whose expanded images fit in ACT a few channels at a time."""
    net = Network(np.random.default_rng(0))
    x = net.conv(net.input(3, 20, 20), 12, strides=(2, 2), pads=(1, 1, 1, 1), activation="Relu")
    for stride, channels in ((1, 12), (2, 20)):
        wide = net.conv(x, 4 * x.shape[1], (1, 1), activation="Clip")
        pads, strides = (1, 1, 1, 1), (stride, stride)
        wide = net.conv(
            wide, wide.shape[1], pads=pads, strides=strides, depthwise=True, activation="Clip"
        )
        narrow = net.conv(wide, channels, (1, 1))
        x = net.add(x, narrow) if stride == 1 else narrow
    return net.model(net.dense(net.global_average(x), 10))


def wide() -> onnx.ModelProto:
    """Layers whose weights are streamed, around a sum, a pool and two branches that are joined."""
    net = Network(np.random.default_rng(0))
    x = net.input(16, 14, 14)
    long = net.conv(x, 48, pads=(1, 1, 1, 1), activation="Relu")
    long = net.conv(long, 48, pads=(1, 1, 1, 1))
    x = net.add(long, net.conv(x, 48, (1, 1)), relu=True)
    x = net.max_pool(x, 3, 2, (1, 1, 1, 1))
    x = net.concat(net.conv(x, 24, (1, 1)), net.conv(x, 40, (1, 3), pads=(0, 1, 0, 1)))
    return net.model(net.conv(x, 96))


@pytest.mark.parametrize(
    ("make", "config", "cycles"),
    [
        (mobile, CRAMPED, 30_388),
        (wide, CRAMPED, 479_731),
        (lambda: random_network(1), NARROW, 9_827),
        (lambda: random_network(9), TINY, 2_270),
    ],
    ids=["mobile", "wide", "streamed", "small"],
)
def test_a_network_takes_no_more_cycles_than_it_took(
    make: Callable[[], onnx.ModelProto], config: HardwareConfig, cycles: int
) -> None:
    """Where it takes fewer, this is the place to write them down."""
    (part,) = compile_model(make(), config).parts
    assert isinstance(part, AcceleratorPart)
    assert part.expected_cycles <= cycles
    check_costs([part])
