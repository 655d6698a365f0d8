"""Measurements: each in a process, of this machine or of a worker of a cluster.

A measurement may crash or hang at no further cost.
"""

import atexit
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from ..errors import TuneError
from ..processes.child_process import Raised
from ..processes.pool import Lost, ProcessPool
from .problem import Job, Measured

__all__ = ["ClusterWorkers", "LocalWorkers", "Request", "Workers", "isolated"]

Name = TypeVar("Name")
Request = Callable[[], tuple[Name, Job] | None]
"""Another job and what it is called; None when there is none now."""


class Workers(Protocol[Name]):
    """Something that measures."""

    def run(self, request: Request[Name]) -> Iterator[tuple[Name, Measured]]:
        """Results of jobs, as they end; jobs are asked for as workers get free.

        It ends when none is under way and none is given.
        """
        ...

    def close(self) -> None:
        """Let go of processes and connections."""
        ...


class LocalWorkers(Generic[Name]):
    """``count`` processes; a job that takes longer than ``seconds`` has failed.

    Raises TuneError when no process lives long enough to measure anything.
    """

    def __init__(self, count: int, seconds: float) -> None:
        self.pool: ProcessPool[Name, Job] = ProcessPool(_measured, count, TuneError, seconds)

    def close(self) -> None:
        """End all processes."""
        self.pool.close()

    def run(self, request: Request[Name]) -> Iterator[tuple[Name, Measured]]:
        for name, answer in self.pool.run(request):
            yield name, _read(answer)


class ClusterWorkers(Generic[Name]):
    """The workers of a Dask scheduler, one job at a time on each, so that none disturbs another.

    Raises TuneError when the scheduler cannot be reached, has no workers, or is lost.
    """

    def __init__(self, address: str, seconds: float) -> None:
        from ..processes.cluster import Cluster

        measure = partial(isolated, seconds=seconds)
        self._cluster: Cluster[Name, Job] = Cluster(measure, address, TuneError, len)

    def close(self) -> None:
        """Leave the cluster."""
        self._cluster.close()

    def run(self, request: Request[Name]) -> Iterator[tuple[Name, Measured]]:
        for name, answer in self._cluster.run(request):
            yield name, _read(answer)


def _measured(job: Job) -> Measured:
    try:
        return job.run()
    except MemoryError:
        return Measured(None, error="no memory for it")


def _read(answer: Any | Raised | Lost) -> Measured:
    if isinstance(answer, Lost):
        return Measured(None, error=answer.how)
    if isinstance(answer, Raised):
        return Measured(None, error=f"{answer.kind}: {answer.message}")
    assert isinstance(answer, Measured)
    return answer


_own: list[LocalWorkers[None]] = []


def isolated(job: Job, seconds: float) -> Measured:
    """Measure in another process, which is kept for the next job."""
    if not _own:
        _own.append(LocalWorkers(1, seconds))
        atexit.register(_own[0].close)
    jobs = deque([(None, job)])
    ((_, found),) = _own[0].run(lambda: jobs.popleft() if jobs else None)
    return found
