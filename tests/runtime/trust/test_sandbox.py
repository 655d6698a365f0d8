"""Machine code in a sandbox computes, and can do nothing else."""

import sys
from collections.abc import Callable
from io import BytesIO
from typing import Any, BinaryIO

import numpy as np
import onnx
import pytest

from dovetail.compiler import compile
from dovetail.compiler.options import CompileOptions, CpuOptions
from dovetail.runtime import run
from dovetail.runtime.errors import DeviceError, InputError, RunError
from dovetail.runtime.trust import child
from dovetail.runtime.trust.confine import confine
from dovetail.runtime.trust.sandbox import SandboxLimits, run_sandboxed
from tests.end_to_end.models import random_network

from .hostile import CRASHES, OPENS, SPINS, TAKES_MEMORY, module_of

pytest.importorskip("pyseccomp")

X = np.zeros(1, np.float32)


def test_code_that_opens_a_file_and_a_socket_cannot_in_a_sandbox() -> None:
    module = module_of(OPENS)
    assert np.all(run(module, X).outputs["y"] >= 0)
    assert np.all(run_sandboxed(module, X).outputs["y"] == -1)


def test_code_that_does_not_end_is_stopped() -> None:
    with pytest.raises(DeviceError, match="more than 1 s of processor time"):
        run_sandboxed(module_of(SPINS), X, limits=SandboxLimits(cpu_seconds=1))
    with pytest.raises(DeviceError, match=r"stopped after 0\.5 s"):
        run_sandboxed(module_of(SPINS), X, limits=SandboxLimits(wall_seconds=0.5))


def test_code_that_crashes_ends_only_its_sandbox() -> None:
    with pytest.raises(DeviceError, match=r"ended its sandbox .signal SIG(SEGV|BUS)"):
        run_sandboxed(module_of(CRASHES), X)


def test_code_gets_no_more_memory_than_it_may() -> None:
    assert np.all(run(module_of(TAKES_MEMORY), X).outputs["y"] == 1)
    limits = SandboxLimits(memory_bytes=4 << 30)
    assert np.all(run_sandboxed(module_of(TAKES_MEMORY), X, limits=limits).outputs["y"] == 0)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_module_gives_in_a_sandbox_what_it_gives_outside(threads: int) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["": 18]> m (float[64, 256] x) => (float[64, 64] y) '
        "{ t = Transpose (x) p = MatMul (x, t) y = Tanh (p) }"
    )
    module = compile(model, "cpu", CompileOptions(cpu=CpuOptions(threads=threads)))
    x = np.random.default_rng(0).normal(size=(64, 256)).astype(np.float32)
    np.testing.assert_array_equal(
        run_sandboxed(module, x).outputs["y"], run(module, x).outputs["y"]
    )


def test_a_module_for_the_accelerator_runs_in_a_sandbox() -> None:
    module = compile(random_network(1), "vta:tiny")
    (tensor,) = module.inputs
    x = np.random.default_rng(1).integers(-99, 99, tensor.shape).astype(tensor.dtype)
    inside, outside = run_sandboxed(module, x, "sim"), run(module, x, "sim")
    for name, found in outside.outputs.items():
        np.testing.assert_array_equal(inside.outputs[name], found)


def test_what_is_wrong_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="x"):
        run_sandboxed(module_of(OPENS), np.zeros(2, np.float32))
    with pytest.raises(DeviceError, match="device 'rtl' in a sandbox; required sim or cpu"):
        run_sandboxed(module_of(OPENS), X, "rtl")
    with pytest.raises(RunError, match="in the sandbox: what was compiled for 'cpu' cannot run"):
        run_sandboxed(module_of(OPENS), X, "sim")
    opened = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["": 18]> m (float[n] x) => (float[n] y) { y = Abs (x) }'
    )
    with pytest.raises(DeviceError, match="this module holds a model"):
        run_sandboxed(compile(opened, "cpu"), X)
    monkeypatch.setitem(sys.modules, "pyseccomp", None)
    with pytest.raises(DeviceError, match=r"needs Linux, libseccomp .* 'dovetail\[sandbox\]"):
        confine()


def test_the_environment_stays_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_THE_USER", "s3cret")
    from dovetail.runtime.trust import sandbox

    seen: dict[str, str] = {}
    popen = sandbox.subprocess.Popen

    def spy(*words: object, **options: object) -> object:
        seen.update(options["env"])  # type: ignore[call-overload]
        return popen(*words, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(sandbox.subprocess, "Popen", spy)
    run_sandboxed(module_of(OPENS), X)
    assert seen
    assert "SECRET_OF_THE_USER" not in seen


def test_an_answer_is_told_from_an_error_by_its_first_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(run: Callable[[BinaryIO], list[Any]]) -> bytes:
        monkeypatch.setattr(child, "_run", run)
        sink = BytesIO()
        child.main(BytesIO(), sink)
        return sink.getvalue()

    def fail(error: Exception) -> Callable[[BinaryIO], list[Any]]:
        def run(source: BinaryIO) -> list[Any]:
            raise error

        return run

    outputs = [np.array([[1, 2], [3, 4]], "<i2").T, np.array([5], np.uint8)]
    assert answer(lambda source: outputs) == b"\0" + bytes([1, 0, 3, 0, 2, 0, 4, 0, 5])
    assert answer(fail(RunError("no é"))) == b"\1no \xc3\xa9"
    assert answer(fail(MemoryError())) == b"\1MemoryError"
