"""The emitted Verilog: the same every time, clean under lint, without paths of any machine."""

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from dovetail.vta_hw.build import verilator_directory
from dovetail.vta_hw.verilog import LINT_WAIVERS, HardwareError, emit_verilog, find_yosys

from .compute_top import BUILDS

EMIT = (
    "from dovetail.isa.configs import find_config;"
    "from dovetail.vta_hw.verilog import emit_verilog;"
    "print(emit_verilog(find_config('tiny')), end='')"
)


def lint(path: Path) -> str:
    """Output of ``verilator --lint-only -Wall``."""
    search = f"{verilator_directory()}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["verilator", "--lint-only", "-Wall", path.name],
        cwd=path.parent,
        env=dict(os.environ, PATH=search),
        capture_output=True,
        text=True,
        check=False,
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr


@cache
def emitted(name: str) -> str:
    """The Verilog of a build; making it takes longer than looking at it."""
    return emit_verilog(BUILDS[name])


def test_another_process_emits_the_same_text_without_paths() -> None:
    environment = dict(os.environ, PYTHONHASHSEED="1")
    command = [sys.executable, "-c", EMIT]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    text = emitted("plain")
    assert done.stdout == text
    assert "module dovetail_tiny(" in text
    # Verilog has no other use for these than in comments and attributes.
    for trace in (str(Path(__file__).parents[2]), str(Path.home()) + "/", ".py:"):
        assert trace not in text


def test_lint_finds_nothing_but_what_is_waived(tmp_path: Path) -> None:
    """``make lint-verilog`` does so with all configurations, at their sizes."""
    text = emitted("plain")
    path = tmp_path / "plain.v"
    path.write_text(text)
    assert "core_clk" not in text
    assert lint(path) == ""
    for waiver in LINT_WAIVERS:
        text = text.replace(f"/* verilator lint_off {waiver} */", "")
    path.write_text(text)
    found = set(re.findall(r"%Warning-(\w+):", lint(path)))
    assert found == set(LINT_WAIVERS), "waived for nothing, or not waived"


def test_without_yosys_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("YOSYS", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    with pytest.raises(HardwareError, match="pip install"):
        find_yosys()
