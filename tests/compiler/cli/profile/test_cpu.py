"""The command and the report of a model on the CPU."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from dovetail.compiler import compile
from dovetail.compiler.__main__ import main

from .browser import AXIS, opened


def test_kernels_of_a_model_on_the_cpu(browser: Any, digits_model: Path, tmp_path: Path) -> None:
    page = tmp_path / "cpu.html"
    arguments = ["profile", str(digits_model), "--target", "cpu", "--threads", "2"]
    done = CliRunner().invoke(main, [*arguments, "--html", str(page), "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["threads"] == 2
    kernels = found["kernels"]
    assert sum(each["seconds"] for each in kernels) == pytest.approx(found["seconds"])
    assert all(each["low"] <= each["seconds"] <= each["high"] for each in kernels)
    assert {"a1", "b2", "logits"} <= {node for each in kernels for node in each["nodes"]}
    shown = opened(browser, tmp_path, page.read_text(), 390, "dark")
    assert shown.locator("#layer-table tr.layer").count() == len(kernels)
    cells = shown.locator("#layer-table td:nth-child(4)").all_inner_texts()
    assert cells == [f"{1e6 * each['seconds']:.2f}" for each in kernels]
    assert shown.evaluate(AXIS) == [0, pytest.approx(1e9 * found["seconds"], abs=1)]
    assert shown.evaluate("document.documentElement.scrollWidth") <= 390
    shown.locator("#search").fill("logits")
    assert 0 < shown.locator("#layer-table tr.layer:visible").count() < len(kernels)
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="needs axe-playwright-python"
    )
    violations = axe.Axe().run(shown).response["violations"]
    assert not [each["id"] for each in violations if each["impact"] in ("serious", "critical")]
    assert not shown.problems


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--target", "cpu", "--trace", "x"), "are of the accelerator"),
        (("--target", "vta:tiny", "--threads", "2"), "required --target cpu"),
    ],
)
def test_options_of_the_other_target(
    arguments: tuple[str, ...], problem: str, digits_model: Path
) -> None:
    done = CliRunner().invoke(main, ["profile", str(digits_model), *arguments])
    assert done.exit_code == 2
    assert problem in done.output


def test_a_module_has_no_clocks(digits_model: Path, tmp_path: Path) -> None:
    compile(digits_model, "cpu").save(tmp_path / "digits.dvt")
    done = CliRunner().invoke(main, ["profile", str(tmp_path / "digits.dvt")])
    assert done.exit_code == 1
    assert "without clocks; profile the model with --target cpu" in done.output
