"""The command line: what it prints, what it writes, and that every error is one clear message."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import click
import numpy as np
import onnx
import pytest
from click.testing import CliRunner, Result
from onnx import TensorProto, helper

from dovetail.compiler.__main__ import main
from dovetail.compiler.cli.output import FILE_WIDTH, clear_errors, human
from dovetail.isa.assembly import assemble
from dovetail.isa.configs import CONFIGS, find_config
from dovetail.runtime.module import Module

NAMES = {"assemble", "compile", "devices", "disassemble", "profile", "quantize", "run", "verilog"}
PROGRAM = """
# copies twelve words through ACT
load  memory=act sram_address=0 dram_address=0 count_x=12 post=store
store sram_address=0 dram_address=64 count_x=12 wait=load
"""


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """As wide as a file, on whatever terminal the tests run."""
    monkeypatch.setattr(human, "_width", FILE_WIDTH)


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def refused(result: Result, message: str, code: int = 1) -> None:
    """One error on standard error, the exit code, and nothing on standard output."""
    assert result.exit_code == code, result.output
    assert isinstance(result.exception, SystemExit), "a traceback"
    assert result.stdout == ""
    assert "Error: " in result.stderr
    assert message in " ".join(result.stderr.split())


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "image.npy"
    np.save(path, np.random.default_rng(0).random((1, 1, 8, 8), np.float32))
    return path


@pytest.fixture(scope="module")
def module_file(digits_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("module") / "digits.dvt"
    done = invoke("compile", digits_model, "--target", "vta:tiny", "-o", path)
    assert done.exit_code == 0, done.output
    return path


def test_help_names_every_command_and_comes_quickly() -> None:
    command = [sys.executable, "-m", "dovetail.compiler", "--help"]
    begin = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert time.perf_counter() - begin < 5
    listed = done.stdout.split("Commands:")[1]
    assert {line.split()[0] for line in listed.strip().splitlines()} >= NAMES
    code = (
        "import sys, dovetail.compiler.__main__ as m; "
        "print([n for n in ('onnx', 'amaranth', 'rich.progress') if n in sys.modules])"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert "amaranth" not in loaded.stdout


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
    expected = Module.load(path).run({"image": np.load(image)})
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
    for layer in Module.load(module_file).details["layers"]:
        assert layer["name"] in text
    for unit in ("LOAD", "GEMM", "VECTOR", "STORE"):
        assert unit in text


def test_the_timeline_has_a_box_for_every_instruction(module_file: Path, tmp_path: Path) -> None:
    path = tmp_path / "timeline.svg"
    done = invoke("profile", module_file, "--timeline", path)
    assert done.exit_code == 0, done.output
    root = ElementTree.fromstring(path.read_text())
    titles = [node.text or "" for node in root.iter("{http://www.w3.org/2000/svg}title")]
    count = Module.load(module_file).details["program_bytes"] // 64
    numbers = {int(title.split()[1]) for title in titles}
    assert len(titles) == count
    assert numbers == set(range(count))


def test_a_model_can_be_profiled_without_compiling_it_first(digits_model: Path) -> None:
    done = invoke("profile", digits_model, "--target", "vta:tiny", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["cycles"] > 0


@pytest.mark.parametrize("target", ["vta:tiny", "cpu"])
def test_two_processes_compile_to_the_same_bytes(
    digits_model: Path, tmp_path: Path, target: str
) -> None:
    files = []
    for seed in ("1", "2"):
        path = tmp_path / f"{seed}.dvt"
        command = [sys.executable, "-m", "dovetail.compiler", "compile", digits_model]
        command += ["--target", target, "-o", path]
        environment = dict(os.environ, PYTHONHASHSEED=seed)
        subprocess.run(command, env=environment, capture_output=True, check=True)
        files.append(path.read_bytes())
    assert files[0] == files[1]
    assert str(digits_model.parent).encode() not in files[0]


def test_the_cpu_gives_the_same_bytes(digits_model: Path, tmp_path: Path, image: Path) -> None:
    outputs = []
    for target, device in (("cpu", "cpu"), ("vta:tiny", "sim")):
        path, folder = tmp_path / f"{device}.dvt", tmp_path / device
        assert invoke("compile", digits_model, "--target", target, "-o", path).exit_code == 0
        arguments = ("--device", device, "--input", f"image={image}", "--output-dir", folder)
        assert invoke("run", path, *arguments).exit_code == 0
        outputs.append((folder / "logits.npy").read_bytes())
    assert outputs[0] == outputs[1]


def test_devices_and_configurations_are_listed() -> None:
    listed = json.loads(invoke("devices", "--json").stdout)
    assert set(listed["devices"]) == {"sim", "rtl", "board", "cpu"}
    assert set(listed["configs"]) == set(CONFIGS)


def test_a_program_survives_assembly_and_disassembly(tmp_path: Path, module_file: Path) -> None:
    text, code = tmp_path / "program.s", tmp_path / "program.bin"
    shown = invoke("disassemble", module_file)
    assert shown.exit_code == 0, shown.output
    text.write_text(shown.stdout)
    done = invoke("assemble", text, "--config", "tiny", "-o", code)
    assert done.exit_code == 0, done.output
    details, dram = Module.load(module_file).details, Module.load(module_file).sections["dram"]
    start = details["program_address"]
    assert code.read_bytes() == dram[start : start + details["program_bytes"]]
    assert invoke("disassemble", code).stdout == shown.stdout
    again = tmp_path / "again.s"
    assert invoke("disassemble", code, "-o", again).exit_code == 0
    assert again.read_text() == shown.stdout


def test_a_hand_written_program_is_assembled(tmp_path: Path) -> None:
    text, code = tmp_path / "program.s", tmp_path / "program.bin"
    text.write_text(PROGRAM)
    assert invoke("assemble", text, "--config", "tiny", "-o", code).exit_code == 0
    assert len(code.read_bytes()) == 2 * 64
    assert len(assemble(PROGRAM, find_config("tiny"))) == 2


@pytest.mark.parametrize("device", ["sim", "rtl"])
def test_a_program_runs_by_itself(tmp_path: Path, device: str) -> None:
    program, memory = tmp_path / "program.s", tmp_path / "memory.npy"
    program.write_text(PROGRAM)
    before = np.arange(150).astype(np.uint8)
    np.save(memory, before)
    options = ("--config", "tiny", "--device", device, "--output-dir", tmp_path / "out", "--json")
    done = invoke("run", program, *options, "--input", f"dram={memory}")
    assert done.exit_code == 0, done.output
    after = np.load(json.loads(done.stdout)["outputs"]["dram"])
    np.testing.assert_array_equal(after[64:112], before[:48])
    np.testing.assert_array_equal(
        np.delete(after, range(64, 112)), np.delete(before, range(64, 112))
    )


@pytest.mark.parametrize("device", ["sim", "rtl"])
@pytest.mark.parametrize(
    ("program", "message"),
    [
        (bytes([0xFF]) * 64, "stopped with ILLEGAL_INSTRUCTION at instruction 0 of 1"),
        ("load memory=act sram_address=0 dram_address=0x4000", "WINDOW at instruction 0 of 1"),
        (f"{PROGRAM}store sram_address=0 dram_address=4096", "WINDOW at instruction 2 of 3"),
        ("store sram_address=0 dram_address=0 wait=gemm", "WATCHDOG at instruction 0 of 1"),
    ],
)
def test_a_stopped_program_gives_code_and_index(
    tmp_path: Path, device: str, program: str | bytes, message: str
) -> None:
    path = tmp_path / ("program.s" if isinstance(program, str) else "program.bin")
    path.write_bytes(program.encode() if isinstance(program, str) else program)
    np.save(tmp_path / "memory.npy", np.zeros(256, np.uint8))
    options = ("--config", "tiny", "--device", device, "--output-dir", tmp_path / "out")
    refused(invoke("run", path, *options, "--input", f"dram={tmp_path / 'memory.npy'}"), message)
    assert not (tmp_path / "out").exists()


def test_a_program_needs_its_memory(tmp_path: Path) -> None:
    path = tmp_path / "program.s"
    path.write_text(PROGRAM)
    np.save(tmp_path / "memory.npy", np.zeros((2, 64), np.uint8))
    pair = f"dram={tmp_path / 'memory.npy'}"
    refused(invoke("run", path, "--config", "tiny"), "a program needs one, 'dram'")
    refused(invoke("run", path, "--config", "tiny", "--input", pair), "required uint8[N]")
    refused(invoke("run", path, "--config", "huge", "--input", pair), "no configuration is called")
    empty = tmp_path / "empty.bin"
    empty.write_bytes(b"")
    np.save(tmp_path / "memory.npy", np.zeros(64, np.uint8))
    refused(invoke("run", empty, "--config", "tiny", "--input", pair), "a program of 0 bytes")


def test_verilog_is_written(tmp_path: Path) -> None:
    path = tmp_path / "tiny.v"
    done = invoke("verilog", "--config", "tiny", "-o", path)
    assert done.exit_code == 0, done.output
    assert "module dovetail_tiny(" in path.read_text()


def float_model(path: Path, kind: str = "Relu") -> Path:
    """One operator on float32."""
    graph = helper.make_graph(
        [helper.make_node(kind, ["x"], ["y"], name="first")],
        "float",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4])],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), path)
    return path


def test_compile_refuses_what_it_cannot_compile(digits_model: Path, tmp_path: Path) -> None:
    given, out = tmp_path / "given", tmp_path / "out"
    given.mkdir()
    out.mkdir()
    noise, folder = given / "noise.onnx", given / "folder.onnx"
    noise.write_bytes(bytes(range(256)))
    folder.mkdir()
    truncated = given / "truncated.onnx"
    truncated.write_bytes(digits_model.read_bytes()[:-5000])
    for model, target, message in (
        (given / "absent.onnx", "vta", "no model file"),
        (noise, "vta", "is not an ONNX model"),
        (folder, "vta", "is not an ONNX model"),
        (truncated, "vta", "is not an ONNX model"),
        (float_model(given / "float.onnx"), "vta", "is not quantised"),
        (float_model(given / "erf.onnx", "Erf"), "vta", "operator Erf is not supported"),
        (digits_model, "gpu", "no target is called 'gpu'"),
        (digits_model, "vta:huge", "no configuration is called 'huge'"),
    ):
        refused(invoke("compile", model, "--target", target, "-o", out / "m.dvt"), message)
        assert list(out.iterdir()) == []


def test_run_refuses_wrong_inputs(module_file: Path, tmp_path: Path, image: Path) -> None:
    right = np.load(image)
    files = {
        "shape": right[0],
        "batch": np.concatenate([right, right]),
        "dtype": right.astype(np.float64),
        "nan": np.full_like(right, np.nan),
    }
    for name, array in files.items():
        np.save(tmp_path / f"{name}.npy", array)
    (tmp_path / "cut.npy").write_bytes(image.read_bytes()[:-4])
    (tmp_path / "header.npy").write_bytes(image.read_bytes()[:9])
    (tmp_path / "quote.npy").write_bytes(image.read_bytes().replace(b"'<f4'", b"'<f4,"))
    (tmp_path / "zip.npy").write_bytes(b"PK\x03\x04 and no archive")
    np.save(tmp_path / "objects.npy", np.array([{}], object), allow_pickle=True)
    for name, message in (
        ("shape", "float32[1, 8, 8]; required float32[1, 1, 8, 8]"),
        ("batch", "float32[2, 1, 8, 8]; required float32[1, 1, 8, 8]"),
        ("dtype", "float64[1, 1, 8, 8]; required float32[1, 1, 8, 8]"),
        ("nan", "64 of 64 values are NaN"),
        ("cut", "as .npy"),
        ("header", "as .npy"),
        ("quote", "as .npy"),
        ("zip", "as .npy"),
        ("objects", "as .npy"),
        ("absent", "No such file"),
    ):
        folder = tmp_path / "out"
        pair = f"image={tmp_path / name}.npy"
        refused(invoke("run", module_file, "--input", pair, "--output-dir", folder), message)
        assert not folder.exists()
    refused(invoke("run", module_file), "input 'image' is missing")
    refused(invoke("run", module_file, "--input", f"picture={image}"), "no input 'picture'")
    refused(invoke("run", module_file, "--input", str(image)), "required NAME=FILE.npy", 2)
    pair = f"image={image}"
    refused(invoke("run", module_file, "--input", pair, "--input", pair), "given twice", 2)


def test_run_refuses_wrong_modules_and_devices(
    module_file: Path, tmp_path: Path, image: Path
) -> None:
    data = module_file.read_bytes()
    flipped = bytearray(data)
    flipped[len(data) // 2] ^= 8
    files = {"cut": data[:-100], "flipped": bytes(flipped), "empty": b"", "noise": b"noise" * 99}
    for name, content in files.items():
        (tmp_path / f"{name}.dvt").write_bytes(content)
    for name, message in (
        ("cut", "is damaged"),
        ("flipped", "is damaged"),
        ("empty", "is not a dovetail module"),
        ("noise", "is not a dovetail module"),
        ("absent", "No such file"),
    ):
        refused(invoke("run", tmp_path / f"{name}.dvt", "--input", f"image={image}"), message)
        refused(invoke("profile", tmp_path / f"{name}.dvt"), message)
        refused(invoke("disassemble", tmp_path / f"{name}.dvt"), message)
    beside = invoke("run", module_file, "--records", "shipped", "--input", f"image={image}")
    refused(beside, "required a MODEL.onnx")
    for device, message in (
        ("gpu", "no device is called 'gpu'"),
        ("cpu", "compiled for 'vta:tiny' cannot run on 'cpu'"),
        ("sim:zynq7020", "compiled for 'vta:tiny' cannot run on 'sim:zynq7020'"),
    ):
        arguments = ("--device", device, "--input", f"image={image}", "--output-dir", tmp_path)
        refused(invoke("run", module_file, *arguments), message)
    assert not (tmp_path / "logits.npy").exists()


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("jump somewhere", "line 1"),
        ("\nload memory=act sram_address=0 dram_address=0 count_x=70000", "line 2"),
        ("load memory=act sram_address=0 dram_address=1", "dram_address"),
        ("load memory=act sram_address=0 dram_address=0 count_x=4 count_y=2", "one address"),
        ("load memory=act sram_address=0 speed=9", "speed"),
    ],
)
def test_assemble_refuses_wrong_programs(tmp_path: Path, program: str, message: str) -> None:
    path, out = tmp_path / "program.s", tmp_path / "program.bin"
    path.write_text(program)
    refused(invoke("assemble", path, "--config", "tiny", "-o", out), message)
    assert not out.exists()


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
    refused(invoke("verilog", "--config", "tiny", "-o", away), "does not exist", 2)
    refused(invoke("compile", module_file, "-o", away), "does not exist", 2)
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
