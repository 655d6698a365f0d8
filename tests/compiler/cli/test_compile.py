"""The command ``dovetail compile``."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from dovetail.compiler.cli.compile import FOLLOWING
from dovetail.compiler.cli.output import human
from tests.end_to_end.models import Network
from tests.operators.cases import CASES
from tests.operators.model import quantised

from .commands import invoke, refused


@pytest.mark.parametrize("target", ["vta:tiny", "cpu", "opencl"])
def test_two_processes_compile_to_the_same_bytes(
    small_model: Path, tmp_path: Path, target: str
) -> None:
    files = []
    for seed in ("1", "2"):
        path = tmp_path / f"{seed}.dvt"
        command = [sys.executable, "-m", "dovetail.compiler", "compile", small_model]
        command += ["--target", target, "-o", path]
        environment = dict(os.environ, PYTHONHASHSEED=seed)
        subprocess.run(command, env=environment, capture_output=True, check=True)
        files.append(path.read_bytes())
    assert files[0] == files[1]
    assert str(small_model.parent).encode() not in files[0]


def test_a_module_of_kernels_is_described(digits_model: Path, tmp_path: Path) -> None:
    output = tmp_path / "digits.dvt"
    arguments = ("compile", digits_model, "--target", "opencl", "-o", output)
    figures = json.loads(invoke(*arguments, "--json").stdout)
    assert figures["target"] == "opencl"
    assert figures["launches"] >= figures["kernels"] > 5
    assert figures["bytes"] == output.stat().st_size
    assert f"opencl, {figures['kernels']} kernels" in " ".join(invoke(*arguments).stderr.split())


def test_nodes_on_the_cpu_are_told_with_the_reasons_of_their_own(tmp_path: Path) -> None:
    (case,) = (each for each in CASES if each.title == "Max of two tensors")
    onnx.save(quantised(case)[0], tmp_path / "model.onnx")
    arguments = ("compile", tmp_path / "model.onnx", "--target", "vta:tiny", "-o", tmp_path / "m")
    beside = [
        each
        for each in json.loads(invoke(*arguments, "--json").stdout)["placement"]
        if each["where"] == "cpu"
    ]
    told = [each for each in beside if not each["reason"].startswith(FOLLOWING)]
    said = invoke(*arguments).stderr
    assert 0 < len(told) < len(beside)
    assert all(each["node"] in said for each in told)
    assert FOLLOWING[0] not in said
    assert f"{len(beside) - len(told)} more nodes there, or on the host" in said
    assert "images a second, parts of the CPU not counted" in said


def test_a_terminal_shows_where_the_compilation_is(
    small_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str] = []
    said = human.capture()
    for target, wanted in (
        ("vta:tiny", ["import", "fuse", "plan, layer '", "operations, layer '", "check"]),
        ("cpu", ["import", "lower, node '", "llvm"]),
    ):
        arguments = ("compile", small_model, "--target", target, "-o", tmp_path / "small.dvt")
        with monkeypatch.context() as patch, said:
            patch.setattr(
                "rich.progress.Progress.update", lambda *_, description: shown.append(description)
            )
            invoke(*arguments)
            assert not shown
            patch.setattr(human, "_force_terminal", True)
            invoke(*arguments)
        where = [each.removeprefix(f"compiling {small_model.name}: ") for each in shown]
        places = [next(n for n, each in enumerate(where) if each.startswith(it)) for it in wanted]
        assert places == sorted(places)
        shown.clear()


def test_a_batch_tells_the_throughput(tmp_path: Path) -> None:
    net = Network(np.random.default_rng(1))
    onnx.save(net.model(net.dense(net.input(4, 1, 1), 3)), tmp_path / "dense.onnx")
    arguments = ("compile", tmp_path / "dense.onnx", "--target", "vta:tiny", "--batch", 2)
    figures = json.loads(invoke(*arguments, "-o", tmp_path / "dense.dvt", "--json").stdout)
    assert figures["images"] == 2
    assert figures["cycles_per_image"] == figures["expected_cycles"] / 2
    assert figures["images_per_second"] > 0


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
        (float_model(given / "erf.onnx", "Erf"), "vta", "(Erf): its input 'x' is not quantised"),
        (digits_model, "gpu", "no target is called 'gpu'"),
        (digits_model, "mine.toml", "did you mean vta:mine.toml?"),
        (digits_model, "vta:huge", "no configuration is called 'huge'"),
    ):
        refused(invoke("compile", model, "--target", target, "-o", out / "m.dvt"), message)
        assert list(out.iterdir()) == []


@pytest.mark.parametrize(
    ("target", "option", "message"),
    [
        ("cpu", "--plans x.json", "--plans is for --target vta, not cpu"),
        ("opencl", "--effort 2", "--effort is for --target vta, not opencl"),
        ("vta:tiny", "--gpu a", "--gpu is for --target opencl, cuda or webgpu, not vta:tiny"),
        ("cpu", "--gpu a", "--gpu is for --target opencl, cuda or webgpu, not cpu"),
        ("webgpu", "--threads 2", "--threads is for --target cpu or vta, not webgpu"),
        ("cuda:sm_80", "--cpu-level avx2", "--cpu-level is for --target cpu or vta, not cuda"),
        ("vta:tiny", "--cpu-level avx2", "--cpu-level is for code on the CPU, and all of the"),
        ("vta:tiny", "--most-work 9", "--most-work is for code on the CPU, and all of the model"),
        ("vta:tiny", "--no-winograd", "--no-winograd is for code on the CPU, and all of the"),
    ],
)
def test_an_option_that_would_change_nothing_is_refused(
    target: str, option: str, message: str, one_layer_model: Path, tmp_path: Path
) -> None:
    output = tmp_path / "x.dvt"
    given = "compile", one_layer_model, "--target", target, *option.split(), "-o", output
    refused(invoke(*given), message, code=2)
    assert not output.exists()


def test_options_for_the_cpu_are_for_what_an_accelerator_leaves(
    one_layer_model: Path, tmp_path: Path
) -> None:
    model = onnx.load(one_layer_model)
    (last,) = model.graph.output
    model.graph.node.append(helper.make_node("Cast", [last.name], ["left"], to=TensorProto.FLOAT))
    last.name, last.type.tensor_type.elem_type = "left", TensorProto.FLOAT
    onnx.save(model, tmp_path / "m.onnx")
    output = tmp_path / "x.dvt"
    given = "--target", "vta:tiny", "--cpu-level", "avx2", "--json", "-o", output
    result = invoke("compile", tmp_path / "m.onnx", *given)
    assert json.loads(result.stdout)["parts"] == ["vta:tiny", "cpu"]
