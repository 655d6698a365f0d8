"""The command: what it writes and says, its errors, and its page in a real browser."""

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from dovetail.compiler.__main__ import main
from dovetail.compiler.cli.output import FILE_WIDTH, human
from dovetail.compiler.explore.space import load_space
from dovetail.isa.configs import find_config
from tests.kept import check_kept

from ..profile.browser import drawn, opened
from ..profile.test_layout import CORNERS

KEPT = Path(__file__).with_name("kept_page.json")
SPACE = """
[base]
config = "tiny"
[hardware]
block = [4, 8]
wgt_depth = [2, 128, 256]
"""


@pytest.fixture(scope="module")
def folder(one_layer_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Explored once for all tests."""
    place = tmp_path_factory.mktemp("explore")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOVETAIL_CACHE", str(place / "cache"))
        patch.setattr(human, "_width", FILE_WIDTH)
        done = invoke(one_layer_model, place)
    assert done.exit_code == 0, done.output
    (place / "json").write_text(done.stdout)
    (place / "said").write_text(done.stderr)
    return place


def invoke(model: Path, place: Path, *more: str, space: str = SPACE) -> Result:
    (place / "space.toml").write_text(space)
    arguments = ["explore", "--models", str(model), "--space", str(place / "space.toml")]
    arguments += ["-o", str(place / "out"), "--jobs", "1", "--json", *more]
    return CliRunner().invoke(main, arguments)


def test_standard_output_is_one_object(folder: Path) -> None:
    found = json.loads((folder / "json").read_text())
    assert (found["designs"], found["evaluations"], found["known"]) == (6, 6, 0)
    assert found["failed"] >= 1
    for front in found["front"].values():
        assert front == sorted(front, key=lambda each: each["latency_ms"])
        assert {each["wgt_depth"] for each in front} <= {128, 256}


def test_all_files_are_there_and_named(folder: Path) -> None:
    with (folder / "out" / "results.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 6
    assert all(bool(line["cycles"]) != bool(line["error"]) for line in lines)
    said = (folder / "said").read_text()
    for name in ("results.csv", "results.parquet", "report.html"):
        assert (folder / "out" / name).stat().st_size > 0
        assert name in said


def test_an_error_is_one_message(one_layer_model: Path, tmp_path: Path) -> None:
    refused = invoke(one_layer_model, tmp_path, space="[hardware]\nblock = [5]\n")
    assert refused.exit_code == 1
    assert isinstance(refused.exception, SystemExit), "a traceback"
    assert "no design can have block = 5" in " ".join(refused.stderr.split())
    assert refused.stdout == ""
    absent = invoke(tmp_path / "absent.onnx", tmp_path)
    assert absent.exit_code == 1
    assert "absent.onnx" in absent.stderr
    assert not (tmp_path / "out").exists()


@pytest.fixture(params=[(390, "dark"), (1440, "light"), (2560, "dark"), (1440, "dark")])
def page(
    request: pytest.FixtureRequest, folder: Path, browser: Any, tmp_path: Path
) -> Iterator[Any]:
    text = (folder / "out" / "report.html").read_text()
    found = opened(browser, tmp_path, text, *request.param)
    yield found
    assert not found.problems
    found.context.close()


def test_the_page_draws_the_designs_and_says_what_failed(folder: Path, page: Any) -> None:
    found = json.loads((folder / "json").read_text())
    assert page.locator("#failed tr").count() == found["failed"]
    assert page.locator("table.front").count() == len(found["front"]) == 2
    with (folder / "out" / "results.csv").open() as file:
        lines = [each for each in csv.DictReader(file) if each["cycles"]]
    for number, (family, front) in enumerate(found["front"].items()):
        share = f"{family.lower().replace(' ', '_')}_share"
        listed = [each for each in lines if float(each[share]) <= 1]
        for plot in page.locator(f"#plots-{number} .plot").all():
            assert plot.locator(".design").count() == len(listed) > 0
            assert plot.locator(".front").count() == len(front)
        page.locator(f"#sizes-{number} button").first.click()
        left = sum(each["block"] != "4" for each in listed)
        assert page.locator(f"#plots-{number} .plot").first.locator(".design").count() == left


def test_a_rectangle_is_looked_at_closer(page: Any) -> None:
    plot = page.locator(".plot").first
    plot.scroll_into_view_if_needed()
    points = "(plot) => [...plot.querySelectorAll('.design')].map((it) => it.getAttribute('cx'))"
    whole, box = plot.evaluate(points), plot.bounding_box()
    first = plot.locator(".design").first.bounding_box()
    page.mouse.move(first["x"] - 20, first["y"] - 20)
    page.mouse.down()
    page.mouse.move(first["x"] + 30, first["y"] + 30)
    page.mouse.up()
    closer = plot.evaluate(points)
    assert closer != whole
    assert 1 <= len(closer) <= len(whole)
    page.mouse.dblclick(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert plot.evaluate(points) == whole


def test_the_page_fits_and_its_tooltips_too(page: Any) -> None:
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(wide) <= 0
    for point in page.locator(".design.front").all():
        point.scroll_into_view_if_needed()
        drawn(page)
        point.hover(force=True)  # another one may be at the same place
        corners = page.evaluate(CORNERS)
        assert min(corners) >= 0, corners
        assert " ms" in page.locator("#tooltip").inner_text()


def test_axe_finds_nothing_serious(page: Any) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="needs axe-playwright-python"
    )
    found = axe.Axe().run(page).response["violations"]
    serious = [each for each in found if each["impact"] in ("serious", "critical")]
    assert not [(each["id"], [node["html"] for node in each["nodes"]]) for each in serious]


def test_the_front_becomes_configurations_that_commands_take(
    folder: Path, one_layer_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOVETAIL_CACHE", str(folder / "cache"))
    (tmp_path / "front").mkdir()
    (tmp_path / "front" / "front_99.toml").write_text("of an earlier exploration")
    front = json.loads((folder / "json").read_text())["front"]["ECP5"]
    more = ("--family", "ECP5", "--front-dir", str(tmp_path / "front"), "--pick", "1")
    done = invoke(one_layer_model, folder, *more)
    assert done.exit_code == 0, done.output
    names = sorted(path.name for path in (tmp_path / "front").iterdir())
    assert names == sorted(f"front_{number}.toml" for number in range(1, len(front) + 1))
    for number, values in enumerate(front, 1):
        config = find_config(str(tmp_path / "front" / f"front_{number}.toml"))
        assert (config.block, config.wgt_depth) == (values["block"], values["wgt_depth"])
        assert (config.name, config.multiplier_bits) == (f"front_{number}", 18)
        assert config.clock_hz != find_config("tiny").clock_hz
    assert find_config(str(folder / "out" / "front_1.toml")).name == "front_1"
    assert "module dovetail_front_1" in (folder / "out" / "front_1.v").read_text()
    refused = invoke(one_layer_model, folder, "--pick", "77")
    assert refused.exit_code == 1
    assert "--pick 77: the front for Xilinx 7 has" in refused.stderr


def test_a_space_begins_with_a_file_beside_it(one_layer_model: Path, tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text('base = "tiny"\nact_depth = 1024')
    space = '[base]\nconfig = "own.toml"\n'
    (tmp_path / "space.toml").write_text(space)
    assert load_space(tmp_path / "space.toml").base.act_depth == 1024
    refused = invoke(one_layer_model, tmp_path, space='[base]\nconfig = "absent.toml"\n')
    said = " ".join(refused.stderr.split())
    assert f"configuration {tmp_path}/absent.toml cannot be read" in said


def test_models_are_arguments(folder: Path, one_layer_model: Path, tmp_path: Path) -> None:
    more = ["--space", str(folder / "space.toml"), "-o", str(folder / "out"), "--jobs", "1"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOVETAIL_CACHE", str(folder / "cache"))
        done = CliRunner().invoke(main, ["explore", str(one_layer_model), *more])
    assert done.exit_code == 0, done.output
    said = " ".join(done.stderr.split())
    assert "6 designs (all of a space of 6 combinations), 6 evaluations, 6 of them known" in said
    refused = CliRunner().invoke(main, ["explore", *more])
    assert refused.exit_code == 2
    assert "no model is given; required one or more models" in refused.stderr


def test_all_of_the_page_is_as_it_was(folder: Path) -> None:
    text = (folder / "out" / "report.html").read_text()
    said = text[text.index("<p>From") : text.index("<script")]
    check_kept(KEPT, "page", re.sub(r"(<(?:h2|p|tr|div|table))", r"\n\1", said).splitlines())
    shown = [re.sub(r"\S*/out/", "", line) for line in (folder / "said").read_text().splitlines()]
    check_kept(KEPT, "said", [line for line in shown if " s" not in line])
