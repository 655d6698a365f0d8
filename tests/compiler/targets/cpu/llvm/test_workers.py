"""Functions built by several processes: all of them, whatever becomes of a process or a thread."""

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dovetail.compiler.dtypes import DType
from dovetail.compiler.errors import GraphError
from dovetail.compiler.loops.expressions import Buffer
from dovetail.compiler.loops.ir import Function, LoopKind, Store
from dovetail.compiler.processes.child_process import ChildProcess
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


class Watched:
    """A socket to a worker that tells of a task once it is to be sent, and once it is answered."""

    def __init__(
        self, socket: Any, sent: Callable[[], object], answered: Callable[[], object]
    ) -> None:
        self._socket, self._sent, self._answered = socket, sent, answered
        self._asked = False

    def send(self, task: object) -> None:
        self._asked = True
        self._sent()
        self._socket.send(task)

    def recv(self) -> object:
        answer = self._socket.recv()
        if self._asked:
            self._answered()
        return answer

    def close(self) -> None:
        self._socket.close()


def watch(
    monkeypatch: pytest.MonkeyPatch,
    sent: Callable[[ChildProcess], object] = lambda worker: None,
    answered: Callable[[], object] = lambda: None,
) -> None:
    """Workers whose sockets are ``Watched``."""
    start = ChildProcess.start

    def watched(module: str) -> ChildProcess:
        worker = start(module)
        socket: Any = Watched(worker.socket, lambda: sent(worker), answered)
        return replace(worker, socket=socket)

    monkeypatch.setattr(ChildProcess, "start", watched)


def test_workers_build_what_this_process_would(monkeypatch: pytest.MonkeyPatch) -> None:
    own: list[str] = []
    answered = threading.Event()
    watch(monkeypatch, answered=answered.set)

    def later(task: Task) -> BuiltFunction:
        own.append(task[0])
        answered.wait()
        return build_function(task)

    found = workers.build_with_workers(TASKS, later, 2)
    assert found == [build_function(task) for task in TASKS]
    assert len(own) < COUNT


def test_what_a_worker_was_ended_over_is_built_here(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()

    def end(worker: ChildProcess) -> None:
        worker.process.kill()
        worker.process.wait()
        ended.set()

    def later(task: Task) -> BuiltFunction:
        ended.wait()
        return build_function(task)

    watch(monkeypatch, sent=end)
    found = workers.build_with_workers(TASKS, later, 2)
    assert found == [build_function(task) for task in TASKS]


def test_workers_that_do_not_start_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "WORKER", "no.such.module")
    assert len(workers.build_with_workers(TASKS, build_function, 2)) == COUNT


def test_what_cannot_be_sent_to_a_worker_is_built_here(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = threading.Event()
    watch(monkeypatch, sent=lambda worker: tried.set())

    def later(task: Callable[[], int]) -> int:
        tried.wait()
        return task()

    tasks = [lambda n=n: n for n in range(COUNT)]
    assert workers.build_with_workers(tasks, later, 2) == list(range(COUNT))


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
