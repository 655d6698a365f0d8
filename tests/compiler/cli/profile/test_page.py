"""The report in a real browser: it opens, and clicks and zooms do what they say."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dovetail.compiler import compile
from dovetail.compiler.cli.arrays import random_inputs
from dovetail.runtime.profile.profile import Profile, make_profile

page_module = pytest.importorskip(
    "dovetail.compiler.cli.profile.page", reason="needs the extra profile"
)
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        pytest.skip(f"no browser: none of {', '.join(BROWSERS)} on PATH")
    with api.sync_playwright() as playwright:
        running = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-gpu"]
        )
        yield running
        running.close()


def profiled(model: Path, target: str) -> Profile:
    module = compile(model, target=target)
    return make_profile(model.name, module, module.run(random_inputs(module), device="sim"))


def opened(browser: Any, folder: Path, text: str) -> Any:
    """The page in the browser, offline, once its plots are drawn; no script has failed."""
    path = folder / "report.html"
    path.write_text(text)
    context = browser.new_context(offline=True, viewport={"width": 1400, "height": 1000})
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    begin = time.monotonic()
    page.goto(path.as_uri())
    page.wait_for_function("window.Bokeh && Bokeh.documents.length && Bokeh.documents[0].is_idle")
    page.seconds = time.monotonic() - begin
    assert not problems
    return page


AXIS = """() => {
    const range = Bokeh.documents[0].get_model_by_name("timeline").x_range;
    return [range.start, range.end];
}"""


def test_the_report_of_digits(browser: Any, digits_model: Path, tmp_path: Path) -> None:
    found = profiled(digits_model, "vta:tiny")
    page = opened(browser, tmp_path, page_module.profile_page(found))
    # The figures.
    shown = page.locator('.card[data-figure="cycles"] b').inner_text()
    assert shown == f"{found.cycles:,}"
    rows = page.locator("#layers tr.layer")
    assert rows.count() == len(found.layers)
    cycles = [
        int(rows.nth(n).locator("td").nth(3).inner_text().replace(",", ""))
        for n in range(rows.count())
    ]
    assert sum(cycles) == found.cycles
    # A click on a layer zooms to it.
    assert page.evaluate(AXIS) == [0, found.cycles]
    rows.nth(2).click()
    mine = [e for e in found.timeline if e.layer == 2]
    begin, end = page.evaluate(AXIS)
    assert 0 <= min(e.start for e in mine) - begin <= 0.05 * found.cycles
    assert 0 <= end - max(e.end for e in mine) <= 0.05 * found.cycles
    assert (
        page.locator("#instruction")
        .inner_text()
        .startswith(f"layer {found.layers[2].name}: instructions {min(e.index for e in mine)}")
    )
    # Choosing an instruction shows its assembly.
    page.evaluate(
        """() => {
            const model = Bokeh.documents[0].get_model_by_name("instructions");
            model.selected.indices = [7];
        }"""
    )
    index = [e for e in found.timeline if e.start >= 0][7].index
    assert page.locator("#instruction").inner_text() == f"{index}: {found.assembly[index]}"
    # The wheel zooms around the pointer.
    before = page.evaluate(AXIS)
    page.locator("h2", has_text="Timeline").scroll_into_view_if_needed()
    box = page.evaluate(
        """() => {
            const view = Bokeh.index.find_one_by_id(
                Bokeh.documents[0].get_model_by_name("timeline").id);
            const area = view.el.getBoundingClientRect();
            return [area.x + area.width / 2, area.y + area.height / 2];
        }"""
    )
    page.mouse.move(*box)
    page.mouse.wheel(0, -600)
    page.wait_for_function(f"JSON.stringify(({AXIS})()) != JSON.stringify({before})")
    after = page.evaluate(AXIS)
    assert after[1] - after[0] < before[1] - before[0]


def test_two_runs_side_by_side(browser: Any, digits_model: Path, tmp_path: Path) -> None:
    here, there = profiled(digits_model, "vta:zynq7020"), profiled(digits_model, "vta:tiny")
    page = opened(browser, tmp_path, page_module.profile_page(here, there))
    cells = page.locator("#comparison tr").nth(1).locator("td").all_inner_texts()
    assert cells[:3] == ["all", f"{here.cycles:,}", f"{there.cycles:,}"]
    assert cells[3].startswith(f"{here.cycles - there.cycles:+,}")
    why = page.locator("#comparison tr").nth(3).locator("td").nth(4).inner_text()
    assert "matrix core" in why


def test_resnet8_fits_a_small_file(browser: Any, shared_models: Path, tmp_path: Path) -> None:
    found = profiled(shared_models / "mlperf_tiny" / "ic_resnet8_int8.onnx", "vta:zynq7020")
    text = page_module.profile_page(found)
    assert len(text) < 5_000_000
    page = opened(browser, tmp_path, text)
    assert page.locator("#layers tr.layer").count() == len(found.layers)


def test_the_numbers_agree(digits_model: Path) -> None:
    """The timeline, the counters and the layers tell of the same cycles and MACs."""
    found = profiled(digits_model, "vta:tiny")
    counters = found.result.counters
    assert sum(layer.cycles for layer in found.layers) == found.cycles == counters["cycles"]
    assert sum(layer.macs for layer in found.layers) == found.result.macs
    assert len(found.timeline) == counters["instructions"]
    for unit in ("LOAD", "STORE"):
        busy = sum(e.end - e.start for e in found.timeline if e.unit == unit)
        assert busy == counters[f"{unit.lower()}_busy"]
    for unit in ("load", "gemm", "vector", "store"):
        mine = [e for e in found.timeline if e.unit == unit.upper()]
        for reason in ("token", "port"):
            waited = sum(getattr(e, f"waited_{reason}") for e in mine)
            assert waited == counters[f"{unit}_stall_{reason}"]
