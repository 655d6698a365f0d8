"""The report in a real browser: it opens, and clicks, keys and zooms do what they say."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from dovetail.compiler import compile
from dovetail.compiler.__main__ import main
from dovetail.compiler.cli.profile.page import profile_page
from dovetail.runtime.profile.profile import Profile
from dovetail.runtime.profile.traffic import bus_spans

from .browser import AXIS, drawn, opened

BOX = """([name, x, y]) => {
    const chart = dovetail.charts.find((each) => each.canvas.ariaLabel === name);
    chart.canvas.scrollIntoView({block: "center"});
    const box = chart.canvas.getBoundingClientRect();
    return [box.x + dovetail.view.x(x), box.y + y];
}"""
"""Where cycle ``x`` is in the window, ``y`` pixels below the top of the chart of that name."""
GEMM_ROW = 60


@pytest.fixture(scope="module")
def page(browser: Any, digits: Profile, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    found = opened(browser, tmp_path_factory.mktemp("digits"), profile_page(digits))
    yield found
    assert not found.problems


@pytest.fixture(autouse=True)
def whole_run(page: Any) -> None:
    page.locator("#zoom-all").click()
    page.evaluate("dovetail.view.choose(-1)")
    drawn(page)


def numbers(page: Any, column: int) -> list[int]:
    cells = page.locator(f"#layer-table tr.layer:not([hidden]) td:nth-child({column})")
    return [int(text.replace(",", "")) for text in cells.all_inner_texts()]


def test_the_figures_are_those_of_the_run(page: Any, digits: Profile) -> None:
    assert page.locator('.card[data-figure="cycles"] b').inner_text() == f"{digits.cycles:,}"
    assert page.locator('.card[data-figure="device"] b').inner_text() == "sim"
    assert numbers(page, 4) == [layer.cycles for layer in digits.layers]
    assert sum(numbers(page, 4)) == digits.cycles
    assert page.locator("#unit-table tbody tr").count() == 4


def test_a_click_on_a_layer_zooms_to_what_is_computed_for_it(page: Any, digits: Profile) -> None:
    assert page.evaluate(AXIS) == [0, digits.cycles]
    page.locator("#layer-table tr.layer").nth(2).click()
    mine = [e for e in digits.timeline if e.layer == 2 and e.unit in ("GEMM", "VECTOR")]
    begin, end = page.evaluate(AXIS)
    assert 0 <= min(e.start for e in mine) - begin <= 0.05 * digits.cycles
    assert 0 <= end - max(e.end for e in mine) <= 0.05 * digits.cycles
    # And says why it takes so long.
    shown = page.locator("#why").inner_text()
    assert digits.layers[2].name in shown
    assert f"It takes {digits.layers[2].cycles:,} cycles" in shown
    page.locator("#close").click()
    assert "Choose a layer" in page.locator("#why").inner_text()


def test_a_click_on_an_instruction_shows_its_assembly(page: Any, digits: Profile) -> None:
    entry = max((e for e in digits.timeline if e.unit == "GEMM"), key=lambda e: e.end - e.start)
    page.evaluate("([begin, end]) => dovetail.view.show(begin, end)", [entry.start, entry.end + 1])
    drawn(page)
    middle = (entry.start + entry.end) / 2
    page.mouse.click(*page.evaluate(BOX, ["Units", middle, GEMM_ROW]))
    wanted = " ".join(digits.assembly[entry.index].split())
    assert page.locator("#instruction").inner_text() == f"{entry.index}: {wanted}"
    tip = page.locator("#tooltip").inner_text().splitlines()
    assert tip[0] == f"instruction {entry.index} of {digits.layers[entry.layer].name}"
    assert tip[1].startswith(f"cycles {entry.start:,} to {entry.end:,}, ")


def test_short_boxes_stand_together_and_part_when_one_zooms_in(page: Any, digits: Profile) -> None:
    counted = """() => {
        const groups = dovetail.charts[1].groups[1];
        return [groups.length, groups.reduce((sum, group) => sum + group.count, 0)];
    }"""
    mine = [e for e in digits.timeline if e.unit == "GEMM"]
    shown, instructions = page.evaluate(counted)
    assert instructions == len(mine)
    assert shown < instructions
    page.evaluate("([begin, end]) => dovetail.view.show(begin, end)", [mine[0].start, mine[3].end])
    drawn(page)
    shown, instructions = page.evaluate(counted)
    assert 4 <= shown == instructions < len(mine)


def test_boxes_of_many_layers_share_a_pixel(page: Any) -> None:
    """20 boxes a pixel, each of another layer than its neighbours; every 10th is longer."""
    groups = page.evaluate(
        """() => {
            const {view, groupedBoxes} = dovetail;
            const step = view.cycles / view.width / 20;
            const box = (n) => [n * step, n * step + (n % 10 ? step / 2 : step), n % 10];
            return groupedBoxes(view, 0, 20 * 100, box);
        }"""
    )
    assert sum(each["count"] for each in groups) == 20 * 100
    assert len(groups) <= 110
    assert {each["layer"] for each in groups[1:-1]} == {0}
    assert all(each["mixed"] for each in groups[1:-1])


def test_traffic_is_drawn_cycle_by_cycle(page: Any, digits: Profile) -> None:
    """The tooltip of a LOAD's cycle says a whole beat, and nothing else."""
    spans = bus_spans(digits.program, digits.timeline, digits.config, digits.cycles)
    _, begin, end = max((s for s in spans if s[0] == "load"), key=lambda s: s[2] - s[1])
    page.evaluate("([begin, end]) => dovetail.view.show(begin, end)", [begin - 20, end + 20])
    drawn(page)
    said = {}
    for cycle in ((begin + end) / 2, begin - 0.5):
        page.mouse.move(*page.evaluate(BOX, ["DRAM bytes a cycle", cycle, 40]))
        said[cycle] = page.locator("#tooltip").inner_text().splitlines()
    bus = digits.config.bus_bytes
    assert said[(begin + end) / 2][1:] == [f"load: {bus:.2f}", "store: 0.00", "fetch: 0.00"]
    assert said[begin - 0.5][0] == f"bytes a cycle, of {bus} that the bus carries"
    assert said[begin - 0.5][1] == "load: 0.00"


