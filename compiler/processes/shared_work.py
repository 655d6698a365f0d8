"""Many tasks done by a thread of this process and by several other processes."""

import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from .child_process import ChildProcess, Raised

__all__ = ["SharedWork"]

Task = TypeVar("Task")
Built = TypeVar("Built")

_working = threading.Lock()
"""Held by the only work of this process that has workers."""


class SharedWork(Generic[Task, Built]):
    """Tasks that are done from when they are added on, while the thread that adds them goes on.

    build: what comes of a task, called in a thread of this process.  workers: of the number of
    tasks, how many processes are to help.  there: what the processes do, a function of a module;
    the same by default.
    What a worker cannot build, or does not live to, this process builds: errors are raised here.
    While other work of this process has workers, this one does without.
    """

    def __init__(
        self,
        build: Callable[[Task], Built],
        workers: Callable[[int], int],
        there: Callable[[Task], Built] | None = None,
    ) -> None:
        self._build, self._workers, self._there = build, workers, there or build
        self._tasks: list[Task] = []
        self._todo = deque[int]()
        self._built: dict[int, Built] = {}
        self._error: BaseException | None = None
        self._ended = self._mine = False
        self._changed = threading.Condition()
        self._helpers: list[ChildProcess] = []
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> "SharedWork[Task, Built]":
        return self

    def __exit__(self, *_: object) -> None:
        """End it, with what is not done left undone."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        for worker in self._helpers:
            worker.process.kill()
        for thread in self._threads:
            thread.join()
        for worker in self._helpers:
            worker.end()
        if self._mine:
            _working.release()

    def add(self, task: Task) -> None:
        """Have one more done."""
        with self._changed:
            self._todo.append(len(self._tasks))
            self._tasks.append(task)
            self._changed.notify_all()
        if not self._threads:
            self._start(self._work)
        while len(self._helpers) < self._workers(len(self._tasks)):
            self._mine = self._mine or _working.acquire(blocking=False)
            if not self._mine:
                break
            worker = ChildProcess.start(self._there)
            self._helpers.append(worker)
            self._start(self._serve, worker)

    def results(self) -> list[Built]:
        """Results of all tasks, in the order in which they were added.

        Raises what ``build`` raised.
        """
        with self._changed:
            while len(self._built) < len(self._tasks):
                if self._error is not None:
                    raise self._error
                self._changed.wait()
        return [self._built[number] for number in range(len(self._tasks))]

    def _start(self, target: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments)
        self._threads.append(thread)
        thread.start()

    def _next(self) -> int | None:
        """The number of a task, as soon as there is one; None at the end."""
        with self._changed:
            while not (self._todo or self._ended):
                self._changed.wait()
            return None if self._ended else self._todo.popleft()

    def _keep(self, number: int, built: Built) -> None:
        with self._changed:
            self._built[number] = built
            self._changed.notify_all()

    def _work(self) -> None:
        try:
            while (number := self._next()) is not None:
                self._keep(number, self._build(self._tasks[number]))
        except BaseException as error:
            with self._changed:
                self._error = error
                self._changed.notify_all()

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
                with self._changed:
                    self._todo.append(number)
                    self._changed.notify_all()
                return
            self._keep(number, answer)
