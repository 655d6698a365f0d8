"""Plans that are kept: used again without a search, and refused where they do not suit."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dovetail.compiler import compile
from dovetail.compiler.errors import ScheduleError
from dovetail.compiler.options import CompileOptions
from dovetail.compiler.targets.vta.cascade import Sized
from dovetail.compiler.targets.vta.draft import Draft
from dovetail.compiler.targets.vta.placing import PLACINGS
from dovetail.compiler.targets.vta.plan_record import FLAGS, recorded_plan, to_plan_record
from dovetail.compiler.targets.vta.planner import Planner
from dovetail.compiler.targets.vta.search import fastest
from dovetail.isa.memories import Unit
from dovetail.runtime.accelerator.part import accelerator_part, accelerator_parts
from tests.compiler.graph.passes.integer_layers.models import F32, ModelBuilder
from tests.end_to_end.models import Network
from tests.end_to_end.test_transposed import build, plain_transposed
from tests.once import short_searches

from .programs import TINY
from .test_join_loads import layers
from .test_stream import lowered


def model(*, more: bool = False, first: int = 0) -> object:
    """Layers that run in tiles, wholly on chip, and strip by strip; ``more``: a second output.

    first: names of nodes are numbered from there.
    """
    net = Network(np.random.default_rng(1), count=first)
    x = net.conv(net.input(3, 40, 40), 24, pads=(1, 1, 1, 1))
    second = [x] if more else []
    x = net.conv(x, 24, pads=(1, 1, 1, 1), depthwise=True)
    x = net.max_pool(net.conv(x, 16, (1, 1)), 2, 2)
    return net.model(net.dense(net.global_average(x), 9), *second)


def compiled(path: Path, *, more: bool = False, first: int = 0) -> bytes:
    options = CompileOptions(plans=path)
    with short_searches():  # any plan can be kept
        module = compile(model(more=more, first=first), "vta:tiny", options)
    return bytes(accelerator_part(module).dram)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, str]:
    """The program of a search, and the file of its plan."""
    path = tmp_path_factory.mktemp("kept") / "plans.json"
    return compiled(path), path.read_text()


def test_a_kept_plan_gives_the_same_program(
    kept: tuple[bytes, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "plans.json"
    first, text = kept
    path.write_text(text)
    kinds = {tuple(entry) for plan in json.loads(text).values() for entry in plan["layers"]}
    assert any("rows" in kind for kind in kinds)
    assert any("tile" in kind for kind in kinds)
    monkeypatch.setattr("dovetail.compiler.targets.vta.planner.Planner.best", None)
    assert compiled(path) == first
    assert path.read_text() == text


def test_a_kept_plan_stores_results_as_the_search_did(tmp_path: Path) -> None:
    path = tmp_path / "plans.json"
    model = build(plain_transposed(strides=(2, 2), pads=(1, 1, 1, 1)), (9, 7))
    first, again = (
        accelerator_part(compile(model, "vta:tiny", CompileOptions(plans=path))) for _ in range(2)
    )
    (record,) = json.loads(path.read_text()).values()
    assert record["whole"]
    assert sum(each.unit is Unit.STORE for each in first.program) == 1
    assert again.program == first.program


def test_plans_of_several_networks_lie_in_one_file(kept: tuple[bytes, str], tmp_path: Path) -> None:
    path = tmp_path / "plans.json"
    path.write_text(kept[1])
    net = Network(np.random.default_rng(0))
    other = net.model(net.conv(net.input(3, 4, 4), 8))
    compile(other, "vta:tiny", CompileOptions(plans=path))
    plans = json.loads(path.read_text())
    assert len(plans) == 2
    assert plans.items() > json.loads(kept[1]).items()


def test_a_network_of_more_outputs_has_a_plan_of_its_own(
    kept: tuple[bytes, str], tmp_path: Path
) -> None:
    path = tmp_path / "plans.json"
    path.write_text(kept[1])
    first = compiled(path, more=True)
    assert len(json.loads(path.read_text())) == 2
    assert compiled(path, more=True) == first


def test_names_do_not_count(
    kept: tuple[bytes, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "plans.json"
    path.write_text(kept[1])
    (plan,) = json.loads(kept[1]).values()
    assert plan["streamed"]
    monkeypatch.setattr("dovetail.compiler.targets.vta.planner.Planner.best", None)
    assert compiled(path, first=100) == kept[0]


def test_equal_parts_are_planned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    b, rng, x = ModelBuilder(), np.random.default_rng(2), "x"
    for _ in range(2):
        weights = b.constant(rng.integers(-60, 60, (6, 6, 3, 3)).astype(np.int8))
        w = b.dequantize(weights, F32(0.013), np.int8(0))
        y = b.node("Conv", [b.dequantize(x, F32(0.06), np.uint8(120)), w], pads=[1, 1, 1, 1])
        shown = b.dequantize(b.quantize(y, F32(0.06), np.uint8(120)), F32(0.06), np.uint8(120))
        norm = b.node("Mul", [b.node("ReduceMax", [shown], axes=[1], keepdims=1), shown])
        x = b.quantize(norm, F32(0.06), np.uint8(120))
    searches = []

    def counted(planner: Planner, *others: Any) -> Draft:
        searches.append([layer.name for layer in planner.layers])
        return fastest(planner, *others)

    monkeypatch.setattr("dovetail.compiler.targets.vta.emit.fastest", counted)
    module = compile(b.build({"x": ("uint8", (1, 6, 9, 7))}, x, "uint8"), "vta:tiny")
    first, second = accelerator_parts(module)
    assert len(searches) == 1
    assert [each.schedule for each in first.layers] == [each.schedule for each in second.layers]
    assert first.layers[0].name != second.layers[0].name


def test_deeper_buffers_and_another_placing_are_kept() -> None:
    planner = Planner(*lowered(model()), TINY)
    record = json.loads(json.dumps(to_plan_record(planner, planner.best(), 1)))
    assert "placing" not in record
    assert not record.keys() & {*FLAGS}
    entry = next(each for each in record["layers"] if "rows" in each)
    choice = next(x for x in planner.best().choices if x.first == entry["first"])
    assert isinstance(choice.how, Sized)
    entry["more"] = [1] + [0] * (len(choice.how.rings) - 1)
    flags = dict.fromkeys(FLAGS, True)
    record |= {"placing": 1, **flags}
    plan = recorded_plan(planner, record)
    assert plan.placing == replace(PLACINGS[1], **flags)
    assert to_plan_record(planner, plan, 1) == record


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda plan: _strips(plan).update(more=[-1]), "malformed"),
        (lambda plan: plan.update(placing=99), "malformed"),
        (lambda plan: plan["layers"].pop(), r"\d layers; required \d"),
        (lambda plan: plan["layers"].pop(0), "layer 0 is left out"),
        (lambda plan: plan["layers"][-1].update(rows=[77]), "cannot run as .*'rows'"),
        (lambda plan: plan.pop("streamed"), "malformed"),
        (lambda plan: plan["streamed"].clear(), "cannot run as|words required"),
    ],
)
def test_a_plan_that_does_not_suit_is_refused(
    kept: tuple[bytes, str], tmp_path: Path, change: Callable[[Any], object], message: str
) -> None:
    path = tmp_path / "plans.json"
    plans = json.loads(kept[1])
    change(next(iter(plans.values())))
    path.write_text(json.dumps(plans))
    with pytest.raises(ScheduleError, match=message):
        compiled(path)


def _strips(plan: Any) -> Any:
    return next(each for each in plan["layers"] if "rows" in each)


def test_another_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "plans.json"
    for text in ("[1, 2]", "no JSON"):
        path.write_text(text)
        with pytest.raises(ScheduleError, match="not a file of plans"):
            compiled(path)


def test_a_chain_that_waits_for_dram_runs_in_few_instructions(tmp_path: Path) -> None:
    model, options = layers(8, 16), CompileOptions(plans=tmp_path / "plans.json")
    part = accelerator_part(compile(model, "vta:tiny", options))
    assert sum(each.unit is Unit.GEMM for each in part.program) == 8
    again = accelerator_part(compile(model, "vta:tiny", options))
    assert again.program == part.program
