"""Layers that have finer instructions, so that the other unit need not wait."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from dovetail.compiler.targets.vta.finer import finer_tiling, in_parts, leads, sums_follow
from dovetail.compiler.targets.vta.grains import COARSE, PLANES, Grain
from dovetail.compiler.targets.vta.layers.definition import LoweredLayer
from dovetail.compiler.targets.vta.schedules import AXES, Limits, Tiling
from dovetail.isa.memories import Unit
from tests.end_to_end.models import Network

from .test_stream import lowered

LIMITS = Limits(1000, 1000, 1000)
LONG, HALF = 3000, 1500
"""Least cycles of sums that are worth finer instructions, and of a layer beside them."""


@pytest.fixture(scope="module")
def layers() -> list[LoweredLayer]:
    """Sums, three layers for the vector unit that go on channel by channel, and sums, twice."""
    net = Network(np.random.default_rng(5))
    x = net.conv(net.input(3, 6, 6), 48, pads=(1, 1, 1, 1))
    y = net.conv(x, 48, pads=(1, 1, 1, 1), depthwise=True)
    y = net.conv(y, 48, pads=(1, 1, 1, 1), depthwise=True)
    y = net.conv(y, 48, pads=(1, 1, 1, 1), depthwise=True)
    found, _ = lowered(net.model(net.conv(net.conv(y, 32, (1, 1)), 16, (1, 1))))
    assert ["acc" in each.kernel.refs for each in found] == [True, *[False] * 3, True, True]
    return found


def cycles(gemm: Mapping[int, int], vector: Mapping[int, int]) -> list[dict[Unit, int]]:
    """Cycles of the six layers' units; 0 where none are given."""
    return [{Unit.GEMM: gemm.get(n, 0), Unit.VECTOR: vector.get(n, 0)} for n in range(6)]


@pytest.mark.parametrize(
    ("gemm", "vector", "expected"),
    [
        ({0: LONG}, {1: HALF}, True),
        ({0: LONG - 1}, {1: HALF}, False),
        ({0: LONG}, {1: HALF - 1}, False),
        ({0: LONG + 1}, {1: HALF}, False),
        ({0: 2 * LONG}, {1: LONG}, True),
        ({0: LONG}, {2: LONG}, False),  # reads another tensor
        ({0: LONG}, {4: LONG}, False),
    ],
)
def test_a_layer_leads_where_the_vector_unit_goes_on_for_as_long(
    layers: list[LoweredLayer], gemm: dict[int, int], vector: dict[int, int], *, expected: bool
) -> None:
    assert leads(layers, 0, cycles(gemm, vector)) == expected


def test_only_sums_lead_and_what_is_behind_the_last_is_nothing(layers: list[LoweredLayer]) -> None:
    every = cycles(dict.fromkeys(range(6), LONG), dict.fromkeys(range(6), LONG))
    assert [leads(layers, n, every) for n in range(6)] == [True, *[False] * 5]
    assert [sums_follow(layers, n, every) for n in range(6)] == [*[False] * 4, True, False]


@pytest.mark.parametrize(
    ("gemm", "vector", "expected"),
    [
        ({4: LONG}, {3: HALF}, True),
        ({4: LONG - 1}, {3: HALF}, False),
        ({4: LONG}, {3: HALF - 1}, False),
        ({4: LONG}, {2: LONG}, False),  # makes another tensor
    ],
)
def test_sums_follow_a_layer_that_takes_as_long(
    layers: list[LoweredLayer], gemm: dict[int, int], vector: dict[int, int], *, expected: bool
) -> None:
    assert sums_follow(layers, 4, cycles(gemm, vector)) == expected


@pytest.mark.parametrize(
    ("blocks", "size"), [(1, 1), (6, 2), (7, 1), (8, 2), (11, 11), (12, 3), (14, 7), (15, 3)]
)
def test_sums_have_about_four_parts(blocks: int, size: int) -> None:
    tiling = in_parts(Tiling({"c": 2, "y": 1, "x": 1}, AXES), blocks)
    assert tiling.sizes == {"c": 2, "y": 1, "x": 1, "k": size}


@pytest.mark.parametrize(
    ("number", "grain", "limits", "long", "sizes"),
    [
        (0, PLANES, LIMITS, 0, {"c": 3, "y": 6, "x": 6}),
        (0, PLANES, LIMITS, LONG, {"c": 1, "y": 6, "x": 6}),  # twice as many tiles
        (0, Grain(by_channels=True, planes=True, tiles=1), LIMITS, LONG, {"c": 12, "y": 6, "x": 6}),
        (4, PLANES, LIMITS, 0, {"c": 2, "y": 6, "x": 6}),
        (4, PLANES, LIMITS, LONG, {"c": 2, "y": 6, "x": 6, "k": 3}),
        (4, COARSE, LIMITS, LONG, {"c": 2, "y": 6, "x": 6}),
        (4, PLANES, Limits(12, 1000, 1000), LONG, {"c": 1, "y": 2, "x": 6}),
    ],
)
def test_tiles_are_finer_where_units_would_wait(
    layers: list[LoweredLayer],
    number: int,
    grain: Grain,
    limits: Limits,
    long: int,
    sizes: dict[str, int],
) -> None:
    every = cycles(dict.fromkeys(range(6), long), dict.fromkeys(range(6), long))
    assert finer_tiling(layers, number, every, limits, 1, grain).sizes == sizes


def test_layers_are_equal_whatever_their_constants(layers: list[LoweredLayer]) -> None:
    first, second = layers[:2]
    changed = {name: array + 1 for name, array in first.constants.items()}
    other = replace(first, constants=changed)
    assert other == first
    assert first != second
    assert first != replace(first, macs=first.macs + 1)
