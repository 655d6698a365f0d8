"""Calls of a function in processes of this machine, each of which may crash or hang."""

import time
from collections import deque
from collections.abc import Callable, Generator
from math import inf
from multiprocessing.connection import wait
from typing import Any, Generic, TypeVar

from dovetail.isa.frozen import frozen

from ..errors import CompilerError
from .child_process import ChildProcess, Raised, Ready

__all__ = ["Lost", "ProcessPool", "Request"]

Name = TypeVar("Name")
Argument = TypeVar("Argument")
Request = Callable[[], tuple[Name, Argument] | None]
"""Another argument and what it is called; None when there is none now."""

HOPELESS = 4
"""Processes that died or hung one after the other, before any has answered."""


@frozen
class Lost:
    """The fate of a process that had an argument, in words."""

    how: str


@frozen
class _Running(Generic[Name]):
    """until: when it has taken too long."""

    worker: ChildProcess
    name: Name
    until: float


class ProcessPool(Generic[Name, Argument]):
    """``count`` processes; a call that takes longer than ``seconds`` is lost.

    Raises ``problem`` when no process lives long enough to answer anything.
    """

    def __init__(
        self,
        function: Callable[[Argument], object],
        count: int,
        problem: type[CompilerError],
        seconds: float = inf,
    ) -> None:
        self._function, self._count, self._seconds = function, count, seconds
        self._problem = problem
        self._idle: deque[ChildProcess] = deque()
        self._lost, self._answered = 0, False

    def close(self) -> None:
        """End all processes."""
        while self._idle:
            self._idle.pop().end()

    def run(
        self, request: Request[Name, Argument]
    ) -> Generator[tuple[Name, Any | Raised | Lost], None, None]:
        """Results of arguments, as calls end; arguments are asked for as processes get free.

        It ends when no call is under way and no argument is given.
        """
        busy: list[_Running[Name]] = []
        ahead: deque[tuple[Name, Argument]] = deque()
        try:
            while True:
                # One more is asked for than there are processes: making it may take time.
                while len(busy) + len(ahead) <= self._count:
                    given = request()
                    if given is None:
                        break
                    ahead.append(given)
                    if len(busy) < self._count:
                        busy.append(self._begun(*ahead.popleft()))
                while ahead and len(busy) < self._count:
                    busy.append(self._begun(*ahead.popleft()))
                if not busy:
                    return
                until = min(each.until for each in busy)
                seconds = None if until == inf else max(until - time.monotonic(), 0)
                ready = set(map(id, wait([each.worker.socket for each in busy], seconds)))
                now = time.monotonic()
                for each in list(busy):
                    if id(each.worker.socket) not in ready and now < each.until:
                        continue
                    found = self._answer(each.worker, id(each.worker.socket) in ready)
                    if not isinstance(found, Ready):
                        busy.remove(each)
                        yield each.name, found
        finally:
            for each in busy:
                each.worker.end()

    def _begun(self, name: Name, argument: Argument) -> _Running[Name]:
        """The call under way; processes that were killed while they waited are left out."""
        while True:
            worker = self._idle.pop() if self._idle else ChildProcess.start(self._function)
            try:
                worker.socket.send(argument)
            except OSError:
                worker.end()
                self._count_lost()
                continue
            return _Running(worker, name, time.monotonic() + self._seconds)

    def _answer(self, worker: ChildProcess, ready: bool) -> Any | Raised | Ready | Lost:
        if not ready:
            worker.end()
            self._count_lost()
            return Lost(f"it took longer than {self._seconds:g} s")
        try:
            found = worker.socket.recv()
        except (EOFError, OSError):
            status = worker.process.wait()
            worker.end()
            self._count_lost()
            how = f"signal {-status}" if status < 0 else f"exit status {status}"
            return Lost(f"its process ended by {how}")
        if not isinstance(found, Ready):
            self._idle.append(worker)
            self._answered = True
        return found

    def _count_lost(self) -> None:
        self._lost += 1
        if self._lost >= HOPELESS and not self._answered:
            raise self._problem(
                f"{self._lost} processes that were started ended before any had answered; is there "
                "memory for them?"
            )
