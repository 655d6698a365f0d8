"""Buffers of cascades in which no row lies twice, since the taps of their reader are turned."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import onnx
import pytest

from dovetail.compiler.targets.vta import emit
from dovetail.compiler.targets.vta.cascade import Sized
from dovetail.compiler.targets.vta.choice import Choice
from dovetail.compiler.targets.vta.draft import Draft, make_draft
from dovetail.compiler.targets.vta.plan import Plan
from dovetail.compiler.targets.vta.plan_record import recorded_plan, to_plan_record
from dovetail.compiler.targets.vta.planner import Planner
from dovetail.isa.config import HardwareConfig
from tests.end_to_end.models import Network

from .test_cascade import SMALL, assert_rows_are_there
from .test_stream import assert_exact, lowered

ROOMY = replace(SMALL, name="roomy", act_depth=8192, tap_depth=512)


def expanded(kernel: int = 3, stride: int = 1, first: int = 1, pad: int = 1) -> onnx.ModelProto:
    """Expand, by a kernel of size ``first``, depthwise and project."""
    net = Network(np.random.default_rng(kernel + stride))
    x = net.conv(net.input(8, 12, 30), 20, (first, first), activation="Clip")
    size, strides, pads = (kernel, kernel), (stride, stride), (pad,) * 4
    x = net.conv(x, 20, size, strides=strides, pads=pads, depthwise=True)
    return net.model(net.conv(x, 8, (1, 1)))


def turned(planner: Planner) -> Iterator[tuple[Plan, Choice]]:
    """Plans with one cascade of turned buffers, and that; what is expanded is not all on chip."""
    plan = planner.plan(frozenset({planner.layers[0].output.name}))
    for first in range(len(planner.layers)):
        for count in range(2, len(planner.layers) - first + 1):
            for choice in planner.options(first, count, plan.gone):
                if isinstance(choice.how, Sized) and choice.how.turned:
                    around = [each for each in plan.choices if each.first + each.count <= first]
                    around += [each for each in plan.choices if each.first >= first + count]
                    choices = sorted((choice, *around), key=lambda each: each.first)
                    if sum(each.count for each in choices) == len(planner.layers):
                        yield planner.built(choices, plan.gone), choice


def planner_of(model: onnx.ModelProto, config: HardwareConfig = ROOMY) -> Planner:
    return Planner(*lowered(model), config)


@pytest.mark.parametrize(
    ("model", "config"),
    [
        (expanded(), ROOMY),
        (expanded(stride=2), ROOMY),
        (expanded(5), ROOMY),
        (expanded(first=3), ROOMY),
        (expanded(5, pad=2), ROOMY),
        (expanded(), replace(ROOMY, tap_depth=64)),
        (expanded(5, pad=2), replace(ROOMY, tap_depth=128)),
    ],
    ids=["3x3", "steps", "5x5", "busy matrix core", "halo", "taps in turn", "halo, taps in turn"],
)
def test_results_stay_exact(
    model: onnx.ModelProto, config: HardwareConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans: list[Plan] = []

    def made(planner: Planner, *others: object) -> Draft:
        activations, overlap, timing, _ = others
        plans.append(next(turned(planner))[0])
        return make_draft(planner, plans[-1], activations, overlap, timing)  # type: ignore[arg-type]

    monkeypatch.setattr(emit, "fastest", made)
    assert_exact(model, config, 1)
    (cascade,) = plans[-1].cascades.values()
    assert_rows_are_there(cascade)  # type: ignore[arg-type]


def test_a_turned_buffer_has_the_rows_that_one_strip_reads() -> None:
    for _, choice in turned(planner_of(expanded())):
        assert isinstance(choice.how, Sized)
        rings = [ring for ring in choice.how.rings.values() if ring.turned]
        assert [(ring.depth, ring.mirror) for ring in rings] == [(3, 0)]
        deeper = choice.how.deeper((1,) * len(choice.how.rings))
        assert [ring for ring in deeper.rings.values() if ring.turned] == rings


@pytest.mark.parametrize(
    ("model", "config"),
    [(expanded(first=3), ROOMY), (expanded(), replace(ROOMY, tap_depth=64))],
    ids=["the matrix core is busier", "TAP has no room"],
)
def test_only_for_want_of_room_where(model: onnx.ModelProto, config: HardwareConfig) -> None:
    planner = planner_of(model, config)
    gone = frozenset({planner.layers[0].output.name})
    wide = next(each for each in planner.options(0, 3, gone) if isinstance(each.how, Sized))
    assert planner.chooser.turned([wide], gone) == [wide]
    assert isinstance(wide.how, Sized)
    for _, choice in turned(planner):
        assert isinstance(choice.how, Sized)
        assert choice.how.words < wide.how.words


def test_a_plan_with_turned_buffers_is_found_again() -> None:
    planner = planner_of(expanded())
    plan, _ = next(turned(planner))
    assert recorded_plan(planner, to_plan_record(planner, plan, 1)).key == plan.key


def test_a_cascade_becomes_two_where_tap_has_no_room_for_the_taps_of_both() -> None:
    net = Network(np.random.default_rng(1))
    x = net.input(8, 12, 30)
    for _ in range(2):
        x = net.conv(x, 20, (1, 1), activation="Clip")
        x = net.conv(net.conv(x, 20, pads=(1, 1, 1, 1), depthwise=True), 8, (1, 1))
    planner = planner_of(net.model(x), replace(ROOMY, tap_depth=128))
    gone = frozenset(planner.layers[number].output.name for number in (0, 3))
    choice = next(each for each in planner.options(0, 6, gone) if isinstance(each.how, Sized))
    found = planner.chooser.turned([choice], gone)
    assert [(each.first, each.count, each.grain) for each in found] == [
        (0, 3, choice.grain),
        (3, 3, choice.grain),
    ]
    assert all(isinstance(each.how, Sized) and each.how.turned for each in found)
