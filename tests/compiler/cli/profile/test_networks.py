"""Reports of real networks: small, and their numbers those of the run and of the model."""

import math
from pathlib import Path
from typing import Any

import onnx
import pytest

from dovetail.isa.latency import compute_latency
from dovetail.isa.memories import Unit
from dovetail.runtime.profile.profile import Profile

from .browser import AXIS, opened, profiled

page_module = pytest.importorskip(
    "dovetail.compiler.cli.profile.page", reason="needs the extra profile"
)
MOST_BYTES = 5_000_000


def macs_of_nodes(model: onnx.ModelProto) -> dict[str, int]:
    """Multiply-accumulates of each Conv, Gemm and MatMul, by ONNX's shapes alone; batch 1."""
    inferred = onnx.shape_inference.infer_shapes(model).graph
    values = [*inferred.value_info, *inferred.input, *inferred.output]
    shapes = {v.name: [d.dim_value or 1 for d in v.type.tensor_type.shape.dim] for v in values}
    shapes |= {each.name: list(each.dims) for each in inferred.initializer}
    found = {}
    for node in model.graph.node:
        if node.op_type in ("Conv", "Gemm", "MatMul"):
            weights, out = shapes[node.input[1]], shapes[node.output[0]]
            transposed = any(a.name == "transB" and a.i for a in node.attribute)
            summed = weights[0] if node.op_type != "Conv" and not transposed else weights[1:]
            found[node.name or node.output[0]] = math.prod(out) * math.prod(
                summed if isinstance(summed, list) else [summed]
            )
    return found


@pytest.fixture(scope="module")
def resnet8(shared_models: Path) -> Profile:
    path = shared_models / "mlperf_tiny" / "ic_resnet8_int8.onnx"
    return profiled("resnet8", path, "vta:zynq7020")


@pytest.fixture(params=["digits", "resnet8", "resnet18"])
def found(request: pytest.FixtureRequest, digits_model: Path) -> Profile:
    if request.param == "digits":
        return profiled("digits", digits_model, "vta:tiny")
    profile: Profile = request.getfixturevalue(request.param)
    return profile


def test_the_timeline_and_the_layers_sum_to_the_counters(found: Profile) -> None:
    counters = found.result.counters
    assert sum(layer.cycles for layer in found.layers) == found.cycles == counters["cycles"]
    assert sum(layer.macs for layer in found.layers) == found.result.macs
    assert len(found.timeline) == counters["instructions"]
    for unit in ("load", "gemm", "vector", "store"):
        mine = [e for e in found.timeline if e.unit == unit.upper()]
        for reason in ("token", "port"):
            waited = sum(getattr(e, f"waited_{reason}") for e in mine)
            assert waited == counters[f"{unit}_stall_{reason}"]
        # A compute unit is busy while it issues; its pipeline drains beside the next one.
        drained = compute_latency(found.config).get(Unit[unit.upper()], 0)
        assert sum(e.end - e.start - drained for e in mine) == counters[f"{unit}_busy"]


def test_macs_of_layers_are_those_of_the_models_nodes(
    resnet18: Profile, resnet18_model: onnx.ModelProto
) -> None:
    wanted = macs_of_nodes(resnet18_model)
    layers = {layer.name: layer.macs for layer in resnet18.layers}
    assert {name: macs for name, macs in layers.items() if macs} == wanted


def test_macs_of_resnet8_are_those_of_its_nodes(resnet8: Profile, shared_models: Path) -> None:
    model = onnx.load(shared_models / "mlperf_tiny" / "ic_resnet8_int8.onnx")
    wanted = macs_of_nodes(model)
    layers = {layer.name: layer.macs for layer in resnet8.layers}
    assert {name: macs for name, macs in layers.items() if macs} == wanted


def test_resnet8_fits_a_small_file(browser: Any, resnet8: Profile, tmp_path: Path) -> None:
    text = page_module.profile_page(resnet8)
    assert len(text) < MOST_BYTES
    page = opened(browser, tmp_path, text)
    assert page.locator("#layers tr.layer").count() == len(resnet8.layers)


def test_the_report_of_resnet18_tells_its_numbers(
    browser: Any, resnet18: Profile, resnet18_model: onnx.ModelProto, tmp_path: Path
) -> None:
    text = page_module.profile_page(resnet18)
    assert len(text.encode()) < MOST_BYTES
    page = opened(browser, tmp_path, text)
    rows = page.locator("#layers tr.layer").all()
    table = {row.get_attribute("data-name"): row.locator("td").all_inner_texts() for row in rows}
    assert sum(int(cells[3].replace(",", "")) for cells in table.values()) == resnet18.cycles
    for name, macs in macs_of_nodes(resnet18_model).items():
        assert table[name][4] == f"{macs:,}"
    # A click on a layer zooms to what is computed for it.
    number = next(n for n, layer in enumerate(resnet18.layers) if layer.name == "conv10")
    rows[number].click()
    mine = [e for e in resnet18.timeline if e.layer == number and e.unit in ("GEMM", "VECTOR")]
    begin, end = page.evaluate(AXIS)
    assert begin <= min(e.start for e in mine) < max(e.end for e in mine) <= end
    assert end - begin < resnet18.cycles / 5
    # Zoomed in to one instruction, the box below the pointer is that one.
    entry = max((e for e in mine if e.unit == "GEMM"), key=lambda e: e.end - e.start)
    page.evaluate(ZOOM, [entry.start + 1, entry.end + 1])
    page.locator("h2", has_text="Timeline").evaluate("(heading) => heading.scrollIntoView()")
    page.mouse.click(*page.evaluate(MIDDLE_OF_GEMM), delay=50)
    page.wait_for_function('document.getElementById("instruction").textContent.includes(": gemm")')
    shown = page.locator("#instruction").inner_text()
    assert shown == f"{entry.index}: {resnet18.assembly[entry.index]}"


ZOOM = """([begin, end]) => {
    const plot = Bokeh.documents[0].get_model_by_name("timeline");
    plot.x_range.setv({start: begin, end: end});
}"""
MIDDLE_OF_GEMM = """() => {
    const plot = Bokeh.documents[0].get_model_by_name("timeline");
    const view = Bokeh.index.find_one_by_id(plot.id);
    const area = view.el.getBoundingClientRect(), frame = view.frame;
    const x = frame.x_scale.compute((plot.x_range.start + plot.x_range.end) / 2);
    return [area.x + x, area.y + frame.y_scale.compute("GEMM")];
}"""