def test_wheel_keys_and_drags_move_the_axis(page: Any, digits: Profile) -> None:
    at = page.evaluate(BOX, ["Units", digits.cycles / 2, GEMM_ROW])
    page.mouse.move(*at)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -300)
    page.keyboard.up("Control")
    page.wait_for_function(f"({AXIS})()[0] > 0")
    begin, end = page.evaluate(AXIS)
    assert end - begin < digits.cycles / 2
    # Around the pointer.
    assert (begin + end) / 2 == pytest.approx(digits.cycles / 2, rel=0.02)
    page.mouse.down()
    page.mouse.move(at[0] - 100, at[1], steps=4)
    page.mouse.up()
    moved = page.evaluate(AXIS)
    assert moved[0] > begin
    assert moved[1] - moved[0] == pytest.approx(end - begin)
    page.keyboard.press("0")
    assert page.evaluate(AXIS) == [0, digits.cycles]
    page.keyboard.press("+")
    begin, end = page.evaluate(AXIS)
    assert end - begin == pytest.approx(digits.cycles / 2)


def test_layers_are_found_and_sorted(page: Any, digits: Profile) -> None:
    page.locator("#search").fill("depth")
    assert page.locator("#layer-table tr.layer:visible").count() == 1
    assert page.locator("#matches").inner_text() == f"1 of {len(digits.layers)} layers"
    page.locator("#search").press("Enter")
    assert "depthwise" in page.locator("#why").inner_text()
    page.locator("#search").fill("")
    page.get_by_role("button", name="cycles", exact=True).click()
    assert numbers(page, 4) == sorted((e.cycles for e in digits.layers), reverse=True)
    page.get_by_role("button", name="#", exact=True).click()
    assert numbers(page, 1) == list(range(len(digits.layers)))


