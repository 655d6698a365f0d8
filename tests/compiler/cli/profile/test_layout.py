"""The report on a telephone, a laptop and a large screen, light and dark."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from dovetail.compiler.cli.profile.page import profile_page
from dovetail.runtime.profile.profile import Profile

from .browser import drawn, opened

SIZES = [(width, scheme) for width in (390, 1440, 2560) for scheme in ("light", "dark")]
COLUMNS = """async (cycle) => {
    dovetail.view.point(cycle);
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    const mark = document.createElement("canvas").getContext("2d");
    mark.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--mark").trim();
    mark.fillRect(0, 0, 1, 1);
    const wanted = mark.getImageData(0, 0, 1, 1).data;
    const found = dovetail.charts.map(({canvas, height}) => {
        const {data, width} = canvas.getContext("2d").getImageData(0, 0, canvas.width, height);
        const columns = [];
        for (let x = 0; x < width; x++) {
            let alike = 0;
            for (let y = 0; y < height; y++) {
                const at = 4 * (y * width + x);
                alike += [0, 1, 2].every((n) => data[at + n] === wanted[n]);
            }
            if (alike === height) columns.push(canvas.getBoundingClientRect().x + x);
        }
        return columns;
    });
    dovetail.view.point(null);
    return found;
}"""
"""By chart, the columns of the window that the line at a cycle fills, read from the pixels."""
CORNERS = """() => {
    const tip = document.getElementById("tooltip");
    if (tip.hidden) return null;
    const {left, top, right, bottom} = tip.getBoundingClientRect();
    return [left, top, innerWidth - right, innerHeight - bottom];
}"""


@pytest.fixture(scope="module", params=SIZES, ids=lambda size: f"{size[0]}-{size[1]}")
def page(
    request: pytest.FixtureRequest,
    browser: Any,
    digits: Profile,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Any]:
    width, scheme = request.param
    folder = tmp_path_factory.mktemp("report")
    # Names of real models are long, and have no place to break.
    layers = tuple(replace(each, name=each.name + 30 * "Name") for each in digits.layers)
    named = replace(digits, layers=layers)
    found = opened(browser, folder, profile_page(named, named), width, scheme)
    yield found
    assert not found.problems
    found.context.close()


def test_nothing_scrolls_sideways(page: Any) -> None:
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(wide) <= 0
    page.locator("#layer-table tr.layer").first.click()
    assert page.evaluate(wide) <= 0
    # Nothing is cut off either: no cell holds more than it shows.
    assert not page.evaluate(
        """[...document.querySelectorAll("td, th, .card, button, #why *")]
            .filter((each) => each.clientWidth && each.scrollWidth > each.clientWidth + 1)
            .map((each) => each.textContent)"""
    )


def test_a_cycle_is_at_the_same_pixel_in_all_charts(page: Any, digits: Profile) -> None:
    for part in (0, 0.3, 0.777, 0.999):
        page.locator("#zoom-all").click()
        columns = page.evaluate(COLUMNS, part * digits.cycles)
        assert len(columns) > 8
        assert len(columns[0]) == 1
        assert all(each == columns[0] for each in columns), columns


def test_tooltips_stay_inside_the_window(page: Any, digits: Profile) -> None:
    page.locator("#zoom-all").click()
    shown = 0
    for chart in page.locator("#charts canvas").all()[::3]:
        # At the top edge of the window, then at the bottom edge.
        for block in ("start", "end"):
            chart.evaluate("(canvas, block) => canvas.scrollIntoView({block})", block)
            drawn(page)
            box = chart.bounding_box()
            for x in (0.25, 0.6, 0.96):
                page.mouse.move(box["x"] + x * box["width"], box["y"] + box["height"] / 2)
                corners = page.evaluate(CORNERS)
                if corners:
                    shown += 1
                    assert min(corners) >= 0, corners
                    # Nor on top of what is pointed at, where there is room beside it.
                    at = box["x"] + x * box["width"]
                    narrow = page.viewport_size["width"] < 600
                    assert (
                        narrow or not corners[0] <= at <= page.viewport_size["width"] - corners[2]
                    )
    assert shown > 4


def test_axe_finds_nothing_serious(page: Any) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="needs axe-playwright-python"
    )
    page.mouse.move(0, 0)
    found = axe.Axe().run(page).response["violations"]
    serious = [each for each in found if each["impact"] in ("serious", "critical")]
    assert not [(each["id"], [node["html"] for node in each["nodes"]]) for each in serious]
