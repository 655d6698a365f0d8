"""Machine code against the interpreter, kernel by kernel."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner

from dovetail.compiler.__main__ import main
from dovetail.compiler.checking.kernels import check_model
from dovetail.compiler.errors import ModelError
from dovetail.compiler.targets.cpu.llvm.module import CompiledModule
from tests.end_to_end.models import random_network

from ..targets.cpu.test_native import model

X = np.random.default_rng(0).standard_normal((2, 8)).astype(np.float32)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOVETAIL_CACHE", str(tmp_path / "cache"))


def test_every_kernel_and_output_is_compared() -> None:
    done = check_model(model(), {"x": X})
    assert {name for each in done.kernels for name in each.origins} == {
        *("product", "bias", "tanh", "sum")
    }
    assert [each.tensor for each in done.outputs] == ["y", "total"]
    assert done.worst < 1e-5


def test_integer_models_are_equal() -> None:
    network = random_network(3)
    kind = network.graph.input[0].type.tensor_type
    shape = [dim.dim_value for dim in kind.shape.dim]
    x = np.random.default_rng(1).integers(0, 100, shape)
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
    done = check_model(network, {network.graph.input[0].name: x.astype(dtype)})
    assert done.worst == 0
    assert all(each.unequal == 0 for each in (*done.kernels, *done.outputs))


def test_a_wrong_kernel_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    right = CompiledModule.run

    def wrong(self: CompiledModule, name: str, *arguments: object) -> list[np.ndarray]:
        results = right(self, name, *arguments)  # type: ignore[arg-type]
        if results[0].shape == ():
            results[0][...] += 1
        return results

    monkeypatch.setattr(CompiledModule, "run", wrong)
    done = check_model(model(), {"x": X})
    assert [each.origins for each in done.kernels if each.relative > 1e-3] == [("sum",)]
    assert all(each.relative < 1e-3 for each in done.outputs)


def test_open_shapes_are_refused() -> None:
    with pytest.raises(ModelError, match=r"input 'x' has shape \[N, 8\]; bind its open sizes"):
        check_model(model("N"), {"x": X})
    assert check_model(model("N"), {"x": X}, {"N": 2}).worst < 1e-5


def test_the_command_prints_and_fails_beyond_the_tolerance(tmp_path: Path) -> None:
    onnx.save(model(), tmp_path / "m.onnx")
    done = CliRunner().invoke(main, ["check", str(tmp_path / "m.onnx"), "--json"])
    assert done.exit_code == 0, done.output
    assert '"worst"' in done.stdout
    arguments = ["check", str(tmp_path / "m.onnx"), "--tolerance", "0"]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code in (0, 1)
    assert done.exit_code == 0 or "tolerated are 0" in done.output


def test_kernels_behind_a_loop_are_compared() -> None:
    behind = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["": 18]> m (float[8] x) => (float[8] y) '
        "{ n = Constant <value = int64 {40}> () "
        "h = Loop <body = b (int64 i, bool c, float[8] s) => (bool d, float[8] t) "
        "{ d = Identity (c) t = Sin (s) }> (n, , x) [after] y = Tanh (h) }"
    )
    done = check_model(behind, {"x": X[0]})
    assert [each.origins for each in done.kernels] == [("after",)]
    assert done.worst < 1e-5