def test_a_point_of_the_roofline_chooses_its_layer(page: Any, digits: Profile) -> None:
    products = [n for n, e in enumerate(digits.layers) if e.macs and e.dram_bytes and e.cycles]
    assert page.locator("#roofline .point").count() == len(products)
    page.locator(f'#roofline .point[data-layer="{products[0]}"]').press("Enter")
    assert page.locator("tr.chosen").get_attribute("data-name") == digits.layers[products[0]].name


def test_the_memory_map_names_tensors(page: Any, digits: Profile) -> None:
    held = max(digits.memory["DRAM"], key=lambda each: each.high - each.low)
    drawn(page)
    place = page.evaluate(BOX, ["DRAM: what is loaded and stored", held.end - 1, 0])
    scale = page.evaluate(
        """() => {
            const chart = dovetail.charts.at(-1);
            return chart.height / chart.memory.depth;
        }"""
    )
    page.mouse.move(place[0], place[1] + scale * (held.low + held.high) / 2)
    tip = page.locator("#tooltip").inner_text().splitlines()
    assert tip == [
        f"{held.name} of {digits.layers[held.layer].name}",
        f"of layer {digits.layers[held.layer].name}",
        f"bytes {held.low:,} to {held.high - 1:,}",
        f"cycles {held.begin:,} to {held.end:,}",
    ]


def test_two_runs_side_by_side(browser: Any, digits: Profile, tmp_path: Any) -> None:
    """The other run has the layers' names one place further on, and one of its own."""
    names = [*(layer.name for layer in digits.layers[1:]), "another"]
    layers = tuple(
        replace(layer, name=name, cycles=layer.cycles + 10, vector_cycles=5000)
        for layer, name in zip(digits.layers, names, strict=True)
    )
    result = replace(digits.result, cycles=digits.cycles + 1000)
    other = replace(digits, model="other", layers=layers, result=result)
    page = opened(browser, tmp_path, profile_page(digits, other))
    rows = page.locator("#comparison tbody tr")
    cells = rows.nth(0).locator("td").all_inner_texts()
    assert [cells[0], *cells[2:4]] == ["all", f"{digits.cycles:,}", f"{digits.cycles + 1000:,}"]
    assert cells[4].startswith("\N{MINUS SIGN}1,000 (")
    # The second layer is the other's first.
    here, there = digits.layers[1], layers[0]
    cells = rows.nth(2).locator("td").all_inner_texts()
    assert [cells[0], *cells[2:4]] == [here.name, f"{here.cycles:,}", f"{there.cycles:,}"]
    assert f"vector unit {here.vector_cycles - 5000:+,}" in cells[5]
    # One axis: as long as the longer run.
    assert page.evaluate(AXIS) == [0, digits.cycles + 1000]
    # A click on a layer of the other run chooses the one of its name.
    entry = next(e for e in digits.timeline if e.layer == 2 and e.unit == "GEMM")
    page.evaluate("([begin, end]) => dovetail.view.show(begin, end)", [entry.start, entry.end + 1])
    drawn(page)
    middle = (entry.start + entry.end) / 2
    page.mouse.click(*page.evaluate(BOX, ["Layers of other on tiny", middle, 10]))
    assert page.locator("tr.chosen").get_attribute("data-name") == layers[2].name
    titles = page.locator(".chart h3").all_inner_texts()
    assert {"Units", "Units of other on tiny"} <= set(titles)
    assert not page.problems


def test_the_command_writes_report_and_trace(
    browser: Any, digits_model: Path, digits: Profile, tmp_path: Path
) -> None:
    pytest.importorskip("perfetto", reason="needs the extra profile")
    module, html, trace = (tmp_path / name for name in ("d.dvt", "report.html", "d.pftrace"))
    compile(digits_model, "vta:tiny").save(module)
    arguments = ["profile", module, "--html", html, "--trace", trace, "--against", module]
    done = CliRunner().invoke(main, list(map(str, arguments)))
    assert done.exit_code == 0, done.output
    assert trace.stat().st_size > 10_000
    page = opened(browser, tmp_path, html.read_text())
    cells = page.locator("#comparison tbody tr").nth(0).locator("td").all_inner_texts()
    assert cells[2:4] == [f"{digits.cycles:,}"] * 2
