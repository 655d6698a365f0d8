"""Calls of a function on the workers of a Dask scheduler."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from distributed import Client, KilledWorker, wait
from distributed.client import Future

from ..errors import CompilerError
from .child_process import Raised
from .pool import Lost, Request

__all__ = ["Cluster"]

Name = TypeVar("Name")
Argument = TypeVar("Argument")

CONNECT_SECONDS = 15


class Cluster(Generic[Name, Argument]):
    """The workers of a scheduler; Dovetail must be installed on each of them.

    What a lost worker had is done by another.
    room: how many calls may be under way, by the threads of each worker.
    Raises ``problem`` when the scheduler cannot be reached, has no workers, or is lost.
    """

    def __init__(
        self,
        function: Callable[[Argument], object],
        address: str,
        problem: type[CompilerError],
        room: Callable[[Mapping[str, int]], int],
    ) -> None:
        self._function, self._address = function, address
        self._problem, self._room = problem, room
        try:
            self._client = Client(address, timeout=CONNECT_SECONDS)
        except (OSError, ValueError) as error:
            raise problem(f"no Dask scheduler answers at {address}: {error}") from None
        if not self._client.nthreads():
            self._client.close()
            raise problem(f"the Dask scheduler at {address} has no workers; start some")

    def close(self) -> None:
        """Leave the cluster."""
        self._client.close()

    def run(self, request: Request[Name, Argument]) -> Iterator[tuple[Name, Any | Raised | Lost]]:
        """As of ``ProcessPool``."""
        running: dict[Future, Name] = {}
        try:
            while True:
                # Workers may come and go.
                while len(running) < max(1, self._room(self._client.nthreads())):
                    given = request()
                    if given is None:
                        break
                    name, argument = given
                    running[self._client.submit(self._function, argument, pure=False)] = name
                if not running:
                    return
                for future in wait(list(running), return_when="FIRST_COMPLETED").done:
                    yield running.pop(future), self._answer(future)
        except OSError as error:
            raise self._problem(
                f"the Dask scheduler at {self._address} is lost: {error}; all results so far are "
                "kept: give the same command again"
            ) from None

    def _answer(self, future: Future) -> Any | Raised | Lost:
        error = future.exception()
        if error is None:
            return future.result()
        if isinstance(error, KilledWorker):
            return Lost(f"every worker that tried it died: {error}")
        return Raised(type(error).__name__, str(error))
