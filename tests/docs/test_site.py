"""The documentation site: built without a warning, whole, and searchable without a server."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("sphinx", reason="needs the extra docs")
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    options = ["-q", "-W", "--keep-going", "-c", "docs/site", "-d", str(folder / "doctrees")]
    command = [sys.executable, "-m", "sphinx", *options, ".", str(folder / "html")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "html"


def test_every_page_is_part_of_the_site(site: Path) -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md")]
    pages += [*ROOT.glob("docs/guides/*.md"), *ROOT.glob("examples/*/README.md")]
    for page in pages:
        assert (site / page.relative_to(ROOT)).with_suffix(".html").is_file(), page
    assert (site / "index.html").read_text() == (site / "README.html").read_text()


def test_the_reference_has_every_module(site: Path) -> None:
    described = {
        name
        for page in (site / "docs" / "reference").glob("*.html")
        for name in re.findall(r'id="module-([\w.]+)"', page.read_text())
    }
    for folder in ("isa", "vta_hw", "vta_sim", "runtime", "compiler", "bitstreams"):
        for path in (ROOT / folder).rglob("*.py"):
            if not path.name.startswith("_"):
                parts = path.relative_to(ROOT).with_suffix("").parts
                assert ".".join(("dovetail", *parts)) in described


def test_links_within_the_site_lead_somewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        for link in re.findall(r'href="([^"#?]+)', page.read_text()):
            if not re.match(r"[a-z]+:", link):
                assert (page.parent / link).exists(), f"{page.relative_to(site)}: {link}"


def test_the_search_knows_the_manual_and_the_reference(site: Path) -> None:
    text = (site / "searchindex.js").read_text()
    index = json.loads(text[text.index("(") + 1 : text.rindex(")")])
    titles = {
        title: {index["docnames"][n] for n, _ in at} for title, at in index["alltitles"].items()
    }
    assert "docs/isa" in titles["VECTOR (opcode 3)"]
    names = {entry[4] for entry in index["objects"]["dovetail.runtime.module"]}
    assert "Module" in names


def test_the_search_works_offline_in_a_browser(site: Path) -> None:
    api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("no browser on PATH")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_context(offline=True).new_page()
        page.goto(f"{(site / 'search.html').as_uri()}?q=scratchpad+addresses+wrap")
        page.wait_for_selector("#search-results li a")
        titles = page.locator("#search-results li a").all_inner_texts()
        browser.close()
    assert any("accelerator" in title for title in titles)
