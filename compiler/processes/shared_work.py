"""Many tasks done by this thread and by several processes beside it."""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Generic, TypeVar

from .child_process import ChildProcess, Raised

__all__ = ["build_with_workers"]

Task = TypeVar("Task")
Built = TypeVar("Built")

_working = threading.Lock()
"""Held by the one thread of this process that has workers."""


def build_with_workers(
    tasks: Sequence[Task],
    build: Callable[[Task], Built],
    count: int,
    there: Callable[[Task], Built] | None = None,
) -> list[Built]:
    """``build`` of each: by this thread, and by ``count`` processes.

    there: what the processes do, a function of a module; the same by default.
    What a worker cannot build, or does not live to, this thread builds: errors are raised here.
    While another thread has workers, this one does without.
    """
    mine = _working.acquire(blocking=False)
    try:
        return _Building(tasks, build).run(there or build, count if mine else 0)
    finally:
        if mine:
            _working.release()


class _Building(Generic[Task, Built]):
    """Tasks go by their numbers; ``_changes`` gets an item whenever a worker has ended one."""

    def __init__(self, tasks: Sequence[Task], build: Callable[[Task], Built]) -> None:
        self._tasks, self._build = tasks, build
        self._todo = deque(range(len(tasks)))
        self._built: dict[int, Built] = {}
        self._changes: SimpleQueue[None] = SimpleQueue()

    def run(self, there: Callable[[Task], Built], count: int) -> list[Built]:
        workers = [ChildProcess.start(there) for _ in range(count)]
        threads = [threading.Thread(target=self._serve, args=(each,)) for each in workers]
        for thread in threads:
            thread.start()
        try:
            while len(self._built) < len(self._tasks):
                while (number := self._next()) is not None:
                    self._built[number] = self._build(self._tasks[number])
                if len(self._built) < len(self._tasks):
                    self._changes.get()
        finally:
            self._todo.clear()
            for worker, thread in zip(workers, threads, strict=True):
                worker.process.kill()
                thread.join()
                worker.end()
        return [self._built[number] for number in range(len(self._tasks))]

    def _next(self) -> int | None:
        try:
            return self._todo.popleft()
        except IndexError:
            return None

    def _serve(self, worker: ChildProcess) -> None:
        """Give tasks to a worker, once it has started, until one comes back."""
        try:
            worker.socket.recv()
        except (OSError, EOFError):
            return
        answer: Built | Raised
        while (number := self._next()) is not None:
            try:
                worker.socket.send(self._tasks[number])
                answer = worker.socket.recv()
            except Exception:
                # Whatever cannot be sent or read, or nobody answers, is built by the other thread.
                answer = Raised("", "")
            if isinstance(answer, Raised):
                self._todo.append(number)
                self._changes.put(None)
                return
            self._built[number] = answer
            self._changes.put(None)
