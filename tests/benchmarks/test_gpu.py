"""Builds and trials of ``benchmarks/gpu.py``, without a GPU."""

import ctypes
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

from dovetail.compiler import compile
from dovetail.compiler.options import CompileOptions
from dovetail.compiler.tune import gpu_subject
from dovetail.compiler.tune.gpu_kernel import GpuKernelJob
from dovetail.compiler.tune.problem import Measured
from dovetail.runtime.gpu.cuda import LIBRARY, CudaDevice
from dovetail.runtime.session import Session
from tests.ptx.driver import FakeDriver

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))
sys.path.append(str(Path(__file__).resolve().parents[2] / "examples"))

import gpu_peers
import gpu_warpgroups
from cpu_models import random_inputs
from gpu import first_line, working
from gpu_models import batched, fewer_rows, products
from networks import Options, bert, build

SMALL = Options(size=32, classes=8, width=0.25)


@pytest.mark.parametrize("name", ["squeezenet", "bert"])
def test_a_network_of_several_images_gives_each_what_it_gives_alone(name: str) -> None:
    def network() -> onnx.ModelProto:
        if name == "bert":
            return bert(1, 16, width=64, heads=2, vocabulary=50)
        return build(name, Options(size=32, classes=8))

    one, both = (
        onnxruntime.InferenceSession(each.SerializeToString())
        for each in (network(), batched(network(), 2))
    )
    rng = np.random.default_rng(0)
    given: dict[str, Any] = {}
    for each in both.get_inputs():
        assert each.shape[0] == 2
        values = rng.integers(1, 9, each.shape) if name == "bert" else rng.random(each.shape)
        given[each.name] = values.astype(np.int64 if name == "bert" else np.float32)
    found = both.run(None, given)[0]
    for number in (0, 1):
        alone = {key: array[number : number + 1] for key, array in given.items()}
        np.testing.assert_allclose(found[number], one.run(None, alone)[0][0], rtol=1e-3, atol=1e-4)


def test_the_fastest_tile_with_right_results_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    driver, real = FakeDriver(), ctypes.CDLL
    with monkeypatch.context() as during:
        during.setattr("ctypes.CDLL", lambda name: driver if name == LIBRARY else real(name))
        device = CudaDevice()
    monkeypatch.setattr(gpu_subject, "open_device", lambda name: device)
    answers = {
        256: Measured(None, error="results differ from the default's by 0.5"),
        128: Measured(2.0, 4.0),
    }

    def measured(job: GpuKernelJob, seconds: float) -> Measured:
        columns = json.loads(job.candidate)["columns"]
        return answers[columns]

    monkeypatch.setattr(gpu_warpgroups, "isolated", measured)
    first = gpu_warpgroups.CHOICES
    chosen = [each for each in first if each.rows == 128 and each.columns in (256, 128)][::2]
    monkeypatch.setattr(gpu_warpgroups, "CHOICES", chosen)
    path = tmp_path / "gemm.onnx"
    onnx.save(products(256, "fp16"), path)
    options = CompileOptions()
    records = gpu_warpgroups.warpgroup_records(path, "cuda", options, tmp_path)
    assert records is not None
    text = records.read_text()
    assert "wgmma_float16_float16_128" in text
    assert "wgmma_float16_float16_256" not in text
    printed = capsys.readouterr().out
    assert "wgmma 128x256, 2 warpgroups, 4 buffers of 128 bytes a row: refused: res" in printed
    assert "128x128, 2 warpgroups, 4 buffers of 128 bytes a row: 2000.000 ms, 0.50 of" in printed
    answers = dict.fromkeys(answers, Measured(5.0, 4.0))
    monkeypatch.setattr(gpu_warpgroups, "CHOICES", chosen[:1])
    assert gpu_warpgroups.warpgroup_records(path, "cuda", options, tmp_path) is None


def test_an_engine_that_is_not_there_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_peers, "find_spec", lambda name: None)
    for make in gpu_peers.PEERS.values():
        network = "resnet50" if make is gpu_peers.of_compiled else "gemm_64"
        with pytest.raises(gpu_peers.UnavailableError, match=r"\w+ is not installed"):
            make(Path("model.onnx"), network, gpu_peers.Precision.FP32)


def test_an_engine_that_cannot_run_is_told_of_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    def broken(inputs: Any) -> Any:
        raise RuntimeError("no kernel for bfloat16\nand much more")

    right = gpu_peers.Engine(lambda inputs: [inputs["x"] + 1])
    engines = {"dovetail cuda fp32": right, "onnxruntime": gpu_peers.Engine(broken)}
    found = working("gemm_bf16_64", engines, {"x": np.ones(3, np.float32)})
    assert list(found) == ["dovetail cuda fp32"]
    np.testing.assert_array_equal(found["dovetail cuda fp32"], [2, 2, 2])
    printed = capsys.readouterr().out
    assert printed == ("gemm_bf16_64: without onnxruntime: RuntimeError: no kernel for bfloat16\n")
    assert first_line(ValueError()) == "ValueError: "
    with pytest.raises(RuntimeError):
        working("gemm_64", {"dovetail cuda fp32": gpu_peers.Engine(broken)}, {})


@pytest.mark.parametrize("kind", ["bf16", "fp16", "int8"])
def test_the_first_rows_of_products_are_those_of_all(kind: str) -> None:
    whole = products(32, kind)
    onnx.checker.check_model(whole, full_check=True)
    rng = np.random.default_rng(0)
    x = rng.integers(-9, 9, (32, 32)).astype(helper.tensor_dtype_to_np_dtype(kind_of(whole)))
    want, found = (
        Session(compile(each, "cpu")).run(None, {"x": given})[0].astype(float)
        for each, given in ((whole, x), (fewer_rows(whole, 4), x[:4]))
    )
    assert np.abs(want).max() > 0
    np.testing.assert_array_equal(found, want[:4])


def kind_of(model: onnx.ModelProto) -> int:
    return model.graph.input[0].type.tensor_type.elem_type


def test_networks_are_functions_of_torch() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from gpu_torch import as_function

    for model in (bert(1, 16, width=64, heads=2, vocabulary=50), build("resnet50", SMALL)):
        session = onnxruntime.InferenceSession(model.SerializeToString())
        given = random_inputs(model)
        given = {name: np.minimum(array, 49) for name, array in given.items()}
        function = as_function(model, "cpu", torch.float32)
        (found,) = function(*(torch.from_numpy(array) for array in given.values()))
        (want,) = session.run(None, given)
        np.testing.assert_allclose(found.numpy(), want, rtol=1e-3, atol=1e-4)
