"""Functions built by several processes: all of them, whatever becomes of a process or a thread."""

import threading
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from dovetail.compiler.dtypes import DType
from dovetail.compiler.errors import GraphError
from dovetail.compiler.loops.expressions import Buffer
from dovetail.compiler.loops.ir import Function, LoopKind, Store
from dovetail.compiler.targets.cpu.llvm import workers
from dovetail.compiler.targets.cpu.llvm.build import Task, build_function
from dovetail.compiler.targets.cpu.llvm.cache import BuiltFunction
from dovetail.compiler.targets.cpu.llvm.compile import LlvmOptions, compile_functions
from dovetail.compiler.targets.cpu.llvm.target import CpuTarget

from .kernels import elementwise

COUNT = 17


def scaled(factor: int) -> Function:
    function = elementwise(8, (DType.FLOAT32,), lambda x: x * float(factor), LoopKind.VECTOR)
    return replace(function, name=f"f{factor}")


TASKS: list[Task] = [(f"f{n}", scaled(n), CpuTarget.at_level("native"), 1) for n in range(COUNT)]


def test_workers_build_what_this_process_would() -> None:
    own: list[str] = []

    def slowly(task: Task) -> BuiltFunction:
        own.append(task[0])
        time.sleep(0.2)
        return build_function(task)

    found = workers.build_with_workers(TASKS, slowly, 2)
    assert found == [build_function(task) for task in TASKS]
    assert 0 < len(own) < COUNT


def test_what_a_worker_was_ended_over_is_built_here(monkeypatch: pytest.MonkeyPatch) -> None:
    start = workers.ChildProcess.start

    def doomed(module: str) -> workers.ChildProcess:
        worker = start(module)
        threading.Timer(0.4, worker.process.kill).start()
        return worker

    def slowly(task: Task) -> BuiltFunction:
        time.sleep(0.1)
        return build_function(task)

    monkeypatch.setattr(workers.ChildProcess, "start", doomed)
    found = workers.build_with_workers(TASKS, slowly, 2)
    assert found == [build_function(task) for task in TASKS]


def test_workers_that_do_not_start_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "WORKER", "no.such.module")
    assert len(workers.build_with_workers(TASKS, build_function, 2)) == COUNT


def test_what_cannot_be_sent_to_a_worker_is_built_here() -> None:
    def slowly(task: Callable[[], int]) -> int:
        time.sleep(0.1)
        return task()

    tasks = [lambda n=n: n for n in range(COUNT)]
    assert workers.build_with_workers(tasks, slowly, 2) == list(range(COUNT))


def test_an_error_in_another_process_is_raised_here() -> None:
    y = Buffer("y", (), DType.FLOAT32)
    wrong = Function("wrong", (), (y,), Store(y, (), Buffer("z", (), DType.FLOAT32)[()]))
    functions = [*map(scaled, range(COUNT)), wrong]
    with pytest.raises(GraphError, match="load of z, which is not in scope"):
        compile_functions(functions, LlvmOptions(jobs=2))


def test_threads_compile_while_another_multiplies_matrices() -> None:
    """Processes that are forked would hang, or this one, on OpenBLAS's locks and llvmlite's."""
    x, matrix = np.arange(8, dtype=np.float32), np.ones((400, 400), np.float32)
    right: list[bool] = []
    ended = threading.Event()

    def multiply() -> None:
        while not ended.is_set():
            np.matmul(matrix, matrix)

    def compiled() -> None:
        module = compile_functions([scaled(n) for n in range(COUNT)], LlvmOptions(jobs=2))
        results = [module.run(f"f{n}", [x])[0] for n in range(COUNT)]
        right.append(all(np.array_equal(each, x * n) for n, each in enumerate(results)))

    threads = [threading.Thread(target=compiled, daemon=True) for _ in range(3)]
    multiplier = threading.Thread(target=multiply, daemon=True)
    for thread in (multiplier, *threads):
        thread.start()
    for thread in threads:
        thread.join(120)
    ended.set()
    multiplier.join(20)
    assert not multiplier.is_alive()
    assert right == [True] * 3
