"""What ``benchmarks/gpu.py`` builds and tries, without a GPU."""

import ctypes
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from dovetail.compiler.options import CompileOptions
from dovetail.compiler.tune import gpu_subject
from dovetail.compiler.tune.gpu_kernel import GpuKernelJob
from dovetail.compiler.tune.problem import Measured
from dovetail.runtime.gpu.cuda import LIBRARY, CudaDevice
from tests.ptx.driver import FakeDriver

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))
sys.path.append(str(Path(__file__).resolve().parents[2] / "examples"))

import gpu_peers
import gpu_warpgroups
from gpu_models import batched, products
from networks import Options, bert, build


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
        with pytest.raises(gpu_peers.UnavailableError, match=r"\w+ is not installed"):
            make(Path("model.onnx"), "gemm_64", gpu_peers.Precision.FP32)
