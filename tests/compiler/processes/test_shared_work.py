"""Work shared with processes: all of it is done, whatever becomes of a process or a thread."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dovetail.compiler.dtypes import DType
from dovetail.compiler.errors import GraphError
from dovetail.compiler.loops.expressions import Buffer
from dovetail.compiler.loops.ir import Function, LoopKind, Store
from dovetail.compiler.processes import child_process
from dovetail.compiler.processes.child_process import ChildProcess
from dovetail.compiler.processes.shared_work import SharedWork
from dovetail.compiler.targets.cpu.llvm.compile import LlvmOptions, compile_functions

from ..targets.cpu.llvm.kernels import elementwise

COUNT = 17


def scaled(factor: int) -> Function:
    function = elementwise(8, (DType.FLOAT32,), lambda x: x * float(factor), LoopKind.VECTOR)
    return replace(function, name=f"f{factor}")


def done(
    tasks: Sequence[Any], build: Callable[[Any], Any], there: Callable[[Any], Any] | None = None
) -> list[Any]:
    """Results of tasks when two processes help."""
    with SharedWork(build, lambda count: 2, there) as work:
        for task in tasks:
            work.add(task)
        return work.results()


def marked(path: str) -> int:
    """The work of the processes."""
    Path(path).touch()
    return len(path)


def here(path: str) -> int:
    """The work of this process: it waits until the processes have done something."""
    while not any(Path(path).parent.iterdir()):
        time.sleep(0.01)
    return len(path)


def paths(folder: Path) -> list[str]:
    return [str(folder / ("x" * n)) for n in range(1, COUNT)]


def test_processes_do_a_part_of_the_work(tmp_path: Path) -> None:
    found = done(paths(tmp_path), here, marked)
    assert found == [len(path) for path in paths(tmp_path)]
    assert 0 < len(list(tmp_path.iterdir())) < COUNT - 1


def test_what_a_process_was_ended_over_is_done_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = ChildProcess.start

    def doomed(function: Callable[[Any], Any]) -> ChildProcess:
        worker = start(function)
        threading.Timer(0.4, worker.process.kill).start()
        return worker

    monkeypatch.setattr(ChildProcess, "start", doomed)
    tasks = [0.05] * COUNT
    assert done(tasks, time.sleep) == [None] * COUNT


def test_processes_that_do_not_start_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_process, "WORKER", "no.such.module")
    assert done(["a"] * COUNT, len) == [1] * COUNT


def test_what_cannot_be_sent_is_done_here() -> None:
    tasks: list[Callable[[], int]] = [lambda n=n: n for n in range(COUNT)]  # type: ignore[misc]
    assert done(tasks, called) == list(range(COUNT))


def called(task: Callable[[], int]) -> int:
    time.sleep(0.02)
    return task()


def test_work_begins_before_all_of_it_is_known() -> None:
    begun = threading.Event()
    with SharedWork(lambda task: begun.set() or task, lambda count: 0) as work:
        work.add(1)
        assert begun.wait(60)
        work.add(2)
        assert work.results() == [1, 2]


def test_an_error_is_raised_where_results_are_asked_for() -> None:
    with SharedWork(int, lambda count: 0) as work:
        work.add("x")
        work.add("2")
        with pytest.raises(ValueError, match="invalid literal"):
            work.results()


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
