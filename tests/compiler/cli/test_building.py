"""The build of an RTL simulation is shown, once, and timed apart from the run."""

import json
from pathlib import Path

import pytest

from dovetail.compiler.cli.building import build_for, build_rtl
from dovetail.isa.configs import find_config
from dovetail.runtime.devices import open_launcher
from dovetail.runtime.module import Module

from .commands import invoke

TINY = find_config("tiny")


@pytest.fixture
def unbuilt(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Builds, on a device that has built nothing and runs nothing."""
    rtl, simulator = open_launcher("rtl"), open_launcher("sim")
    built: list[object] = []
    monkeypatch.setattr(type(rtl), "is_built", lambda self, config: config in built)
    monkeypatch.setattr(type(rtl), "build", lambda self, config: built.append(config))
    monkeypatch.setattr(type(rtl), "run", lambda self, launch: simulator.run(launch))
    return built


def test_each_configuration_is_built_once(unbuilt: list[object], module_file: Path) -> None:
    assert build_rtl([TINY, TINY], "rtl") > 0
    assert unbuilt == [TINY]
    assert build_for(Module.load(module_file), "rtl:tiny") == 0
    assert build_rtl([TINY], "sim") == build_rtl([TINY], "cpu") == 0
    assert unbuilt == [TINY]


def test_the_time_of_a_build_is_no_time_of_the_run(
    unbuilt: list[object], module_file: Path, image: Path, tmp_path: Path
) -> None:
    arguments = ("run", module_file, "--device", "rtl", "--input", f"image={image}", "--json")
    first, second = (invoke(*arguments, "--output-dir", tmp_path) for _ in range(2))
    assert "building the RTL simulation of tiny: minutes, once" in first.stderr
    assert json.loads(first.stdout)["build_seconds"] > 0
    assert "building" not in second.stderr
    assert "build_seconds" not in json.loads(second.stdout)
