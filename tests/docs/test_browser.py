"""The site in a browser: at three widths, in both colour schemes, by search and by keyboard."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
AXE = ROOT / "build" / "npm" / "node_modules" / "axe-core" / "axe.min.js"
WIDTHS = (390, 1440, 2560)
SCHEMES = ("light", "dark")
KINDS = (
    *("index", "search", "docs/architecture", "docs/operators", "docs/guides/first-model"),
    *("docs/reference/commands", "docs/reference/configuration", "docs/reference/python"),
)
"""A page of each kind."""
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
INK = """[...document.querySelectorAll("svg.diagram text")].map(text => {
    const numbers = (colour, n = 3) => colour.match(/[\\d.]+/g).map(Number).slice(0, n);
    const bright = colour => numbers(colour).map(v => v / 255)
        .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
    const box = text.parentNode.querySelector("path, polygon");
    const fill = getComputedStyle(box).fill;
    const inside = text.parentNode.matches(".node") && fill !== "none";
    let behind = text.closest("figure");
    const back = () => getComputedStyle(behind).backgroundColor;
    while (numbers(back(), 4)[3] === 0) behind = behind.parentNode;
    const pair = [getComputedStyle(text).fill, inside ? fill : back()].map(bright);
    return (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
})"""
"""Contrast of each text of a diagram with what is behind it, by WCAG's formula."""


@contextmanager
def opened(
    browser: Any, scheme: str = "light", width: int = 1440
) -> Iterator[tuple[Any, list[str]]]:
    """A page without a network, and what goes wrong in it."""
    size = {"width": width, "height": 1000}
    context = browser.new_context(viewport=size, color_scheme=scheme, offline=True)
    page, wrong = context.new_page(), []
    page.on("console", lambda said: said.type == "error" and wrong.append(said.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    yield page, wrong
    context.close()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_page_fits_every_screen_without_an_error(scheme: str, site: Path, browser: Any) -> None:
    with opened(browser, scheme) as (page, wrong):
        for name in KINDS:
            page.goto((site / f"{name}.html").as_uri())
            for width in WIDTHS:
                page.set_viewport_size({"width": width, "height": 1000})
                assert page.evaluate(OVERFLOW) <= 0, f"{name} at {width} px"
            assert not wrong, f"{name}: {wrong}"


def test_no_page_is_wider_than_a_telephone(site: Path, browser: Any) -> None:
    pages = [*site.glob("docs/*.html"), *site.glob("docs/guides/*.html"), *site.glob("*.html")]
    assert len(pages) > 35
    with opened(browser, width=WIDTHS[0]) as (page, wrong):
        for path in pages:
            if path.name != "genindex.html":  # of names alone
                page.goto(path.as_uri(), wait_until="domcontentloaded")
                assert page.evaluate(OVERFLOW) <= 0, path.relative_to(site)
    assert not wrong


@pytest.mark.parametrize("scheme", SCHEMES)
def test_diagrams_can_be_read(scheme: str, site: Path, browser: Any) -> None:
    other = SCHEMES[1 - SCHEMES.index(scheme)]
    for chosen in ("auto", "opposite"):
        with opened(browser, scheme) as (page, _):
            page.goto((site / "docs" / "architecture.html").as_uri())
            if chosen == "opposite":
                # The page's own switch goes before the browser's setting.
                page.evaluate(f"document.body.dataset.theme = '{other}'")
            contrasts = page.evaluate(INK)
        assert len(contrasts) > 30
        assert min(contrasts) > 4.5


@pytest.mark.parametrize(("scheme", "width"), [("light", 1440), ("dark", 390)])
def test_nothing_serious_hinders_access(scheme: str, width: int, site: Path, browser: Any) -> None:
    if not AXE.is_file():
        pytest.skip("no axe-core: npm install --prefix build/npm axe-core")
    script = AXE.read_text(encoding="utf-8")
    with opened(browser, scheme, width) as (page, _):
        for name in ("index", "search", "docs/architecture", "docs/guides/first-model"):
            page.goto((site / f"{name}.html").as_uri())
            page.evaluate(script)
            found = [
                f"{name}: {each['id']}: {each['nodes'][0]['html'][:200]}"
                for each in page.evaluate("axe.run()")["violations"]
                if each["impact"] in ("serious", "critical")
            ]
            assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("words", "first"),
    [
        ("serial line board record", "docs/guides/own-board.html"),
        ("operator", "docs/guides/own-operator.html"),
        ("quantise", "docs/guides/quantize.html"),
        ("wrong byte", "docs/guides/wrong-byte.html"),
    ],
)
def test_the_search_finds_guides_first(words: str, first: str, site: Path, browser: Any) -> None:
    with opened(browser) as (page, wrong):
        page.goto(f"{(site / 'search.html').as_uri()}?q={words.replace(' ', '+')}")
        page.wait_for_selector("#search-results li a")
        page.wait_for_function("document.querySelector('.search-summary').innerText.match(/\\d/)")
        links = page.locator("#search-results li > a").evaluate_all(
            "links => links.map(link => link.getAttribute('href'))"
        )
    assert links[0].split("?")[0].split("#")[0] == first, links[:5]
    assert not wrong


def test_what_scrolls_is_reached_by_the_keyboard(site: Path, browser: Any) -> None:
    with opened(browser, width=390) as (page, _):
        page.goto((site / "docs" / "operators.html").as_uri())
        wide = page.evaluate(
            "[...document.querySelectorAll('.table-wrapper')]"
            ".filter(box => box.scrollWidth > box.clientWidth).map(box => box.tabIndex)"
        )
    assert wide
    assert set(wide) == {0}
