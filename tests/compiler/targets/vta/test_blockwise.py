"""A pool and a dense layer that run while the convolution before them makes its channel blocks."""

from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

from dovetail.compiler.front.onnx.quantize import quantize_model
from dovetail.compiler.targets.vta import blockwise, search
from dovetail.compiler.targets.vta.blockwise import Blockwise
from dovetail.compiler.targets.vta.draft import Draft, make_draft
from dovetail.compiler.targets.vta.plan import Plan
from dovetail.compiler.targets.vta.planner import Planner
from dovetail.isa.config import HardwareConfig
from tests.end_to_end.models import Network

from .programs import TINY
from .test_stream import assert_exact, lowered, plan_of

TWO_BANKS = replace(TINY, name="two banks", acc_banks=2)


def _network(channels: int, results: int) -> onnx.ModelProto:
    net = Network(np.random.default_rng(channels + results))
    x = net.conv(net.input(8, 4, 4), channels, pads=(1, 1, 1, 1))
    y = net.conv(x, channels, (1, 1))
    return net.model(net.dense(net.global_average(y), results))


@pytest.mark.parametrize("config", [TINY, TWO_BANKS], ids=lambda config: config.name)
def test_the_result_is_exact(config: HardwareConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blockwise, "PART_CYCLES", 0)
    model = _network(32, 36)
    (group,) = plan_of(model, config).blockwise.values()
    assert (group.blocks, group.parts) == (2, 4)
    assert_exact(model, config, 1)


def test_a_layer_may_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blockwise, "PART_CYCLES", 0)
    net = Network(np.random.default_rng(1))
    x = net.conv(net.conv(net.input(8, 4, 4), 32, pads=(1, 1, 1, 1)), 32, (1, 1))
    model = net.model(net.dense(net.conv(net.global_average(x), 36, (1, 1)), 5))
    assert list(plan_of(model, TINY).blockwise) == [1]
    assert_exact(model, TINY, 1)


def test_not_where_parts_cost_more_than_they_save() -> None:
    assert not plan_of(_network(32, 36), TINY).blockwise


def test_where_little_is_gained_the_whole_program_judges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blockwise, "EAGER_PART_CYCLES", 0)
    planner = Planner(*lowered(_network(32, 36)), TINY)
    plan = planner.best()
    assert not plan.blockwise
    assert planner.built(plan.choices, plan.gone, replace(plan.placing, eager=True)).blockwise
    eager: list[bool] = []

    def watched(planner: Planner, plan: Plan, *others: Any, **named: Any) -> Draft:
        eager.append(plan.placing.eager)
        return make_draft(planner, plan, *others, **named)

    monkeypatch.setattr(search, "make_draft", watched)
    assert_exact(_network(32, 36), TINY, 1)
    assert any(eager)


def test_not_where_the_last_layer_has_a_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blockwise, "PART_CYCLES", 0)
    net = Network(np.random.default_rng(2))
    x = net.conv(net.conv(net.input(8, 4, 4), 32, pads=(1, 1, 1, 1)), 32, (1, 1))
    model = net.model(net.conv(net.global_average(x), 36, (3, 1), pads=(1, 0, 1, 0)))
    assert not plan_of(model, TINY).blockwise


def test_not_where_the_weights_fit_anyway(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blockwise, "PART_CYCLES", 0)
    assert not plan_of(_network(32, 16), TINY).blockwise


def test_not_with_one_bank_of_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blockwise, "PART_CYCLES", 0)
    assert not plan_of(_network(32, 36), replace(TINY, acc_banks=1)).blockwise


def test_parts_begin_when_half_of_the_blocks_are_made() -> None:
    group = Blockwise(0, 4, 8)
    assert [group.ready(made) for made in (0, 16, 17, 18, 31, 32)] == [0, 0, 0, 1, 7, 8]


def test_where_the_whole_program_judges_parts_begin_with_the_first_blocks() -> None:
    group = Blockwise(0, 4, 8, early=True)
    assert [group.ready(made) for made in (0, 3, 4, 9, 32)] == [0, 0, 1, 2, 8]


def normalized_rows(width: int) -> onnx.ModelProto:
    """A quantised dense layer of a row of ``width`` channels that is normalised first."""
    text = f"""rows (float[1, {width}] x) => (float[1, 8] y) {{
        a = LayerNormalization<axis = -1>(x, one, zero) b = Sigmoid(a) y = MatMul(b, w)
    }}"""
    graph = parser.parse_graph(text)
    rng = np.random.default_rng(2)
    weights = rng.standard_normal((width, 8))
    constants = {"one": np.ones(width), "zero": np.zeros(width), "w": weights}
    for name, array in constants.items():
        graph.initializer.append(numpy_helper.from_array(array.astype(np.float32), name))
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])
    model.ir_version = 8
    samples = [{"x": rng.standard_normal((1, width)).astype(np.float32)} for _ in range(3)]
    return quantize_model(model, samples).model


def test_a_normalisation_is_not_made_in_parts_of_its_sums() -> None:
    assert not plan_of(normalized_rows(8), TINY).blockwise
