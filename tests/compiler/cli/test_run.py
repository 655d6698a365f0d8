"""The command ``dovetail run``: modules, and programs by themselves."""

import json
import re
from pathlib import Path

import numpy as np
import onnx
import pytest

from .commands import PROGRAM, invoke, refused


def test_the_cpu_gives_the_same_bytes(digits_model: Path, tmp_path: Path, image: Path) -> None:
    outputs = []
    for target, device in (("cpu", "cpu"), ("vta:tiny", "sim")):
        path, folder = tmp_path / f"{device}.dvt", tmp_path / device
        assert invoke("compile", digits_model, "--target", target, "-o", path).exit_code == 0
        arguments = ("--device", device, "--input", f"image={image}", "--output-dir", folder)
        done = invoke("run", path, *arguments)
        assert done.exit_code == 0
        assert str(folder / "logits.npy") in "".join(done.stderr.split())
        assert bool(re.search(r"utilization .* \d\d\.\d% ", done.stderr)) is (device == "sim")
        outputs.append((folder / "logits.npy").read_bytes())
    assert outputs[0] == outputs[1]


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


STOPPED = [
    (bytes([0xFF]) * 64, "stopped with ILLEGAL_INSTRUCTION at instruction 0 of 1"),
    ("load memory=act sram_address=0 dram_address=0x4000", "WINDOW at instruction 0 of 1"),
    (f"{PROGRAM}store sram_address=0 dram_address=4096", "WINDOW at instruction 2 of 3"),
]
ENDLESS = ("store sram_address=0 dram_address=0 wait=gemm", "WATCHDOG at instruction 0 of 1")


@pytest.mark.parametrize(
    ("device", "program", "message"),
    [(device, *case) for device in ("sim", "rtl") for case in STOPPED] + [("sim", *ENDLESS)],
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
    with (tmp_path / "zip.npy").open("wb") as archive:
        np.savez(archive, image=right)
    (tmp_path / "folder.npy").mkdir()
    np.save(tmp_path / "objects.npy", np.array([{}], object), allow_pickle=True)
    for name, message in (
        ("shape", "float32[1, 8, 8]; required float32[1, 1, 8, 8]"),
        ("batch", "float32[2, 1, 8, 8]; required float32[1, 1, 8, 8]"),
        ("dtype", "float64[1, 1, 8, 8]; required float32[1, 1, 8, 8]"),
        ("nan", "input 'image': 64 of 64 values are NaN"),
        ("cut", "as .npy"),
        ("header", "as .npy"),
        ("quote", "as .npy"),
        ("zip", "as .npy: it is an archive of arrays (.npz); required one array"),
        ("folder", "as .npy: Is a directory"),
        ("objects", "as .npy"),
        ("absent", "No such file"),
    ):
        folder = tmp_path / "out"
        pair = f"image={tmp_path / name}.npy"
        refused(invoke("run", module_file, "--input", pair, "--output-dir", folder), message)
        assert not folder.exists()
    refused(invoke("run", module_file), "float32[1, 1, 8, 8]: --input image=FILE.npy")
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
    refused(beside, "required a model")
    for device, message in (
        ("gpu", "no device is called 'gpu'"),
        ("cpu", "compiled for 'vta:tiny' cannot run on 'cpu'"),
        ("sim:zynq7020", "compiled for 'vta:tiny' cannot run on 'sim:zynq7020'"),
    ):
        arguments = ("--device", device, "--input", f"image={image}", "--output-dir", tmp_path)
        refused(invoke("run", module_file, *arguments), message)
    assert not (tmp_path / "logits.npy").exists()


def test_open_sizes_of_a_model_are_given(one_layer_model: Path, tmp_path: Path) -> None:
    model = onnx.load(one_layer_model)
    (given,) = model.graph.input
    shape = [each.dim_value for each in given.type.tensor_type.shape.dim]
    given.type.tensor_type.shape.dim[2].dim_param = "rows"
    onnx.save(model, tmp_path / "open.onnx")
    size = f"rows={shape[2]}"
    np.save(tmp_path / "x.npy", np.zeros(shape, np.int8))
    arguments = ("--input", f"{given.name}={tmp_path / 'x.npy'}", "--output-dir", tmp_path)
    refused(invoke("run", tmp_path / "open.onnx", *arguments), "--dim rows=SIZE")
    for command in (("run", *arguments), ("profile", *arguments[:2])):
        done = invoke(command[0], tmp_path / "open.onnx", *command[1:], "--dim", size, "--json")
        assert json.loads(done.stdout)["cycles"] > 0
