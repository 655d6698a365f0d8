"""Modules for CPUs: machine code in the file, models specialised as they run, errors."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper, numpy_helper

from dovetail.compiler import CompileOptions, compile
from dovetail.compiler.__main__ import main
from dovetail.compiler.errors import ModelError, TargetError
from dovetail.compiler.options import CpuOptions
from dovetail.compiler.targets.cpu.segment import float_passes
from dovetail.runtime import run
from dovetail.runtime.errors import DeviceError, InputError, ModuleError
from dovetail.runtime.module import Module
from dovetail.runtime.native.model import ModelPart
from dovetail.runtime.native.part import CpuPart

FLOAT = TensorProto.FLOAT


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOVETAIL_CACHE", str(tmp_path / "cache"))


def model(batch: int | str = 2) -> onnx.ModelProto:
    """``tanh(x @ w + b)``, and its sum over rows."""
    rng = np.random.default_rng(3)
    constants = {
        "w": rng.standard_normal((8, 5)).astype(np.float32),
        "b": rng.standard_normal(5).astype(np.float32),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"], name="product"),
        helper.make_node("Add", ["p", "b"], ["s"], name="bias"),
        helper.make_node("Tanh", ["s"], ["y"], name="tanh"),
        helper.make_node("ReduceSum", ["y"], ["total"], keepdims=0, name="sum"),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", FLOAT, [batch, 8])],
        [
            helper.make_tensor_value_info("y", FLOAT, [batch, 5]),
            helper.make_tensor_value_info("total", FLOAT, []),
        ],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])


def check(module: Module, proto: onnx.ModelProto, batch: int) -> None:
    """Run ``module`` and compare with NumPy."""
    w, b = (numpy_helper.to_array(each) for each in proto.graph.initializer)
    x = np.random.default_rng(batch).standard_normal((batch, 8)).astype(np.float32)
    found = run(module, {"x": x}, device="cpu").outputs
    y = np.tanh(x @ w + b)
    np.testing.assert_allclose(found["y"], y, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found["total"], y.sum(), rtol=1e-4, atol=1e-5)


def test_a_model_of_fixed_shapes_becomes_machine_code() -> None:
    proto = model()
    module = Module.from_bytes(compile(proto, "cpu").to_bytes())
    (part,) = module.parts
    assert isinstance(part, CpuPart)
    assert [each.shape for each in module.outputs] == [(2, 5), ()]
    origins = [name for kernel in part.kernels for name in kernel]
    assert set(origins) == {"product", "bias", "tanh", "sum"}
    check(module, proto, 2)
    check(module, proto, 2)


def test_compiling_twice_gives_the_same_module() -> None:
    assert compile(model(), "cpu").to_bytes() == compile(model(), "cpu").to_bytes()


def test_open_dimensions_are_specialised_as_the_module_runs() -> None:
    proto = model("N")
    module = Module.from_bytes(compile(proto, "cpu").to_bytes())
    assert module.inputs[0].shape == (-1, 8)
    for batch in (1, 4):
        check(module, proto, batch)
    with pytest.raises(InputError, match=r"float32\[2, 9\]; required float32\[any, 8\]"):
        run(module, {"x": np.zeros((2, 9), np.float32)}, device="cpu")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"options": {"level": "native"}}, "field options: no entry 'threads'"),
        ({"options": 3}, "field options: found 3"),
        ({"records": {"kernels": {"k": 1}, "tiles": {}}}, r"field records\.kernels\.k: found 1"),
        ({"model": b"\xff"}, "the module's model cannot be read"),
    ],
)
def test_a_model_with_damaged_options_is_refused(change: dict[str, Any], message: str) -> None:
    module = compile(model("N"), "cpu")
    (part,) = module.parts
    assert isinstance(part, ModelPart)
    with pytest.raises(ModuleError, match=message):
        run(replace(module, parts=(replace(part, **change),)), np.zeros((2, 8), np.float32))


def test_a_bound_dimension_is_compiled() -> None:
    proto = model("N")
    module = compile(proto, "cpu", dims={"N": 3})
    assert isinstance(module.parts[0], CpuPart)
    check(module, proto, 3)
    with pytest.raises(ModelError, match="no input has a dimension 'M'; symbolic dimensions: 'N'"):
        compile(proto, "cpu", dims={"M": 3})
    with pytest.raises(ModelError, match="required at least 1"):
        compile(proto, "cpu", dims={"N": 0})


def test_one_tensor_may_be_two_outputs() -> None:
    proto = model()
    proto.graph.node.append(helper.make_node("Identity", ["y"], ["again"]))
    proto.graph.output.append(helper.make_tensor_value_info("again", FLOAT, [2, 5]))
    found = run(compile(proto, "cpu"), {"x": np.ones((2, 8), np.float32)}, device="cpu").outputs
    np.testing.assert_array_equal(found["again"], found["y"])


@pytest.mark.parametrize("level", ["x86-64", "avx2"])
def test_code_for_lower_levels_and_threads_gives_the_same(level: str) -> None:
    proto = model()
    options = CompileOptions(cpu=CpuOptions(level, threads=2))
    check(compile(proto, "cpu", options), proto, 2)
    check(compile(model("N"), "cpu", options), proto, 2)
    with pytest.raises(TargetError, match="no CPU level 'fast'"):
        compile(proto, "cpu", CompileOptions(cpu=CpuOptions("fast")))


def test_code_for_another_cpu_is_refused() -> None:
    module = compile(model(), "cpu")
    (part,) = module.parts
    assert isinstance(part, CpuPart)
    other = replace(module, parts=(replace(part, flags=(*part.flags, "no_such_feature")),))
    with pytest.raises(DeviceError, match="lacks no_such_feature"):
        run(other, {"x": np.zeros((2, 8), np.float32)}, device="cpu")


def test_a_module_without_its_constants_is_refused() -> None:
    (part,) = compile(model(), "cpu").parts
    assert isinstance(part, CpuPart)
    with pytest.raises(ModuleError, match=r"a constant of 160 bytes at \d+ of 64"):
        replace(part, data=bytes(64))


def test_intermediate_forms_are_dumped(tmp_path: Path) -> None:
    compile(model(), "cpu", CompileOptions(dump=tmp_path / "dump"))
    names = sorted(path.name for path in (tmp_path / "dump").iterdir())
    steps = [name[3:].removesuffix(".txt") for name in names]
    assert steps[0] == "import"
    assert {each.name for each in float_passes(winograd=True).passes} < set(steps)
    assert steps[-3:] == ["prepare", "program", "llvm"]
    assert 'from "tanh"' in (tmp_path / "dump" / "00_import.txt").read_text()


def test_the_command_binds_dimensions_and_says_what_the_module_holds(tmp_path: Path) -> None:
    onnx.save(model("N"), tmp_path / "m.onnx")
    arguments = ["compile", str(tmp_path / "m.onnx"), "--target", "cpu"]
    output = ["-o", str(tmp_path / "m.dvt"), "--json"]
    done = CliRunner().invoke(main, [*arguments, *output, "--dim", "N=2"])
    assert done.exit_code == 0, done.output
    assert '"holds": "machine code"' in done.stdout
    done = CliRunner().invoke(main, [*arguments, *output])
    assert '"holds": "a model that is compiled for each shape as it runs"' in done.stdout
    done = CliRunner().invoke(main, [*arguments, *output, "--dim", "N"])
    assert done.exit_code == 2
    assert "required NAME=SIZE" in done.output
