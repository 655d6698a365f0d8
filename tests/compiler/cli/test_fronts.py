"""Every command that takes a model takes one of each front end."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.compiler.front.torch.mutate import FILES

from .commands import invoke, refused

pytest.importorskip("tflite", reason="tflite, which reads the files, is not installed")

from tests.compiler.front.tflite.build import Op, Tensor, write

PROGRAM = next(path for path in FILES if path.stem == "quantised")
FLOAT = next(path for path in FILES if path.stem == "counter")
QUICK = ("--rounds", "1", "--runs", "1")


def layer(folder: Path, dtype: str) -> Path:
    """A convolution, 1x1, of int8 or float32."""
    rng = np.random.default_rng(9)
    whole = dtype == "int8"
    weights = rng.integers(-127, 128, (8, 1, 1, 4)).astype(dtype)
    bias = rng.integers(-99, 99, 8).astype("int32" if whole else dtype)
    scales = {name: ((scale,), (0,)) if whole else ((), ()) for name, scale in
              (("x", 0.05), ("w", 0.02), ("b", 0.001), ("y", 0.3))}  # fmt: skip
    tensors = [
        Tensor("x", (1, 6, 6, 4), dtype, None, *scales["x"]),
        Tensor("w", weights.shape, dtype, weights, *scales["w"]),
        Tensor("b", bias.shape, str(bias.dtype), bias, *scales["b"]),
        Tensor("y", (1, 6, 6, 8), dtype, None, *scales["y"]),
    ]
    options = {"StrideH": 1, "StrideW": 1, "DilationHFactor": 1, "DilationWFactor": 1}
    op = Op("CONV_2D", (0, 1, 2), (3,), "Conv2DOptions", options)
    path = folder / f"{dtype}.tflite"
    path.write_bytes(write(tensors, [op], [0], [3]))
    return path


@pytest.mark.parametrize("front", ["tflite", "torch"])
def test_an_integer_model_goes_through_all_commands_of_the_accelerator(
    front: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = layer(tmp_path, "int8") if front == "tflite" else PROGRAM
    monkeypatch.chdir(tmp_path)
    (tmp_path / "space.toml").write_text('[base]\nconfig = "tiny"\n[hardware]\nblock = [4]\n')
    target = ("--target", "vta:tiny")
    searches = {
        "tflite": ("explore", model, "--space", "space.toml", "-o", "sweep", "--jobs", 1),
        "torch": ("tune", model, *target, "-o", "tuned", "--trials", 1, "--jobs", 1),
    }
    for arguments in (
        ("compile", model, *target, "-o", "m.dvt"),
        ("inspect", model, *target),
        ("profile", model, *target),
        ("validate", "m.dvt", model),
        ("debug", "m.dvt", "--model", model, "--check"),
        ("check", model),
        ("benchmark", model, "--devices", "sim", *target, *QUICK),
        searches[front],
    ):
        done = invoke(*arguments, "--json")
        assert done.exit_code == 0, f"{arguments}: {done.output}"
        assert json.loads(done.stdout)


def test_a_float_model_goes_through_the_commands_of_the_cpu(tmp_path: Path) -> None:
    model = layer(tmp_path, "float32")
    for arguments in (
        ("check", model),
        ("profile", model, "--target", "cpu"),
        ("benchmark", model, "--devices", "cpu,ort", *QUICK),
        ("benchmark", FLOAT, "--devices", "ort", *QUICK),
        ("tune", model, "--target", "cpu", "-o", tmp_path / "t", "--trials", 1, "--jobs", 1),
    ):
        done = invoke(*arguments, "--json")
        assert done.exit_code == 0, f"{arguments}: {done.output}"
        if "cpu,ort" in arguments:
            ours, theirs = json.loads(done.stdout)["results"]
            assert ours["error"] < 1e-5
            assert theirs["device"] == "ort"


def test_what_onnx_cannot_say_is_left_out_by_name(tmp_path: Path) -> None:
    done = invoke("benchmark", layer(tmp_path, "int8"), "--devices", "ort", *QUICK)
    refused(done, "'ort' runs ONNX, and int8.tflite cannot be written as such; leave it out of")


def test_an_open_first_dimension_is_one_image_in_what_is_converted(tmp_path: Path) -> None:
    done = invoke("convert", FLOAT, "-o", tmp_path / "one.onnx", "--json")
    assert json.loads(done.stdout)["opset"] >= 21
    sizes = [
        [size.dim_value for size in each.type.tensor_type.shape.dim]
        for each in onnx.load(tmp_path / "one.onnx").graph.input
    ]
    assert sizes[0][0] == 1
    assert 0 not in sizes[0]
