"""Layers strip by strip: rows before they are read, and exact networks."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import onnx
import pytest

from dovetail.compiler.targets.vta.cascade import Cascade, Fetch, Fill, Put, Work
from dovetail.isa.config import HardwareConfig
from tests.end_to_end.models import Network, Tensor, random_network

from .programs import TINY
from .test_stream import assert_exact, plan_of

SMALL = replace(TINY, name="small", act_depth=2048, wgt_depth=512, tap_depth=256, par_depth=128)


def bottleneck(net: Network, x: Tensor, wide: int, *, stride: int = 1) -> Tensor:
    """Expand, depthwise, project, and the residual sum where shapes allow it."""
    y = net.conv(x, wide, (1, 1), activation="Clip")
    y = net.conv(
        y, wide, strides=(stride, stride), pads=(1, 1, 1, 1), depthwise=True, activation="Clip"
    )
    y = net.conv(y, x.shape[1], (1, 1))
    return net.add(y, x) if stride == 1 else y


def deep(seed: int, height: int) -> onnx.ModelProto:
    net = Network(np.random.default_rng(seed))
    x = net.conv(net.input(3, height, 30), 8, pads=(1, 1, 1, 1), strides=(2, 1))
    x = bottleneck(net, x, 20)
    x = bottleneck(net, bottleneck(net, x, 24, stride=2), 12)
    return net.model(net.max_pool(x, 3, 2, (1, 1, 1, 1)))


def assert_rows_are_there(cascade: Cascade) -> None:
    """Before a strip runs, all rows it reads were made, and lie in the ring still."""
    made: dict[str, list[tuple[int, int]]] = {name: [] for name in cascade.rings}
    done = dict.fromkeys(range(cascade.first, cascade.first + len(cascade.layers)), 0)
    for step in cascade.steps:
        match step:
            case Fetch(name=name, first=first, count=count):
                made[name].append((first, first + count))
            case Fill(name=name, first=first, count=count):
                made[name].append((first, first + count))
            case Put(name=name, first=first, count=count):
                assert first + count <= made[name][-1][1]
            case Work(layer=layer, strip=strip):
                assert done[layer] == strip
                done[layer] += 1
                for name, ring in cascade.rings.items():
                    for reader in ring.readers:
                        if reader.layer == layer:
                            start = reader.start(strip)
                            assert start + reader.length <= made[name][-1][1]
                            assert made[name][-1][1] - start <= ring.depth
                    if layer in ring.producers:
                        rows = (done[n] * cascade.rows[n - cascade.first] for n in ring.producers)
                        first = made[name][-1][1] if made[name] else ring.activation.halo[0]
                        made[name].append((first, ring.activation.halo[0] + min(rows)))
    assert tuple(done.values()) == cascade.strips
    for spans in made.values():
        assert all(a[1] == b[0] for a, b in pairwise(spans))


@pytest.mark.parametrize("height", [16, 26, 48])
def test_bottlenecks_run_strip_by_strip_and_stay_exact(height: int) -> None:
    model = deep(height, height)
    plan = plan_of(model, SMALL)
    assert any(len(cascade.layers) > 2 for cascade in plan.cascades.values())
    for cascade in plan.cascades.values():
        assert_rows_are_there(cascade)
    assert_exact(model, SMALL, 1)


def test_parts_of_a_tensor_are_made_and_read_strip_by_strip() -> None:
    net = Network(np.random.default_rng(0))
    x = net.conv(net.input(3, 24, 30), 8, pads=(1, 1, 1, 1), strides=(2, 1))
    wide = net.concat(net.conv(x, 8, (1, 1)), net.conv(x, 16, (1, 1)))
    parts = (net.part(wide, first, 12) for first in (0, 12))
    deep = [net.conv(each, 12, pads=(1, 1, 1, 1), depthwise=True) for each in parts]
    model = net.model(net.conv(net.concat(*deep), 8, (1, 1)))
    cascades = plan_of(model, SMALL).cascades.values()
    rings = [ring for each in cascades for ring in each.rings.values() if not ring.kept]
    assert [len(ring.producers) for ring in rings].count(2) == 2
    for cascade in cascades:
        assert_rows_are_there(cascade)
    assert_exact(model, SMALL, 1)


@pytest.mark.parametrize("config", [SMALL, replace(SMALL, act_depth=256), TINY])
@pytest.mark.parametrize("seed", range(100, 110))
def test_random_networks_stay_exact(seed: int, config: HardwareConfig) -> None:
    model = random_network(seed)
    for cascade in plan_of(model, config).cascades.values():
        assert_rows_are_there(cascade)
    assert_exact(model, config, seed)
