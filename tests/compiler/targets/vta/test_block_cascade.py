"""Expand, depthwise and project that run some channel blocks at a time."""

from dataclasses import replace

import numpy as np
import onnx
import pytest

from dovetail.compiler.targets.vta import ways
from dovetail.compiler.targets.vta.block_cascade import BlockCascade, block_sizes
from dovetail.compiler.targets.vta.planner import Planner
from dovetail.isa.config import HardwareConfig
from tests.end_to_end.models import Network, Tensor

from .programs import TINY
from .test_blockwise import normalized_rows
from .test_stream import assert_exact, lowered

ROOMY = replace(TINY, name="roomy", act_depth=1024, acc_depth=512)
CRAMPED = replace(ROOMY, name="cramped", act_depth=512)
SHALLOW = replace(ROOMY, name="shallow", par_depth=16)
"""PAR cannot hold the parameters of all layers."""


@pytest.fixture
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing seems faster than such layers."""

    def sizes(*args: object) -> object:
        return [replace(each, cycles=0, dram=0) for each in block_sizes(*args)]  # type: ignore[arg-type]

    monkeypatch.setattr(ways, "block_sizes", sizes)


def _between(net: Network, x: Tensor, kind: str) -> Tensor:
    channels = x.shape[1]
    match kind:
        case "3x3":
            return net.conv(x, channels, pads=(1, 1, 1, 1), depthwise=True)
        case "5x5":
            return net.conv(x, channels, (5, 5), pads=(2, 2, 2, 2), depthwise=True)
        case "stride":
            return net.conv(x, channels, strides=(2, 2), pads=(1, 1, 1, 1), depthwise=True)
        case "pool":
            return net.max_pool(x, 2, 2)
    raise AssertionError(kind)


def _network(seed: int, kind: str, *, residual: bool) -> onnx.ModelProto:
    rng = np.random.default_rng(seed)
    net = Network(rng)
    size = int(rng.integers(4, 7))
    x = net.conv(net.input(4, size, size), 8, (1, 1))
    channels = 4 * int(rng.choice([4, 6, 8, 9]))
    y = net.conv(_between(net, net.conv(x, channels, (1, 1)), kind), 8, (1, 1))
    return net.model(net.conv(net.add(y, x) if residual else y, 8, (1, 1)))


def _cascades(model: onnx.ModelProto, config: HardwareConfig) -> list[BlockCascade]:
    plan = Planner(*lowered(model), config).best()
    return [each for each in plan.cascades.values() if isinstance(each, BlockCascade)]


@pytest.mark.usefixtures("cheap")
@pytest.mark.parametrize("config", [ROOMY, CRAMPED, SHALLOW], ids=lambda config: config.name)
@pytest.mark.parametrize("kind", ["3x3", "5x5", "stride", "pool"])
def test_the_result_is_exact(config: HardwareConfig, kind: str) -> None:
    for seed in range(2):
        model = _network(seed, kind, residual=kind in ("3x3", "5x5"))
        assert _cascades(model, config)
        assert_exact(model, config, seed)


@pytest.mark.usefixtures("cheap")
def test_what_lies_between_takes_room_for_two_parts() -> None:
    found = [_cascades(_network(0, "3x3", residual=False), config) for config in (ROOMY, CRAMPED)]
    for (cascade,) in found:
        for ring in cascade.rings.values():
            assert ring.slots == (cascade.parts if ring.kept else 2)
    assert not any(ring.kept for ring in found[1][0].rings.values())


@pytest.mark.usefixtures("cheap")
def test_two_layers_run_so_where_a_mean_of_all_pixels_comes_next() -> None:
    """The first one's result, with its halo, does not fit beside the second one's."""
    net = Network(np.random.default_rng(0))
    x = net.conv(net.conv(net.input(4, 6, 6), 8, (1, 1)), 32, (1, 1))
    x = net.conv(x, 32, (5, 5), pads=(2, 2, 2, 2), depthwise=True)
    model = net.model(net.conv(net.multiply(x, net.global_average(x)), 8, (1, 1)))
    (cascade,) = _cascades(model, replace(CRAMPED, act_depth=1024))
    made, result = cascade.rings.values()
    assert (len(cascade.layers), made.slots, result.kept) == (2, 2, True)
    assert_exact(model, replace(CRAMPED, act_depth=1024), 0)


@pytest.mark.usefixtures("cheap")
@pytest.mark.parametrize("depth", [512, 256])
def test_two_layers_run_so_where_the_sums_of_a_third_do_not_fit(depth: int) -> None:
    net = Network(np.random.default_rng(0))
    x = net.conv(net.conv(net.input(4, 6, 6), 8, (1, 1)), 32, (1, 1))
    x = net.conv(x, 32, (5, 5), strides=(2, 2), pads=(2, 2, 2, 2), depthwise=True)
    model = net.model(net.conv(x, 32, (1, 1)))
    config = replace(CRAMPED, acc_depth=depth)
    assert {len(each.layers) for each in _cascades(model, config)} == {3 if depth == 512 else 2}
    assert_exact(model, config, 0)


def test_not_where_channels_meet_between() -> None:
    net = Network(np.random.default_rng(0))
    x = net.conv(net.input(8, 4, 4), 32, (1, 1))
    model = net.model(net.conv(net.conv(x, 32, (1, 1)), 8, (1, 1)))
    assert not block_sizes(lowered(model)[0], ROOMY)


def test_not_with_one_bank_of_sums() -> None:
    layers = lowered(_network(0, "3x3", residual=False))[0][1:4]
    assert block_sizes(layers, ROOMY)
    assert not block_sizes(layers, replace(ROOMY, acc_banks=1))


@pytest.mark.usefixtures("cheap")
@pytest.mark.parametrize("tables", [2, 3])
def test_the_tables_of_all_layers_are_there_at_once(tables: int) -> None:
    net = Network(np.random.default_rng(5))
    x = net.conv(net.input(4, 5, 5), 8, (1, 1))
    for number, channels in enumerate((32, 32, 8)):
        depthwise = number == 1
        kernel, pads = ((3, 3), (1, 1, 1, 1)) if depthwise else ((1, 1), (0, 0, 0, 0))
        x = net.conv(x, channels, kernel, pads=pads, depthwise=depthwise)
        x = net.unary(x, "Sigmoid") if number < tables else x
    model = net.model(net.conv(x, 8, (1, 1)))
    config = replace(ROOMY, tab_depth=512)
    lengths = {len(each.layers) for each in _cascades(model, config)}
    assert (3 in lengths) == (tables == 2)
    assert_exact(model, config, 0)


@pytest.mark.usefixtures("cheap")
def test_not_where_others_read_what_lies_between() -> None:
    net = Network(np.random.default_rng(0))
    x = net.conv(net.conv(net.input(4, 4, 4), 8, (1, 1)), 32, (1, 1))
    y = net.conv(x, 32, pads=(1, 1, 1, 1), depthwise=True)
    assert not _cascades(net.model(net.conv(y, 8, (1, 1)), net.conv(x, 8, (1, 1))), ROOMY)


@pytest.mark.usefixtures("cheap")
def test_not_a_normalisation_which_needs_all_channels_of_a_row() -> None:
    model = normalized_rows(16)
    assert any(layer.kernel.by_rows for layer in lowered(model)[0])
    assert not _cascades(model, ROOMY)
