"""Commands take programs of torch as they take ONNX."""

import json
from pathlib import Path

import numpy as np

from tests.compiler.front.torch.mutate import FILES

from .commands import invoke, refused

QUANTISED = next(path for path in FILES if path.stem == "quantised")
COUNTER = next(path for path in FILES if path.stem == "counter")


def test_a_program_is_inspected() -> None:
    found = json.loads(invoke("inspect", QUANTISED, "--target", "vta:tiny", "--json").stdout)
    assert (found["format"], found["quantised"]) == ("PyTorch", True)
    assert found["inputs"] == [{"name": "x", "shape": [1, 3, 8, 8], "dtype": "float32"}]
    assert found["operators"]["aten.conv2d"] == 2
    assert found["macs_on_accelerator"] == 1.0
    found = json.loads(invoke("inspect", COUNTER, "--target", "cpu", "--json").stdout)
    assert [each["shape"] for each in found["inputs"]] == [[None, 6], [1]]
    assert found["parameters"] == 6 * 8 + 8 + 8 * 4 + 4 + 1 + 4


def test_a_program_runs_and_its_layers_are_checked(tmp_path: Path) -> None:
    with np.load(QUANTISED.with_suffix(".npz")) as archive:
        np.save(tmp_path / "x.npy", archive["input0"])
    done = invoke(
        *("run", QUANTISED, "--target", "vta:tiny", "--input", f"x={tmp_path / 'x.npy'}"),
        *("--output-dir", tmp_path, "--check", QUANTISED, "--json"),
    )
    checks = json.loads(done.stdout)["checks"]
    assert checks
    assert all(each["unequal"] == 0 for each in checks)


def test_an_open_size_is_bound_by_a_flag(tmp_path: Path) -> None:
    out = tmp_path / "out.dvt"
    refused(invoke("compile", COUNTER, "--target", "cpu", "-o", out), "names: s77")
    assert invoke("compile", COUNTER, "--target", "cpu", "--dim", "s77=2", "-o", out).exit_code == 0
