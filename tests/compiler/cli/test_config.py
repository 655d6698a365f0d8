"""Accelerators in files, on the command line."""

import json
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dovetail.bitstreams.boards import BOARDS, ZYNQ_BOARDS
from dovetail.isa.configs import CONFIGS, find_config

from .commands import invoke, refused


def test_show_prints_a_file_that_is_read_again(tmp_path: Path) -> None:
    shown = invoke("config", "show", "large")
    (tmp_path / "large.toml").write_text(shown.stdout)
    assert find_config(str(tmp_path / "large.toml")) == CONFIGS["large"]
    assert "1024 MACs a cycle" in shown.stdout.splitlines()[0]
    values = json.loads(invoke("config", "show", tmp_path / "large.toml", "--json").stdout)
    assert (values["block"], values["dram"]["latency_cycles"]) == (32, 32)


def test_new_writes_a_file_once(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    assert invoke("config", "new", path, "--base", "tiny").exit_code == 0
    values = tomllib.loads(path.read_text())
    assert (values.pop("name"), values["block"]) == ("own", 4)
    assert find_config(str(path)).fingerprint == CONFIGS["tiny"].fingerprint
    refused(invoke("config", "new", path), "own.toml is there already; --force replaces it", 2)
    assert invoke("config", "new", path, "--force").exit_code == 0
    assert find_config(str(path)).block == CONFIGS["zynq7020"].block
    refused(invoke("config", "new", tmp_path / "own"), "own does not end in .toml", 2)
    refused(invoke("config", "new", tmp_path / "tiny.toml"), "is 'tiny'; required one that no")
    refused(invoke("config", "new", tmp_path / "no" / "a.toml"), "does not exist", 2)


def test_check_says_what_a_file_comes_to(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text('base = "zynq7020"\nblock = 8')
    said = " ".join(invoke("config", "check", path).stderr.split())
    assert "own, 64 MACs a cycle, 182.0 KiB of memories" in said
    assert json.loads(invoke("config", "check", path, "--json").stdout)["macs_per_cycle"] == 64
    path.write_text("block = 9")
    refused(invoke("config", "check", path), "line 1: block = 9; required 4 to 64")


def test_a_device_is_pinned_to_a_file(module_file: Path, image: Path, tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text('base = "tiny"')
    (tmp_path / "other.toml").write_text('base = "tiny"')
    more = ("--input", f"image={image}", "--output-dir", tmp_path, "--device")
    assert invoke("run", module_file, *more, f"sim:{tmp_path}/tiny.toml").exit_code == 0
    wrong = invoke("run", module_file, *more, f"sim:{tmp_path}/other.toml")
    refused(wrong, "what was compiled for 'vta:tiny' cannot run on")
    refused(invoke("run", module_file, *more, "sim:tinny"), "'tinny'; there are: tiny")


def test_the_boards_are_named_where_one_is_asked_for() -> None:
    names = ", ".join((*BOARDS, *ZYNQ_BOARDS))
    assert f"One of: {names}." in " ".join(invoke("bitstream", "--help").stdout.split())
    refused(invoke("bitstream", "-o", "x"), f"Missing option '--board'. One of: {names}.", 2)
    wrong = invoke("bitstream", "--board", "ulx4s", "-o", "x")
    refused(wrong, f"no board is called 'ulx4s'; there are: {names}")


def test_a_board_takes_a_configuration_of_ones_own(tmp_path: Path) -> None:
    pytest.importorskip("amaranth_boards", reason="needs the extra board")
    path = tmp_path / "own.toml"
    path.write_text('base = "zynq7020"')
    wrong = invoke("bitstream", "--board", "ulx3s-25f", "--config", path, "-o", tmp_path / "out")
    refused(wrong, "own: its memory is not an SDRAM, which the board has; required dram.sdram")


def test_layers_of_own_hardware_are_checked(one_layer_model: Path, tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text('base = "tiny"\nact_depth = 4096\n')
    path = tmp_path / "own.dvt"
    done = invoke("compile", one_layer_model, "--target", f"vta:{tmp_path}/own.toml", "-o", path)
    assert done.exit_code == 0, done.output
    (tmp_path / "own.toml").unlink()
    (tmp_path / "own.toml").write_text(invoke("config", "show", path).stdout)
    assert find_config(str(tmp_path / "own.toml")) == replace(
        CONFIGS["tiny"], name="own", act_depth=4096
    )
    (tmp_path / "own.toml").unlink()
    np.save(tmp_path / "x.npy", np.arange(48, dtype=np.int8).reshape(1, 3, 4, 4))
    given = ("--input", f"x={tmp_path}/x.npy", "--output-dir", tmp_path, "--json")
    checks = json.loads(invoke("run", path, *given, "--check", one_layer_model).stdout)["checks"]
    assert [each["passes"] for each in checks] == [True, True]
