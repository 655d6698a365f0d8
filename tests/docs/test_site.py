"""The documentation site: whole, and generated where a program knows better."""

import json
import re
from dataclasses import fields
from html import unescape
from pathlib import Path

import click

import dovetail
from dovetail.compiler.__main__ import main
from dovetail.isa.config import DramTiming, HardwareConfig

ROOT = Path(__file__).resolve().parents[2]


def test_every_page_is_part_of_the_site(site: Path) -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md")]
    pages += [*ROOT.glob("docs/guides/*.md"), *ROOT.glob("examples/*/README.md")]
    for page in pages:
        assert (site / page.relative_to(ROOT)).with_suffix(".html").is_file(), page
    assert (site / "index.html").read_text() == (site / "README.html").read_text()


def test_the_reference_has_every_module(site: Path) -> None:
    described = {
        name
        for page in (ROOT / "docs" / "reference").glob("*.md")
        for name in re.findall(r"automodule:: ([\w.]+)", page.read_text())
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


def test_every_command_and_option_is_described(site: Path) -> None:
    text = unescape(re.sub(r"<[^>]+>", "", (site / "docs/reference/commands.html").read_text()))

    def require(command: click.Command, name: str) -> None:
        assert name in text
        for option in command.params:
            for word in (*option.opts, *option.secondary_opts):
                assert not word.startswith("--") or word in text, f"{name} {word}"
        if isinstance(command, click.Group):
            for inner, each in command.commands.items():
                require(each, f"{name} {inner}")

    for name, command in main.commands.items():
        require(command, f"dovetail {name}")


def test_every_field_of_the_configuration_is_described_with_its_range(site: Path) -> None:
    text = (site / "docs/reference/configuration.html").read_text()
    rows = {
        re.sub(r"<[^>]+>", "", cells[0]): unescape(re.sub(r"<[^>]+>", "", cells[2]))
        for row in re.findall(r"<tr.*?</tr>", text, re.DOTALL)
        if len(cells := re.findall(r"<td.*?<p>(.*?)</p></td>", row, re.DOTALL)) == 4
    }
    named = [f.name for f in (*fields(HardwareConfig), *fields(DramTiming)) if f.name != "dram"]
    assert set(rows) == set(named)
    assert rows["block"] == "4 to 64, a power of two"


def test_the_names_of_the_package_are_described(site: Path) -> None:
    text = (site / "docs/reference/python.html").read_text()
    for name in dovetail.__all__:
        assert name == "__version__" or f'<span class="pre">{name}</span>' in text, name


def test_diagrams_are_in_the_page_and_have_a_text(site: Path) -> None:
    text = (site / "docs/architecture.html").read_text()
    assert len(re.findall(r'<svg role="img" aria-label="[^"]{40,}" class="diagram"', text)) == 3
