"""The command ``dovetail quantize``."""

import json
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner, Result
from networks import Options, build, calibration_images
from onnx import helper

from dovetail.compiler.__main__ import main
from tests.compiler.cli.commands import refused
from tests.runtime.generate.exported import exported_model

from .floats import random, small_model

SIZE = 32


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A float network, and images."""
    path = tmp_path_factory.mktemp("quantize")
    onnx.save(build("mobilenet_v1", Options(SIZE, 10, 0.25)), path / "float.onnx")
    np.savez(path / "images.npz", image=calibration_images(4, SIZE))
    return path


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_what_it_writes_compiles(folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "int8.onnx"
    arguments = ("quantize", folder / "float.onnx", "-o", output, "--data", folder / "images.npz")
    done = invoke(*arguments, "--method", "entropy", "--samples", 3, "--json")
    assert done.exit_code == 0, done.output
    figures = json.loads(done.stdout)
    assert figures["method"] == "entropy"
    assert figures["samples"] == 3
    assert figures["integer"]["Conv"] == 27
    assert figures["float"] == {}
    assert figures["bytes"] == output.stat().st_size
    module = tmp_path / "module.dvt"
    assert invoke("compile", output, "--target", "vta:tiny", "-o", module).exit_code == 0
    again = tmp_path / "again.onnx"
    arguments = (*arguments[:3], again, *arguments[4:])
    assert invoke(*arguments, "--method", "entropy", "--samples", 3).stdout == ""
    assert again.read_bytes() == output.read_bytes()


def test_options_change_the_model(folder: Path, tmp_path: Path) -> None:
    written = {}
    for name, options in {
        "plain": (),
        "unsigned": ("--unsigned",),
        "per tensor": ("--per-tensor",),
        "percentile": ("--method", "percentile", "--percentile", "99"),
        "equalized": ("--correct", "equalize"),
        "biases": ("--correct", "bias"),
        "rounded": ("--correct", "rounding"),
        "corrected": ("--correct", "all", "--correct-samples", "3"),
    }.items():
        output = tmp_path / "out.onnx"
        data = ("--data", folder / "images.npz")
        done = invoke("quantize", folder / "float.onnx", "-o", output, *data, *options)
        assert done.exit_code == 0, done.output
        written[name] = output.read_bytes()
    assert len(set(written.values())) == 8


def test_the_comparison_is_shown_and_in_the_object(folder: Path, tmp_path: Path) -> None:
    arguments = ("quantize", folder / "float.onnx", "-o", tmp_path / "out.onnx", "--compare")
    done = invoke(*arguments, "--data", folder / "images.npz", "--samples", 2, "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)["comparison"]
    assert found["samples"] == 2
    assert list(found["outputs"]) == ["dense1"]
    assert 0 < found["outputs"]["dense1"] < 0.3
    assert "largest output the same" in done.stderr
    assert "dense1" in done.stderr


def test_operators_that_stay_float_are_named(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("Exp", ["c"], ["y"], name="growth"),
    ]
    onnx.save(small_model(nodes, [1, 2, 5, 5], {"w": random((3, 2, 3, 3))}), tmp_path / "m.onnx")
    np.save(tmp_path / "data.npy", random((2, 2, 5, 5)))
    arguments = ("-o", tmp_path / "out.onnx", "--data", tmp_path / "data.npy")
    done = invoke("quantize", tmp_path / "m.onnx", *arguments)
    assert done.exit_code == 0, done.output
    assert "node 'growth' (Exp) stays float: there is no integer operator for it" in done.stderr


def test_mistakes_are_one_message(folder: Path, tmp_path: Path) -> None:
    model, output = folder / "float.onnx", tmp_path / "out.onnx"
    data = ("--data", folder / "images.npz")
    for arguments, message in (
        ((model, "-o", output, "--data", tmp_path / "none.npz"), "no calibration data"),
        ((folder / "none.onnx", "-o", output, *data), "no model file"),
        ((folder / "images.npz", "-o", output, *data), "not an ONNX model"),
        ((model, "-o", tmp_path / "no" / "out.onnx", *data), "does not exist"),
        ((model, "-o", output, *data, "--percentile", 20), "required above 50"),
        ((model, "-o", output), "--data"),
    ):
        done = invoke("quantize", *arguments)
        assert done.exit_code in (1, 2), done.output
        assert isinstance(done.exception, SystemExit), "a traceback"
        assert message in " ".join(done.stderr.split())
        assert not output.exists()


def test_accuracy_on_labelled_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("PIL", reason="no Pillow")
    from PIL import Image

    for place in range(6):
        shown = np.zeros((4, 4, 3), np.uint8)
        shown[..., place % 3] = 100 + 20 * place
        folder = tmp_path / "data" / ("red", "green", "blue")[place % 3]
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(shown).save(folder / f"{place}.png")
    (tmp_path / "classes.txt").write_text("red\ngreen\nblue\n")
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"], name="conv")]
    weights = np.eye(3, dtype=np.float32).reshape(3, 3, 1, 1).repeat(4, 2).repeat(4, 3)
    onnx.save(small_model(nodes, [1, 3, 4, 4], {"w": weights}), tmp_path / "m.onnx")
    (tmp_path / "own.py").write_text("def share(outputs, labels):\n    return 0.5\n")
    arguments = ("quantize", tmp_path / "m.onnx", "-o", tmp_path / "out.onnx", "--json")
    data = ("--data", tmp_path / "data", "--classes", tmp_path / "classes.txt")
    done = invoke(*arguments, *data, "--losses", "--target", "vta:tiny", "--max-drop", "1%")
    assert done.exit_code == 0, done.output
    figures = json.loads(done.stdout)
    assert figures["accuracy"]["float"] == figures["accuracy"]["int8"] == {"top-1": 1.0}
    assert {each["name"] for each in figures["losses"]} == {"x", "conv", "y"}
    assert figures["cost"]["cycles"] > 0
    assert figures["cost"]["cpu"] == 0
    counted = invoke(*arguments, *data[:2])
    assert "classes counted in the order of their names: blue is 0, green is 1" in counted.stderr
    assert json.loads(counted.stdout)["accuracy"]["float"] == {"top-1": pytest.approx(1 / 3)}
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "PIL", None)
        refused = invoke(*arguments, *data)
        assert "this command needs PIL, which is not installed" in refused.stderr
    for metric, message in (("math:nothing", "no such function"), ("nothing", "No module")):
        refused = invoke(*arguments, *data, "--metric", metric)
        assert message in refused.stderr
    monkeypatch.chdir(tmp_path)
    done = invoke(*arguments, *data, "--metric", "own:share")
    assert json.loads(done.stdout)["accuracy"]["int8"] == {"share": 0.5}


def test_a_decoder_reads_a_text(tmp_path: Path) -> None:
    """From its file in float to one that generates a text, on the accelerator too."""
    onnx.save(exported_model(), tmp_path / "decoder.onnx")
    (tmp_path / "text.txt").write_text("Once upon a time there was a decoder.")
    given = ("--data", tmp_path / "text.txt", "-o", tmp_path / "int8.onnx", "--json")
    done = invoke("quantize", tmp_path / "decoder.onnx", *given)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["samples"] == 38
    told = ("generate", tmp_path / "int8.onnx", "--target", "cpu", "--steps", 2, "--json")
    done = invoke(*told, "--prompt", "Once upon a time there", "--blocks", 17)
    assert json.loads(done.stdout)["block_tokens"] == 22
    refused(
        invoke("quantize", tmp_path / "decoder.onnx", *given, "--mask", "input_ids"),
        "text.txt: input attention_mask: int64[1, 49] has no other role",
    )
