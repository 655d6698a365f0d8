"""Modules for CPUs run without the compiler, from one copy of their constants."""

import multiprocessing
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from dovetail.compiler import CompileOptions, compile
from dovetail.compiler.options import CpuOptions
from dovetail.runtime import run
from dovetail.runtime.errors import DeviceError
from dovetail.runtime.module import Module
from dovetail.runtime.native import device as native_device
from dovetail.runtime.native import pool
from dovetail.runtime.native.content import load_program
from dovetail.runtime.native.device import CpuDevice
from dovetail.runtime.native.host import host_flags, require_flags
from dovetail.runtime.native.model import ModelPart
from dovetail.runtime.native.part import CpuPart
from dovetail.runtime.parts import Part
from dovetail.runtime.result import RunResult

WIDTH = 640
RUN = """
import sys
from pathlib import Path
import numpy as np
from dovetail.runtime import Session
found = Session(Path(sys.argv[1]), "cpu").run(np.ones((4, 640), np.float32)).outputs["y"]
np.save(sys.argv[2], found)
heavy = {"llvmlite", "onnx", "ml_dtypes", "dovetail.compiler", "dovetail.isa.config"}
assert not heavy & sys.modules.keys(), heavy & sys.modules.keys()
"""


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOVETAIL_CACHE", str(tmp_path / "cache"))


def layers(threads: int = 1, seed: int = 0) -> tuple[Module, list[np.ndarray]]:
    """``y = relu(relu(x @ a) @ b)``; 3 MB of weights."""
    rng = np.random.default_rng(seed)
    weights = [rng.integers(-3, 4, (WIDTH, WIDTH)).astype(np.float32) for _ in range(2)]
    nodes = [
        helper.make_node("MatMul", ["x", "a"], ["p"]),
        helper.make_node("Relu", ["p"], ["q"]),
        helper.make_node("MatMul", ["q", "b"], ["r"]),
        helper.make_node("Relu", ["r"], ["y"]),
    ]
    given, found = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, (4, WIDTH)) for name in "xy"
    )
    constants = [numpy_helper.from_array(w, name) for w, name in zip(weights, "ab", strict=True)]
    graph = helper.make_graph(nodes, "g", [given], [found], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    return compile(model, "cpu", CompileOptions(cpu=CpuOptions(threads=threads))), weights


def expected(weights: list[np.ndarray], x: np.ndarray) -> np.ndarray:
    for each in weights:
        x = np.maximum(x @ each, 0)
    return x


def test_a_module_runs_without_compiler_llvm_and_onnx(tmp_path: Path) -> None:
    module, weights = layers()
    module.save(tmp_path / "m.dvt")
    command = [sys.executable, "-c", RUN, str(tmp_path / "m.dvt"), str(tmp_path / "y.npy")]
    subprocess.run(command, check=True)
    x = np.ones((4, WIDTH), np.float32)
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), expected(weights, x))


def test_constants_lie_aligned_in_the_file_and_are_not_copied(tmp_path: Path) -> None:
    module, _ = layers()
    module.save(tmp_path / "m.dvt")
    read = Module.load(tmp_path / "m.dvt")
    (part,) = read.parts
    assert isinstance(part, CpuPart)
    program = load_program(part)
    section = np.frombuffer(part.data, np.uint8)
    assert len(program.constants) == 2
    for each in program.constants:
        assert each.ctypes.data % 64 == 0
        assert np.may_share_memory(each, section)
    assert program.code is part.program


def test_a_module_that_was_read_is_written_as_it_was(tmp_path: Path) -> None:
    module, _ = layers()
    module.save(tmp_path / "m.dvt")
    assert Module.load(tmp_path / "m.dvt").to_bytes() == module.to_bytes()


def test_features_that_the_cpu_lacks_are_named() -> None:
    require_flags(host_flags(), "this one")
    with pytest.raises(DeviceError, match="lacks warp_drive, which the code for z80 uses"):
        require_flags(["warp_drive", *host_flags()], "z80")


