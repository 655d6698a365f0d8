"""Running tasks in several processes of this machine, even when some of them die."""

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Protocol

from ..errors import ExploreError
from .evaluate import Failure, Performance, Task, attempt

__all__ = ["Finished", "LocalPool", "Pool"]

Finished = tuple[Task, Performance | Failure]

DIED = Failure("WorkerDied", "the process that worked on it alone died twice; out of memory?")

HOPELESS = 3
"""Tasks that failed like that, and none that did not."""
NO_WORKERS = (
    "every process that was started died; is there memory for it? A script that explores must do "
    "so under if __name__ == '__main__', because each process imports it"
)


class Pool(Protocol):
    """Something that evaluates tasks."""

    def run(self, tasks: Iterator[Task]) -> Iterator[Finished]:
        """Each task with what came of it, in the order in which they end.

        A task is taken from ``tasks`` when there is room for it, not before.
        """
        ...


class LocalPool:
    """Processes of this machine.

    When one dies, all tasks that were under way are done again, one at a time; one with which a
    process then dies twice has failed.

    Raises ExploreError when no process lives long enough to do anything.
    """

    def __init__(self, workers: int) -> None:
        self._workers = workers

    def run(self, tasks: Iterator[Task]) -> Iterator[Finished]:
        executor = self._start()
        running: dict[Future[Performance | Failure], Task] = {}
        suspects: deque[Task] = deque()
        seen_dying: set[Task] = set()
        ended, failed = 0, 0
        try:
            while True:
                alone = bool(suspects) and not running
                died: list[Task] = []
                while not died and len(running) < (1 if alone else 2 * self._workers):
                    if suspects and not alone:
                        break
                    task = suspects.popleft() if alone else next(tasks, None)
                    if task is None:
                        break
                    try:
                        running[executor.submit(attempt, task)] = task
                    except BrokenProcessPool:
                        died.append(task)
                if not running and not died:
                    return
                done = wait(running, return_when=FIRST_COMPLETED).done if not died else set()
                for future in done:
                    task = running.pop(future)
                    try:
                        outcome = future.result()
                    except BrokenProcessPool:
                        died.append(task)
                    else:
                        ended += 1
                        yield task, outcome
                if not died:
                    continue
                died += running.values()
                running.clear()
                executor.shutdown(wait=False)
                executor = self._start()
                if alone and died[0] in seen_dying:
                    failed += 1
                    if failed == HOPELESS and not ended:
                        raise ExploreError(NO_WORKERS)
                    yield died[0], DIED
                else:
                    seen_dying |= set(died) if alone else set()
                    suspects.extend(died)
        finally:
            executor.shutdown(cancel_futures=True)

    def _start(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(
            self._workers, multiprocessing.get_context("spawn"), initializer=_begin_worker
        )


def _begin_worker() -> None:
    """Leave interrupts to the parent, and end when it does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: "multiprocessing.process.BaseProcess") -> None:
    parent.join()
    os._exit(1)
