"""Benchmarks of a model on several devices, against ONNX Runtime and known answers."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from dovetail.compiler import compile
from dovetail.compiler.benchmark.measure import Measured
from dovetail.compiler.benchmark.subjects import ORT, Subject
from dovetail.compiler.cli.benchmark import taking
from dovetail.runtime import run

from .commands import invoke, refused

SVG = "{http://www.w3.org/2000/svg}"
QUICK = "--rounds", 2, "--runs", 2, "--json"


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "images.npy"
    np.save(path, np.random.default_rng(3).random((4, 1, 8, 8), np.float32))
    return path


def scaled(factor: float, path: Path) -> Path:
    """A model that multiplies a row of three numbers."""
    tensors = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 3]) for name in "xy"]
    constant = numpy_helper.from_array(np.array(factor, np.float32), "factor")
    node = helper.make_node("Mul", ["x", "factor"], ["y"])
    graph = helper.make_graph([node], "scaled", tensors[:1], tensors[1:], [constant])
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)
    return path


def figures(*arguments: object) -> dict[str, Any]:
    done = invoke("benchmark", *arguments)
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_all_devices_find_the_same_and_cycles_are_the_simulators(
    digits_model: Path, images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = "dovetail.compiler.cli.benchmark.taking.build_for"
    monkeypatch.setattr(place, lambda module, device: 2.5 * (device == "sim"))
    session = onnxruntime.InferenceSession(str(digits_model))
    batch = np.load(images)
    classes = [int(session.run(None, {"image": one[None]})[0].argmax()) for one in batch]
    np.save(tmp_path / "labels.npy", [(classes[0] + 1) % 10, *classes[1:], 5])
    arguments = (
        *(digits_model, "--devices", "sim,cpu,ort", "--target", "vta:tiny", "--mhz", 50),
        *("--data", images, "--labels", tmp_path / "labels.npy", "--svg", tmp_path / "b.svg"),
    )
    found = figures(*arguments, *QUICK)
    assert (found["samples"], found["against"]) == (4, "ort")
    sim, cpu, ort = found["results"]
    assert [each["device"] for each in (sim, cpu, ort)] == ["sim", "cpu", "ort"]
    assert [each.get("target") for each in (sim, cpu, ort)] == ["vta:tiny", "cpu", None]
    for each in (sim, cpu, ort):
        assert (each["top1"], each["agreement"], each["equal"]) == (0.75, 1.0, True)
        assert len(each["milliseconds_of_rounds"]) == 2
        assert each["megabytes"] > 0
        assert each["per_second"] == pytest.approx(1e3 / each["milliseconds"])
    assert [each.get("build_seconds") for each in (sim, cpu, ort)] == [2.5, None, None]
    assert ["compile_seconds" in each for each in (sim, cpu, ort)] == [True, True, False]
    once = run(compile(digits_model, "vta:tiny"), {"image": batch[:1]})
    assert sim["cycles"] == [once.cycles] * 4
    assert sim["milliseconds"] == pytest.approx((once.cycles or 0) / 50e3)
    ratios = [a / b for a, b in _rounds(ort, sim)]
    assert ort["times_first"]["median"] == pytest.approx(np.median(ratios))
    assert ort["times_first"]["quartiles"] == pytest.approx(list(np.quantile(ratios, (0.25, 0.75))))
    picture = ElementTree.parse(tmp_path / "b.svg")
    bars = [each for each in picture.iter(f"{SVG}rect") if each.get("class") == "bar"]
    assert len(bars) == 5 * 3
    widths = [float(each.get("width", "")) for each in bars[-6:-3]]
    assert widths == [pytest.approx(0.75 * (860 - 250 - 120), abs=0.1)] * 3


def _rounds(one: dict[str, Any], other: dict[str, Any]) -> Sequence[tuple[float, float]]:
    return list(zip(one["milliseconds_of_rounds"], other["milliseconds_of_rounds"], strict=True))


@pytest.mark.parametrize("installed", [True, False])
def test_outputs_are_compared_with_a_reference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, installed: bool
) -> None:
    if not installed:
        place = "dovetail.compiler.cli.benchmark.taking.find_spec"
        monkeypatch.setattr(place, lambda name: None)
    model, reference = (scaled(f, tmp_path / f"{f}.onnx") for f in (1.5, -3))
    x = np.array([[1, 2, 3], [3, 2, 1], [2, 1, 3]], np.float32)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "labels.npy", np.array([0, 2, 2]))
    given = "--data", tmp_path / "x.npy", "--labels", tmp_path / "labels.npy"
    found = figures(model, "--devices", "cpu", "--reference", reference, *given, *QUICK)
    (cpu,) = found["results"]
    assert cpu["error"] == pytest.approx(1.5)
    assert (cpu["agreement"], cpu["equal"]) == (0.0, False)
    assert (cpu["top1"], found["reference_top1"]) == pytest.approx((1 / 3, 2 / 3))
    assert found["against"].endswith("ONNX Runtime" if installed else "this CPU")


def test_without_a_reference_outputs_are_compared_with_onnx_runtimes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = np.array([[1.0, 2.0, 4.0]], np.float32)
    found = [
        Measured(Subject("cpu", "cpu"), [2.0], outputs=[row * 0.5]),
        Measured(Subject(ORT, None), [4.0], outputs=[row]),
    ]
    monkeypatch.setattr(taking, "measure_all", lambda *given: found)
    model = scaled(2, tmp_path / "m.onnx")
    for count, said in ((2, ORT), (1, None)):
        del found[count:]
        got = figures(model, "--devices", "cpu,ort", *QUICK)
        assert got["against"] == said
        errors = [each.get("error") for each in got["results"]]
        assert errors == ([0.5, 0.0] if said else [None])


def test_dimensions_of_any_size_are_one_in_machine_code(tmp_path: Path) -> None:
    model = onnx.load(scaled(2, tmp_path / "open.onnx"))
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "batch"
    onnx.save(model, tmp_path / "open.onnx")
    np.save(tmp_path / "x.npy", np.ones((3, 3), np.float32))
    data = "--data", tmp_path / "x.npy"
    found = figures(tmp_path / "open.onnx", "--devices", "cpu,ort", *data, *QUICK)
    assert [each["equal"] for each in found["results"]] == [True, True]
    assert found["samples"] == 3
    cpu = next(each for each in found["results"] if each["device"] == "cpu")
    assert cpu["megabytes"] < 60, "no compiler is in the process that is measured"


def test_what_cannot_be_measured_is_refused(
    digits_model: Path, images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = digits_model, "--data", images
    refused(
        invoke("benchmark", *data, "--devices", "gpu"),
        "there are: sim, rtl, board, cpu, opencl, cuda, webgpu, ort",
    )
    other = scaled(1, tmp_path / "double.onnx")
    double = onnx.load(other)
    double.graph.input[0].type.tensor_type.elem_type = TensorProto.DOUBLE
    onnx.save(double, other)
    refused(invoke("benchmark", *data, "--reference", other), "takes float64; required")
    np.save(tmp_path / "few.npy", [1, 2])
    found = invoke("benchmark", *data, "--labels", tmp_path / "few.npy")
    refused(found, "few.npy are 2; required 4, one a sample")
    found = invoke("benchmark", *data, "--labels", images)
    refused(found, "are float32[4, 1, 8, 8]; required a row of whole numbers")
    refused(invoke("benchmark", *data, "--svg", tmp_path / "b.png"), "required FILE.svg", 2)
    monkeypatch.setattr("dovetail.compiler.benchmark.subjects.find_spec", lambda name: None)
    found = invoke("benchmark", *data, "--devices", "cpu,ort")
    refused(found, "install the extra: pip install 'dovetail[benchmark]'")
    (tmp_path / "m.dvt").write_bytes(b"")
    refused(invoke("benchmark", tmp_path / "m.dvt"), "it is a compiled module")
