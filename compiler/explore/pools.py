"""Evaluating tasks in several processes, even when some of them die."""

from collections import deque
from collections.abc import Iterator
from typing import Any, Protocol

from ..errors import ExploreError
from ..processes.child_process import Raised
from ..processes.pool import Lost, ProcessPool
from .evaluate import Failure, Performance, Task, attempt

__all__ = ["ClusterPool", "Finished", "LocalPool", "Pool"]

Finished = tuple[Task, Performance | Failure]

DIED = Failure("WorkerDied", "the process that worked on it died twice; out of memory?")


class Pool(Protocol):
    """Something that evaluates tasks."""

    def run(self, tasks: Iterator[Task]) -> Iterator[Finished]:
        """Each task with what came of it, in the order in which they end.

        A task is taken from ``tasks`` when there is room for it, not before.
        """
        ...


class LocalPool:
    """Processes of this machine; a task with which two have died has failed.

    Raises ExploreError when no process lives long enough to do anything.
    """

    def __init__(self, workers: int) -> None:
        self._workers = workers

    def run(self, tasks: Iterator[Task]) -> Iterator[Finished]:
        pool: ProcessPool[Task, Task] = ProcessPool(attempt, self._workers, ExploreError)
        again: deque[Task] = deque()
        seen_dying: set[Task] = set()

        def request() -> tuple[Task, Task] | None:
            task = again.popleft() if again else next(tasks, None)
            return None if task is None else (task, task)

        running = pool.run(request)
        try:
            for task, answer in running:
                if not isinstance(answer, Lost):
                    yield task, _read(answer)
                elif task in seen_dying:
                    yield task, DIED
                else:
                    seen_dying.add(task)
                    again.append(task)
        finally:
            running.close()
            pool.close()


class ClusterPool:
    """The workers of a Dask scheduler.

    Raises ExploreError when the scheduler cannot be reached, has no workers, or is lost.
    """

    def __init__(self, address: str) -> None:
        from ..processes.cluster import Cluster

        self._cluster: Cluster[Task, Task] = Cluster(
            attempt, address, ExploreError, lambda threads: 2 * sum(threads.values())
        )

    def run(self, tasks: Iterator[Task]) -> Iterator[Finished]:
        given = ((task, task) for task in tasks)
        try:
            for task, answer in self._cluster.run(lambda: next(given, None)):
                yield task, _read(answer)
        finally:
            self._cluster.close()


def _read(answer: Any | Raised | Lost) -> Performance | Failure:
    if isinstance(answer, Lost):
        return Failure("WorkerDied", answer.how)
    if isinstance(answer, Raised):
        return Failure(answer.kind, answer.message)
    assert isinstance(answer, Performance | Failure)
    return answer
