"""Reports of real networks: small, and their numbers those of the run and of the model."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from dovetail.compiler.cli.profile.page import profile_page
from dovetail.isa.latency import compute_latency
from dovetail.isa.memories import Unit
from dovetail.runtime.profile.occupancy import occupancy
from dovetail.runtime.profile.profile import Profile
from dovetail.runtime.profile.traffic import dram_traffic

from .browser import AXIS, opened

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


@pytest.fixture(params=["digits", "resnet8", "resnet18"])
def found(request: pytest.FixtureRequest) -> Profile:
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
        busy, last = 0, 0
        for e in mine:
            # A LOAD begins while the data of the one before it arrives.
            busy += e.end - max(e.start, last if unit == "load" else 0) - drained
            last = e.end
        assert busy == counters[f"{unit}_busy"]


def test_the_causes_of_all_layers_sum_to_their_cycles(found: Profile) -> None:
    for layer, parts in zip(found.layers, found.breakdowns, strict=True):
        assert parts.cycles == layer.cycles
        assert parts.useful <= -(-layer.macs // found.config.macs_per_cycle)
    beats = sum(found.result.counters[f"{name}_beats"] for name in ("fetch", "load", "store"))
    assert sum(found.bus_cycles) == beats * found.config.dram.beat_interval_cycles
    for layer, bus in zip(found.layers, found.bus_cycles, strict=True):
        assert 0 <= bus <= layer.cycles


def test_the_bus_carries_what_was_counted_and_never_more_than_its_width(found: Profile) -> None:
    """Cycle by cycle; bytes of LOADs and STOREs only while one is at work."""
    bins = found.cycles if found.cycles < 100_000 else 10_000
    traffic = dram_traffic(found.program, found.timeline, found.config, found.cycles, bins)
    assert sum(traffic.values()).max() <= found.config.bus_bytes * (1 + 1e-9)
    for name, series in traffic.items():
        counted = found.result.counters[f"{name}_beats"] * found.config.bus_bytes
        assert series.sum() * found.cycles / bins == pytest.approx(counted)
    if bins < found.cycles:
        return
    for name in ("load", "store"):
        at_work = np.zeros(found.cycles, bool)
        for each in found.timeline:
            if each.unit == name.upper():
                at_work[each.start : each.end + 1] = True
        assert not traffic[name][~at_work].any()


def test_the_memory_map_holds_what_is_in_use(found: Profile) -> None:
    """Its boxes cover what ``occupancy`` counts, whenever there is some; all lie in the memory."""
    bins = 200
    used = occupancy(found.program, found.timeline, found.config, found.cycles, bins)
    held = found.memory
    for memory, series in used.items():
        depth = found.config.depth(memory)
        boxes = held[memory.name]
        assert all(0 <= each.low < each.high <= depth for each in boxes)
        area = sum((each.high - each.low) * (each.end - each.begin) for each in boxes)
        assert area >= series.sum() * depth * found.cycles / bins * (1 - 1e-9)
        covered = np.zeros(bins, bool)
        for each in boxes:
            first, last = (when * bins // found.cycles for when in (each.begin, each.end))
            covered[first : last + 1] = True
        assert not series[~covered].any()
    assert {"weights", "bias"} < {each.name for boxes in held.values() for each in boxes}


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
    text = profile_page(resnet8)
    assert len(text) < MOST_BYTES
    page = opened(browser, tmp_path, text)
    assert page.locator("#layer-table tr.layer").count() == len(resnet8.layers)


def test_the_report_of_resnet18_tells_its_numbers(
    browser: Any, resnet18: Profile, resnet18_model: onnx.ModelProto, tmp_path: Path
) -> None:
    text = profile_page(resnet18)
    assert len(text.encode()) < MOST_BYTES
    page = opened(browser, tmp_path, text)
    rows = page.locator("#layer-table tr.layer").all()
    table = {row.get_attribute("data-name"): row.locator("td").all_inner_texts() for row in rows}
    assert sum(int(cells[3].replace(",", "")) for cells in table.values()) == resnet18.cycles
    for name, macs in macs_of_nodes(resnet18_model).items():
        assert table[name][5] == f"{macs:,}"
    # A click on a layer zooms to what is computed for it.
    number = next(n for n, layer in enumerate(resnet18.layers) if layer.name == "conv10")
    rows[number].click()
    mine = [e for e in resnet18.timeline if e.layer == number and e.unit in ("GEMM", "VECTOR")]
    begin, end = page.evaluate(AXIS)
    assert begin <= min(e.start for e in mine) < max(e.end for e in mine) <= end
    assert end - begin < resnet18.cycles / 5
    assert not page.problems