def test_modules_of_several_thread_counts_run_at_once_and_share_a_pool() -> None:
    rng = np.random.default_rng(5)
    modules = [layers(threads, seed) for threads, seed in ((2, 1), (3, 2), (4, 3))]
    wrong: list[int] = []

    def call(number: int) -> None:
        module, weights = modules[number % 3]
        x = rng.integers(-2, 3, (4, WIDTH)).astype(np.float32)
        y = expected(weights, x)
        for _ in range(40):
            found = run(module, {"x": x}, device="cpu").outputs["y"]
            if not np.array_equal(found, y):
                wrong.append(number)

    callers = [threading.Thread(target=call, args=(number,)) for number in range(6)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong
    assert len(pool._running) == 1


def test_a_pool_is_kept_when_a_larger_one_replaces_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls may still be under way in it: its memory must not go."""
    running, retired = dict[str, Any](), list[Any]()
    monkeypatch.setattr(pool, "_running", running)
    monkeypatch.setattr(pool, "_retired", retired)
    found = []
    for threads in (2, 3, 2):
        module, weights = layers(threads, threads)
        x = np.ones((4, WIDTH), np.float32)
        assert np.array_equal(run(module, {"x": x}, "cpu").outputs["y"], expected(weights, x))
        found += running.values()
    assert [each.threads for each in found] == [2, 3, 3]
    assert retired == found[:1]
    found[-1].stop()


def test_more_modules_than_are_kept_run_from_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    class Counting:
        def __init__(self, part: Part) -> None:
            self.part = part

        def run(self, inputs: object) -> RunResult:
            return RunResult({"part": np.array(id(self.part))}, "cpu", 0.0, 0.0, 0.0)

    monkeypatch.setattr(native_device, "_load", Counting)
    device, seen = CpuDevice(), []

    def give_way(frame: FrameType, *_: object) -> Any:
        """At every line of the device's code."""
        if frame.f_code.co_filename != native_device.__file__:
            return None
        time.sleep(1e-5)
        return give_way

    parts = [ModelPart((), (), b"", None, None) for _ in range(native_device.LOADED + 1)]

    def call(seed: int) -> None:
        for place in np.random.default_rng(seed).integers(len(parts), size=50):
            part = parts[place]
            seen.append(device.prepare(part).run({}).outputs["part"] == id(part))

    callers = [threading.Thread(target=call, args=(seed,)) for seed in range(8)]
    threading.settrace(give_way)
    for each in callers:
        each.start()
    for each in callers:
        each.join()
    threading.settrace(None)  # type: ignore[arg-type]
    assert seen == [True] * 400


def test_threads_that_ask_for_one_module_load_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    module, _ = layers()
    device, loaded = CpuDevice(), []
    load, both = native_device._load, threading.Barrier(2)

    def slow(part: Part) -> Any:
        loaded.append(part)
        time.sleep(0.2)
        return load(part)

    def ask() -> None:
        both.wait()
        device.prepare(module.parts[0])

    monkeypatch.setattr(native_device, "_load", slow)
    callers = [threading.Thread(target=ask) for _ in range(2)]
    for each in callers:
        each.start()
    for each in callers:
        each.join()
    assert len(loaded) == 1


@pytest.mark.parametrize("threads", [1, 2])
def test_a_process_forked_during_a_run_runs_the_module_itself(threads: int) -> None:
    module, weights = layers(threads)
    x = np.ones((4, WIDTH), np.float32)
    y, over = expected(weights, x), threading.Event()

    def call() -> bool:
        return np.array_equal(run(module, x).outputs["y"], y)

    def keep_calling() -> None:
        while not over.is_set():
            call()

    def report() -> None:
        sys.exit(0 if call() else 1)

    # A fork while a thread imports something hangs in Python itself.
    assert call()
    thread = threading.Thread(target=keep_calling)
    thread.start()
    context = multiprocessing.get_context("fork")
    try:
        for _ in range(8):
            child = context.Process(target=report)
            child.start()
            child.join(20)
            ended = child.exitcode
            child.kill()
            assert ended == 0, "the child hangs" if ended is None else ended
    finally:
        over.set()
        thread.join()
