"""Tuning kernels for a GPU: measured by a worker on an OpenCL device, recorded by its name."""

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from dovetail.compiler import compile
from dovetail.compiler.errors import ScheduleError
from dovetail.compiler.front.stored import StoredModel
from dovetail.compiler.options import CompileOptions
from dovetail.compiler.schedule.record_files import read_entries, write_entries
from dovetail.compiler.schedule.records import StaleRecordWarning
from dovetail.compiler.targets.gpu.target import find_opencl
from dovetail.compiler.tune.gpu_kernel import GpuKernelJob, GpuKernelProblem
from dovetail.compiler.tune.gpu_subject import GpuSubject, gpu_subject
from dovetail.compiler.tune.problem import Candidate, Measured
from dovetail.compiler.tune.tuning import RECORDS, Options, tune
from dovetail.runtime.device import Device
from dovetail.runtime.devices import open_device
from dovetail.runtime.errors import DeviceError
from dovetail.runtime.gpu.part import GpuPart
from dovetail.runtime.session import Session

ROWS, COLUMNS, DEPTH = 32, 32, 16


@pytest.fixture(scope="module")
def opencl() -> Device:
    cl = pytest.importorskip("pyopencl", reason="pyopencl is not installed")
    try:
        cl.get_platforms()
    except cl.LogicError:
        pytest.skip("no OpenCL runtime: pip install pocl-binary-distribution")
    return open_device("opencl")


@pytest.fixture(scope="module")
def model() -> onnx.ModelProto:
    """A dense layer."""
    weights = np.random.default_rng(0).standard_normal((DEPTH, COLUMNS)).astype(np.float32)
    values = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (("x", [ROWS, DEPTH]), ("y", [ROWS, COLUMNS]))
    ]
    node = helper.make_node("MatMul", ["x", "w"], ["y"], name="dense")
    initializers = [numpy_helper.from_array(weights, "w")]
    graph = helper.make_graph([node], "g", values[:1], values[1:], initializers)
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


@pytest.fixture(scope="module")
def subject(model: onnx.ModelProto, opencl: Device) -> GpuSubject:
    stored = StoredModel(".onnx", model.SerializeToString())
    return gpu_subject(stored, {}, find_opencl(""), "opencl")


def source(module: Any) -> bytes:
    (part,) = module.parts
    assert isinstance(part, GpuPart)
    return bytes(part.source)


def entries_of(subject: GpuSubject, **changes: int) -> list[Mapping[str, Any]]:
    """A record of the default with other choices."""
    (problem,) = subject.problems()
    choice = {**problem.default().record, **changes}
    accepted = {problem.key: (Candidate.of(choice), 0.5)}
    return [each for group in subject.entries(accepted, {problem.key: 1e-5}) for each in group]


def test_a_dense_layer_is_tuned_by_a_worker_and_its_record_compiled(
    subject: GpuSubject,
    model: onnx.ModelProto,
    opencl: Device,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dovetail.compiler.tune.tuning.BATCH", 1)
    monkeypatch.setattr("dovetail.compiler.tune.search.POOL", 2)
    found = tune(subject, tmp_path, Options(seconds=None, trials=1, seed=1))
    assert found.progress.trials >= 1
    assert found.progress.failed == 0
    assert 0 < found.progress.best <= found.progress.start
    assert subject.hardware in subject.setting
    recorded = read_entries(tmp_path / RECORDS)
    assert len(recorded) == len(found.entries)
    # Whatever the measurements said, a record of another tile changes the kernel, not the result.
    write_entries(tmp_path / "other.json", entries_of(subject, side=16, items=2))
    options = CompileOptions(records=(tmp_path / "other.json",))
    tuned, default = compile(model, "opencl", options), compile(model, "opencl")
    assert source(tuned) != source(default)
    x = np.random.default_rng(1).standard_normal((ROWS, DEPTH)).astype(np.float32)
    want = x @ numpy_helper.to_array(model.graph.initializer[0])
    np.testing.assert_allclose(Session(tuned, opencl).run(None, x)[0], want, rtol=1e-4, atol=1e-4)


def test_records_hold_for_one_device(
    subject: GpuSubject, model: onnx.ModelProto, tmp_path: Path
) -> None:
    own = entries_of(subject, side=16)
    other = [{**each, "device": "Some Other GPU"} for each in entries_of(subject, items=2)]
    write_entries(tmp_path / "both.json", [*own, *other])
    with pytest.raises(ScheduleError, match=r"records for opencl of the devices .*required one"):
        compile(model, "opencl", CompileOptions(records=(tmp_path / "both.json",)))
    sources = {
        name: source(
            compile(model, "opencl", CompileOptions(records=(tmp_path / "both.json",), gpu=name))
        )
        for name in ("some other", "a third")
    }
    assert sources["some other"] != sources["a third"]
    assert sources["a third"] == source(compile(model, "opencl"))
    write_entries(tmp_path / "cuda.json", [{**each, "target": "cuda"} for each in own])
    options = CompileOptions(records=(tmp_path / "cuda.json",))
    assert source(compile(model, "opencl", options)) == sources["a third"]


def test_a_record_of_other_loops_is_not_used(
    subject: GpuSubject, model: onnx.ModelProto, tmp_path: Path
) -> None:
    (entry,) = entries_of(subject, side=16)
    steps = [{**entry["steps"][0], "loop": "no.such"}, *entry["steps"][1:]]
    write_entries(tmp_path / "stale.json", [{**entry, "steps": steps}])
    with pytest.warns(StaleRecordWarning, match="'dense' is of another version"):
        found = compile(model, "opencl", CompileOptions(records=(tmp_path / "stale.json",)))
    assert source(found) == source(compile(model, "opencl"))


def test_candidates_are_legal_and_wrong_results_are_refused(
    subject: GpuSubject, monkeypatch: pytest.MonkeyPatch
) -> None:
    (problem,) = subject.problems()
    rng, legal = random.Random(0), set()
    one = problem.default()
    for _ in range(8):
        one = problem.mutate(one, rng)
        if problem.features(one) is not None:
            legal.add(problem.program(one))
    assert len(legal) > 1
    job = problem.job(problem.default())
    assert isinstance(job, GpuKernelJob)
    measured = job.run()
    assert measured.cost
    monkeypatch.setattr("dovetail.compiler.tune.gpu_kernel._Bench._wrong", lambda *_: "wrong")
    assert job.run() == Measured(None, error="wrong")


def test_a_device_that_there_is_not_is_named(model: onnx.ModelProto, opencl: Device) -> None:
    stored = StoredModel(".onnx", model.SerializeToString())
    with pytest.raises(DeviceError, match="no OpenCL device is called 'none such'"):
        gpu_subject(stored, {}, find_opencl(""), "opencl:none such")


def test_a_problem_says_what_it_is(subject: GpuSubject) -> None:
    (problem,) = subject.problems()
    assert isinstance(problem, GpuKernelProblem)
    assert problem.title.startswith("Contract float32[32, 16]")
