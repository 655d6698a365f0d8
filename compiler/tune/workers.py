"""Measurements in processes of this machine, each of which may crash or hang at no further cost."""

import atexit
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import Generic, Protocol, TypeVar

from ..errors import TuneError
from ..processes.child_process import ChildProcess
from .problem import Job, Measured

__all__ = ["LocalWorkers", "Request", "Workers", "isolated"]

Name = TypeVar("Name")
Request = Callable[[], tuple[Name, Job] | None]
"""Another job and what it is called; None when there is none now."""

WORKER = f"{__package__}.worker"
HOPELESS = 4
"""Workers that died or hung one after the other, before any has measured something."""


class Workers(Protocol[Name]):
    """Something that measures."""

    def run(self, request: Request[Name]) -> Iterator[tuple[Name, Measured]]:
        """What comes of jobs, as they end; jobs are asked for as workers get free.

        It ends when none is under way and none is given.
        """
        ...

    def close(self) -> None:
        """Let go of processes and connections."""
        ...


@dataclass(frozen=True, slots=True)
class _Running(Generic[Name]):
    """until: when it has taken too long."""

    worker: ChildProcess
    name: Name
    until: float


class LocalWorkers(Generic[Name]):
    """``count`` processes; a job that takes longer than ``seconds`` has failed.

    Raises TuneError when no process lives long enough to measure anything.
    """

    def __init__(self, count: int, seconds: float) -> None:
        self._count, self._seconds = count, seconds
        self._idle: deque[ChildProcess] = deque()
        self._lost, self._measured = 0, False

    def close(self) -> None:
        """End all processes."""
        while self._idle:
            self._idle.pop().end()

    def run(self, request: Request[Name]) -> Iterator[tuple[Name, Measured]]:
        busy: list[_Running[Name]] = []
        ahead: deque[tuple[Name, Job]] = deque()
        try:
            while True:
                # One more is asked for than there are workers: making it takes time.
                while len(busy) + len(ahead) <= self._count:
                    job = request()
                    if job is None:
                        break
                    ahead.append(job)
                    if len(busy) < self._count:
                        busy.append(self._begun(*ahead.popleft()))
                while ahead and len(busy) < self._count:
                    busy.append(self._begun(*ahead.popleft()))
                if not busy:
                    return
                seconds = max(min(each.until for each in busy) - time.monotonic(), 0)
                ready = set(map(id, wait([each.worker.socket for each in busy], seconds)))
                now = time.monotonic()
                for each in list(busy):
                    if id(each.worker.socket) in ready or now >= each.until:
                        busy.remove(each)
                        yield each.name, self._outcome(each.worker, id(each.worker.socket) in ready)
        finally:
            for each in busy:
                each.worker.end()

    def _begun(self, name: Name, job: Job) -> _Running[Name]:
        """The job at work on a worker; those that were killed while they waited are left out."""
        while True:
            worker = self._idle.pop() if self._idle else ChildProcess.start(WORKER)
            try:
                worker.socket.send(job)
            except OSError:
                worker.end()
                self._count_lost()
                continue
            return _Running(worker, name, time.monotonic() + self._seconds)

    def _outcome(self, worker: ChildProcess, ready: bool) -> Measured:
        if not ready:
            worker.end()
            self._count_lost()
            return Measured(None, error=f"it took longer than {self._seconds:g} s")
        try:
            found = worker.socket.recv()
        except (EOFError, OSError):
            status = worker.process.wait()
            worker.end()
            self._count_lost()
            how = f"signal {-status}" if status < 0 else f"exit status {status}"
            return Measured(None, error=f"the process that measured it ended by {how}")
        assert isinstance(found, Measured)
        self._idle.append(worker)
        self._measured = True
        return found

    def _count_lost(self) -> None:
        self._lost += 1
        if self._lost >= HOPELESS and not self._measured:
            raise TuneError(
                f"{HOPELESS} processes that measure ended before they had measured anything; is "
                "there memory for them?"
            )


_own: list[LocalWorkers[None]] = []


def isolated(job: Job, seconds: float) -> Measured:
    """Measure in a process beside this one, which is kept for the next job."""
    if not _own:
        _own.append(LocalWorkers(1, seconds))
        atexit.register(_own[0].close)
    jobs = deque([(None, job)])
    ((_, found),) = _own[0].run(lambda: jobs.popleft() if jobs else None)
    return found
