"""The report in a real browser: it opens, and clicks and zooms do what they say."""

from pathlib import Path
from typing import Any

import pytest

from .browser import AXIS, opened, profiled

page_module = pytest.importorskip(
    "dovetail.compiler.cli.profile.page", reason="needs the extra profile"
)


def test_the_report_of_digits(browser: Any, digits_model: Path, tmp_path: Path) -> None:
    found = profiled("digits", digits_model, "vta:tiny")
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
    # A click on a layer zooms to what is computed for it.
    assert page.evaluate(AXIS) == [0, found.cycles]
    rows.nth(2).click()
    mine = [e for e in found.timeline if e.layer == 2]
    computing = [e for e in mine if e.unit in ("GEMM", "VECTOR")]
    begin, end = page.evaluate(AXIS)
    assert 0 <= min(e.start for e in computing) - begin <= 0.05 * found.cycles
    assert 0 <= end - max(e.end for e in computing) <= 0.05 * found.cycles
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
    here, there = (
        profiled("a", digits_model, "vta:zynq7020"),
        profiled("b", digits_model, "vta:tiny"),
    )
    page = opened(browser, tmp_path, page_module.profile_page(here, there))
    cells = page.locator("#comparison tr").nth(1).locator("td").all_inner_texts()
    assert cells[:3] == ["all", f"{here.cycles:,}", f"{there.cycles:,}"]
    assert cells[3].startswith(f"{here.cycles - there.cycles:+,}")
    why = page.locator("#comparison tr").nth(3).locator("td").nth(4).inner_text()
    assert "matrix core" in why
