"""The device ``cuda``, on a driver that interprets PTX."""

import ctypes
import gc
import json
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from dovetail.compiler import compile
from dovetail.compiler.front.stored import StoredModel
from dovetail.compiler.options import CompileOptions
from dovetail.compiler.schedule.record_files import write_entries
from dovetail.compiler.targets.gpu.cuda import find_cuda
from dovetail.compiler.tune import gpu_kernel, gpu_subject
from dovetail.compiler.tune.problem import Candidate
from dovetail.runtime.errors import DeviceError
from dovetail.runtime.gpu.cuda import LIBRARY, CudaDevice
from dovetail.runtime.gpu.find import FoundGpu, find_gpus
from dovetail.runtime.gpu.part import GpuPart
from dovetail.runtime.module import Module
from dovetail.runtime.session import Session
from tests.ptx.driver import FakeDriver

from ...cli.commands import invoke
from .test_precision import network


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network of a few kernels."""
    path = tmp_path_factory.mktemp("cuda") / "network.onnx"
    network(path)
    return path


@pytest.fixture(scope="module")
def compiled(model: Path) -> Module:
    return compile(model, "cuda")


def driver_of(monkeypatch: pytest.MonkeyPatch, graphs: bool = True) -> FakeDriver:
    driver, real = FakeDriver(graphs), ctypes.CDLL

    def load(name: str | None, **options: Any) -> Any:
        return driver if name == LIBRARY else real(name, **options)

    monkeypatch.setattr("ctypes.CDLL", load)
    return driver


@pytest.mark.parametrize("graphs", [True, False])
def test_a_network_is_one_launch_where_the_driver_has_graphs(
    graphs: bool, compiled: Module, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = driver_of(monkeypatch, graphs)
    device = CudaDevice("0")
    assert (device.hardware, device.architecture) == ("Interpreted GPU", "sm_90")
    session, reference = Session(compiled, device), onnxruntime.InferenceSession(str(model))
    (part,) = compiled.parts
    assert isinstance(part, GpuPart)
    assert len(part.steps) > 2
    captured = driver.log.count("cuLaunchKernel")
    assert captured == (len(part.steps) if graphs else 0)
    rng = np.random.default_rng(6)
    for _ in range(2):
        x = rng.standard_normal((1, 16, 4, 4)).astype(np.float32)
        (want,) = reference.run(None, {"x": x})
        np.testing.assert_allclose(session.run(None, x)[0], want, rtol=1e-4, atol=1e-6)
    launched = driver.log.count("cuLaunchKernel") - captured
    assert launched == (0 if graphs else 2 * len(part.steps))
    assert driver.log.count("cuGraphLaunch") == (2 if graphs else 0)
    del session
    gc.collect()
    assert driver.log.count("cuGraphExecDestroy") == graphs
    assert driver.log.count("cuMemFree_v2") == driver.log.count("cuMemAlloc_v2")


def test_what_the_driver_refuses_is_an_error_with_its_words(
    monkeypatch: pytest.MonkeyPatch, compiled: Module
) -> None:
    monkeypatch.setattr(FakeDriver, "_mem_alloc", lambda *arguments: 2)
    driver_of(monkeypatch)
    with pytest.raises(DeviceError, match=r"cuMemAlloc_v2: invalid value \(CUDA error 2\)"):
        Session(compiled, CudaDevice())


def test_a_gpu_is_listed_by_its_number_and_name(monkeypatch: pytest.MonkeyPatch) -> None:
    driver_of(monkeypatch)
    assert FoundGpu("cuda:0", "Interpreted GPU") in find_gpus()
    listed = json.loads(invoke("devices", "--json").stdout)["gpus"]
    assert {"device": "cuda:0", "hardware": "Interpreted GPU"} in listed


def test_without_a_driver_others_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr("dovetail.runtime.gpu.cuda.ctypes.CDLL", missing)
    with pytest.raises(DeviceError, match="no NVIDIA driver: libcuda"):
        CudaDevice()
    assert not any(each.device.startswith("cuda") for each in find_gpus())


def test_a_gpu_that_there_is_not_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    driver_of(monkeypatch)
    with pytest.raises(DeviceError, match="no GPU has the number 3; there are 1"):
        CudaDevice("3")


def test_products_of_warpgroups_are_measured_recorded_and_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the record of a search alone: the default has none, nor has a target without them."""
    driver = driver_of(monkeypatch)
    device = CudaDevice()
    for module in (gpu_kernel, gpu_subject):
        monkeypatch.setattr(module, "open_device", lambda name: device)
    monkeypatch.setattr(gpu_kernel, "_bench", gpu_kernel._bench.__wrapped__)
    rng = np.random.default_rng(0)
    weights, x = (rng.standard_normal(shape).astype(np.float16) for shape in ((64, 16), (64, 64)))
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT16, shape)
        for name, shape in (("x", [64, 64]), ("y", [64, 16]))
    ]
    node = helper.make_node("MatMul", ["x", "w"], ["y"], name="dense")
    graph = helper.make_graph(
        [node], "g", ends[:1], ends[1:], [numpy_helper.from_array(weights, "w")]
    )
    opsets = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    stored = StoredModel(".onnx", model.SerializeToString())
    subject = gpu_subject.gpu_subject(stored, {}, find_cuda("sm_90a"), "cuda")
    (problem,) = subject.problems()
    own = {"groups": 1, "rows": 64, "columns": 16, "parts": 1}
    candidate = Candidate.of({**problem.default().record, **own})
    measured = problem.job(candidate).run()
    assert measured.cost
    assert not measured.error
    (entries,) = subject.entries({problem.key: (candidate, 0.5)}, {problem.key: measured.cost})
    write_entries(tmp_path / "records.json", entries)
    tuned = compile(model, "cuda:sm_90a", CompileOptions(records=(tmp_path / "records.json",)))
    assert b"m64n16k16" in source(tuned)
    assert b"m64n16k16" not in source(compile(model, "cuda:sm_90a"))
    driver.log.clear()
    found = Session(tuned, device).run(None, x)[0]
    assert "cuFuncSetAttribute" in driver.log
    want = x.astype(np.float64) @ weights.astype(np.float64)
    np.testing.assert_allclose(found.astype(np.float64), want, rtol=2e-3, atol=1e-2)


def source(module: Module) -> bytes:
    (part,) = module.parts
    assert isinstance(part, GpuPart)
    return bytes(part.source)
