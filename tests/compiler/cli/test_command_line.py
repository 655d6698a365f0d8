"""The command line: what it prints, what it writes, and that every error is one clear message."""

import errno
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import click
import numpy as np
import pytest
from click.testing import CliRunner

from dovetail.compiler.cli import start
from dovetail.compiler.cli.output import FILE_WIDTH, clear_errors
from dovetail.isa.configs import CONFIGS
from dovetail.runtime import run
from dovetail.runtime.accelerator.part import accelerator_part
from dovetail.runtime.module import Module

from .commands import invoke, refused

NAMES = {"assemble", "compile", "devices", "disassemble", "profile", "quantize", "run", "verilog"}


def test_help_names_every_command_and_imports_no_hardware() -> None:
    code = (
        "import atexit, sys, dovetail.compiler.__main__ as m; "
        "atexit.register(lambda: print('Loaded:', *sys.modules)); m.main(['--help'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    listed, loaded = done.stdout.split("Commands:")[1].split("Loaded:")
    assert {line.split()[0] for line in listed.strip().splitlines()} >= NAMES
    assert not {"amaranth", "numpy", "onnx", "llvmlite"} & set(loaded.split())


def test_compile_run_and_profile_print_one_object(
    digits_model: Path, tmp_path: Path, image: Path
) -> None:
    path = tmp_path / "digits.dvt"
    compiled = invoke("compile", digits_model, "--target", "vta:tiny", "-o", path, "--json")
    assert compiled.exit_code == 0, compiled.output
    figures = json.loads(compiled.stdout)
    assert figures["target"] == "vta:tiny"
    assert figures["macs"] == 609_856
    assert figures["bytes"] == path.stat().st_size
    folder = tmp_path / "new" / "outputs"
    ran = invoke("run", path, "--input", f"image={image}", "--output-dir", folder, "--json")
    assert ran.exit_code == 0, ran.output
    figures = json.loads(ran.stdout)
    required = ("device", "wall_seconds", "cycles", "macs", "gemm_busy_cycles", "gemm_utilization")
    required += ("dram_bytes_read", "dram_bytes_written", "host_seconds")
    assert set(required) <= set(figures)
    assert figures["gemm_utilization"] == pytest.approx(figures["macs"] / figures["cycles"] / 16)
    logits = np.load(figures["outputs"]["logits"])
    expected = run(Module.load(path), {"image": np.load(image)})
    np.testing.assert_array_equal(logits, expected.outputs["logits"])
    assert figures["cycles"] == expected.cycles
    profiled = invoke("profile", path, "--input", f"image={image}", "--json")
    layers = json.loads(profiled.stdout)["layers"]
    assert sum(layer["cycles"] for layer in layers) == expected.cycles
    assert sum(layer["macs"] for layer in layers) == 609_856
    assert len(layers) == 9


def test_without_json_standard_output_stays_empty(
    module_file: Path, tmp_path: Path, image: Path
) -> None:
    for arguments in (
        ("run", module_file, "--input", f"image={image}", "--output-dir", tmp_path),
        ("profile", module_file),
        ("devices",),
    ):
        done = invoke(*arguments)
        assert done.exit_code == 0, done.output
        assert done.stdout == ""
        assert max(map(len, done.stderr.splitlines())) <= FILE_WIDTH


def test_the_table_of_layers_names_them_all(module_file: Path) -> None:
    text = invoke("profile", module_file).stderr
    for layer in accelerator_part(Module.load(module_file)).layers:
        assert layer.name in text
    for unit in ("LOAD", "GEMM", "VECTOR", "STORE"):
        assert unit in text


def test_the_timeline_has_a_box_for_every_instruction(module_file: Path, tmp_path: Path) -> None:
    path = tmp_path / "timeline.svg"
    done = invoke("profile", module_file, "--timeline", path)
    assert done.exit_code == 0, done.output
    root = ElementTree.fromstring(path.read_text())
    titles = [node.text or "" for node in root.iter("{http://www.w3.org/2000/svg}title")]
    count = accelerator_part(Module.load(module_file)).instruction_count
    numbers = {int(title.split()[1]) for title in titles}
    assert len(titles) == count
    assert numbers == set(range(count))
    waited = r"waited \d+ to be queued, \d+ for tokens, \d+ for banks$"
    assert all(re.search(waited, title) for title in titles)


def test_a_model_can_be_profiled_without_compiling_it_first(digits_model: Path) -> None:
    done = invoke("profile", digits_model, "--target", "vta:tiny", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["cycles"] > 0


def test_devices_and_configurations_are_listed() -> None:
    listed = json.loads(invoke("devices", "--json").stdout)
    assert set(listed["devices"]) == {"sim", "rtl", "board", "cpu", "opencl", "cuda", "webgpu"}
    assert set(listed["configs"]) == set(CONFIGS)


def test_verilog_is_written(tmp_path: Path) -> None:
    path = tmp_path / "tiny.v"
    done = invoke("verilog", "--config", "tiny", "-o", path)
    assert done.exit_code == 0, done.output
    assert "module dovetail_tiny(" in path.read_text()


def test_other_files_and_options_are_refused(module_file: Path, tmp_path: Path) -> None:
    odd = tmp_path / "odd.bin"
    odd.write_bytes(bytes(65))
    refused(invoke("disassemble", odd), "required a multiple of 64")
    odd.write_bytes(bytes(64))
    refused(invoke("disassemble", odd), "instruction 0")
    refused(invoke("disassemble", tmp_path / "absent.bin"), "No such file")
    refused(invoke("assemble", odd, "-o", tmp_path / "x"), "")
    refused(invoke("verilog", "--config", "huge", "-o", tmp_path / "x.v"), "no configuration")
    picture = tmp_path / "x.png"
    refused(invoke("profile", module_file, "--timeline", picture), "required FILE.svg", 2)
    away = tmp_path / "absent" / "x"
    for words in (
        *("verilog --config tiny -o", f"compile {odd} -o", f"convert {odd} -o"),
        *(f"assemble {odd} -o", f"quantize {odd} --data {odd} -o"),
    ):
        refused(invoke(*words.split(), away), "does not exist", 2)
    for words, suffix in (
        *((f"profile {odd} --html", ".html"), (f"profile {odd} --timeline", ".svg")),
        *((f"profile {odd} --trace", ""), (f"benchmark {odd} --svg", ".svg")),
    ):
        refused(invoke(*words.split(), away.with_suffix(suffix)), "does not exist", 2)
    (tmp_path / "file").write_text("")
    arguments = ("--input", f"image={tmp_path / 'i.npy'}", "--output-dir", tmp_path / "file" / "x")
    np.save(tmp_path / "i.npy", np.zeros((1, 1, 8, 8), np.float32))
    refused(invoke("run", module_file, *arguments), "cannot make folder")
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("x")]


def test_what_cannot_be_written_is_said(module_file: Path, tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("the superuser can write everywhere")
    tmp_path.chmod(0o500)
    refused(invoke("disassemble", module_file, "-o", tmp_path / "x.s"), "Permission denied")


@pytest.mark.parametrize(("name", "clear"), [("amaranth.hdl", True), ("dovetail.absent", False)])
def test_a_package_that_is_not_installed_is_named(name: str, clear: bool) -> None:
    @click.command()
    @clear_errors
    def command() -> None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    result = CliRunner().invoke(command)
    if clear:
        refused(result, "this command needs amaranth, which is not installed")
    else:
        assert isinstance(result.exception, ModuleNotFoundError)


def test_a_key_pressed_while_commands_are_imported_shows_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Pressed(ModuleType):
        def __getattr__(self, name: str) -> object:
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "dovetail.compiler.__main__", Pressed("pressed"))
    assert start.main() == 1
    assert capsys.readouterr().err == "\nAborted!\n"


@pytest.mark.parametrize("words", ["--help", "compile --help", "--version"])
def test_help_for_a_full_disk_is_one_error(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object, **options: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("click.decorators.echo", full)
    refused(invoke(*words.split()), "cannot write: No space left on device")
