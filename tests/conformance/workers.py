"""Runs cases in forked processes, each case under a time limit; a crash costs one case."""

import multiprocessing as mp
import os
import resource
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from .backend import Case, kernel_calls

__all__ = ["MEMORY_BYTES", "Outcome", "run_cases"]

MEMORY_BYTES = 12 << 30
"""Address space of a worker."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """reason: None when the case passed.  seconds: compiling included.

    operators: of the model.  kernels: calls of machine code.
    """

    name: str
    reason: str | None
    seconds: float
    operators: tuple[str, ...] = ()
    kernels: int = 0


@dataclass(slots=True)
class _Worker:
    process: Any
    pipe: Connection
    name: str
    started: float


def run_cases(
    cases: Mapping[str, Case],
    names: Iterable[str],
    jobs: int,
    limit_s: float,
    report: Callable[[Outcome], None],
    memory_bytes: int | None = MEMORY_BYTES,
) -> None:
    """Run the named cases; ``report`` each as it ends.

    memory_bytes: of a worker's address space; None for no limit.
    """
    waiting = list(names)[::-1]
    workers: list[_Worker] = []
    while waiting or workers:
        while waiting and len(workers) < jobs:
            workers.append(_start(cases, waiting.pop(), memory_bytes))
        ready = wait([worker.pipe for worker in workers], timeout=0.5)
        for worker in list(workers):
            outcome = _outcome(worker, worker.pipe in ready, limit_s)
            if outcome is None:
                continue
            report(outcome)
            if worker.process.is_alive() and waiting:
                worker.name, worker.started = waiting.pop(), time.monotonic()
                worker.pipe.send(worker.name)
                continue
            workers.remove(worker)
            if worker.process.is_alive():
                worker.pipe.send(None)
            worker.process.join()


def _start(cases: Mapping[str, Case], name: str, memory_bytes: int | None) -> _Worker:
    context = mp.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(cases, theirs, memory_bytes), daemon=True)
    process.start()
    theirs.close()
    ours.send(name)
    return _Worker(process, ours, name, time.monotonic())


def _outcome(worker: _Worker, ready: bool, limit_s: float) -> Outcome | None:
    seconds = time.monotonic() - worker.started
    if ready:
        try:
            return Outcome(worker.name, *worker.pipe.recv())
        except EOFError:
            worker.process.join()
            reason = f"crash: exit status {worker.process.exitcode}"
            return Outcome(worker.name, reason, seconds)
    if seconds > limit_s:
        worker.process.kill()
        worker.process.join()
        return Outcome(worker.name, f"time limit of {limit_s:g} s", seconds)
    return None


def _work(cases: Mapping[str, Case], pipe: Connection, memory_bytes: int | None) -> None:
    if memory_bytes is not None:
        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    warnings.simplefilter("ignore")
    while (name := pipe.recv()) is not None:
        start, before = time.monotonic(), kernel_calls()
        reason = _reason(cases[name])
        operators = cases[name].operators()
        pipe.send((reason, time.monotonic() - start, operators, kernel_calls() - before))


def _reason(case: Case) -> str | None:
    try:
        case.run()
    except Exception as error:
        text = " ".join(str(error).split())
        return f"{type(error).__name__}: {text}"[:600]
    return None
