"""The command: what it writes and says, its errors, and its page in a real browser."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from dovetail.compiler.__main__ import main
from dovetail.compiler.cli.output import FILE_WIDTH, human
from dovetail.compiler.explore.space import load_space
from dovetail.isa.configs import find_config

pytest.importorskip("bokeh", reason="needs the extra explore")

SPACE = """
[base]
config = "tiny"
[hardware]
block = [4, 8]
wgt_depth = [2, 128, 256]
"""


@pytest.fixture(scope="module")
def folder(small_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Explored once for all tests."""
    place = tmp_path_factory.mktemp("explore")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOVETAIL_CACHE", str(place / "cache"))
        patch.setattr(human, "_width", FILE_WIDTH)
        done = invoke(small_model, place)
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


def test_an_error_is_one_message(small_model: Path, tmp_path: Path) -> None:
    refused = invoke(small_model, tmp_path, space="[hardware]\nblock = [5]\n")
    assert refused.exit_code == 1
    assert isinstance(refused.exception, SystemExit), "a traceback"
    assert "no design can have block = 5" in " ".join(refused.stderr.split())
    assert refused.stdout == ""
    absent = invoke(tmp_path / "absent.onnx", tmp_path)
    assert absent.exit_code == 1
    assert "absent.onnx" in absent.stderr
    assert not (tmp_path / "out").exists()


def test_the_page_draws_the_designs_and_says_what_failed(folder: Path, browser: Any) -> None:
    text = (folder / "out" / "report.html").read_text()
    assert "http" not in text.split("</head>")[1].replace("http://www.w3.org", "")
    problems: list[str] = []
    context = browser.new_context(offline=True)
    page = context.new_page()
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto((folder / "out" / "report.html").as_uri())
    page.wait_for_function("window.Bokeh && Bokeh.documents.length && Bokeh.documents[0].is_idle")
    drawn = page.evaluate(
        """() => Bokeh.documents[0].get_model_by_name("ECP5: share of the part").renderers
        .filter((each) => each.data_source.data.luts)
        .reduce((sum, each) => sum + each.data_source.data.x.length, 0)"""
    )
    fronts = page.locator("table.front").count()
    failures = page.locator("#failed tr").count()
    context.close()
    assert not problems
    found = json.loads((folder / "json").read_text())
    assert failures == found["failed"]
    assert 0 < drawn <= 6 - found["failed"]
    assert fronts == 2


def test_the_front_becomes_configurations_that_commands_take(
    folder: Path, small_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOVETAIL_CACHE", str(folder / "cache"))
    (tmp_path / "front").mkdir()
    (tmp_path / "front" / "front_99.toml").write_text("of an earlier exploration")
    front = json.loads((folder / "json").read_text())["front"]["ECP5"]
    more = ("--family", "ECP5", "--front-dir", str(tmp_path / "front"), "--pick", "1")
    done = invoke(small_model, folder, *more)
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
    refused = invoke(small_model, folder, "--pick", "77")
    assert refused.exit_code == 1
    assert "--pick 77: the front for Xilinx 7 has" in refused.stderr


def test_a_space_begins_with_a_file_beside_it(small_model: Path, tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text('base = "tiny"\nact_depth = 1024')
    space = '[base]\nconfig = "own.toml"\n'
    (tmp_path / "space.toml").write_text(space)
    assert load_space(tmp_path / "space.toml").base.act_depth == 1024
    refused = invoke(small_model, tmp_path, space='[base]\nconfig = "absent.toml"\n')
    said = " ".join(refused.stderr.split())
    assert f"configuration {tmp_path}/absent.toml cannot be read" in said


def test_models_are_arguments(folder: Path, small_model: Path, tmp_path: Path) -> None:
    more = ["--space", str(folder / "space.toml"), "-o", str(folder / "out"), "--jobs", "1"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOVETAIL_CACHE", str(folder / "cache"))
        done = CliRunner().invoke(main, ["explore", str(small_model), *more])
    assert done.exit_code == 0, done.output
    assert "6 of them known" in done.stderr
    refused = CliRunner().invoke(main, ["explore", *more])
    assert refused.exit_code == 2
    assert "no model is given; required one or more models" in refused.stderr
