"""Measurements on a Dask cluster; on each worker in a process beside it, as on this machine."""

from collections.abc import Iterator
from typing import Generic, TypeVar

from distributed import Client, KilledWorker, wait
from distributed.client import Future

from ..errors import TuneError
from .problem import Measured
from .workers import Request, isolated

__all__ = ["ClusterWorkers"]

Name = TypeVar("Name")

CONNECT_SECONDS = 15


class ClusterWorkers(Generic[Name]):
    """The workers of a Dask scheduler; Dovetail must be installed on each of them.

    What a lost worker had is measured by another.
    Raises TuneError when the scheduler cannot be reached, has no workers, or is lost.
    """

    def __init__(self, address: str, seconds: float) -> None:
        self._address, self._seconds = address, seconds
        try:
            self._client = Client(address, timeout=CONNECT_SECONDS)
        except (OSError, ValueError) as error:
            raise TuneError(f"no Dask scheduler answers at {address}: {error}") from None
        if not self._client.nthreads():
            self._client.close()
            raise TuneError(f"the Dask scheduler at {address} has no workers; start some")

    def close(self) -> None:
        """Leave the cluster."""
        self._client.close()

    def run(self, request: Request[Name]) -> Iterator[tuple[Name, Measured]]:
        running: dict[Future, Name] = {}
        try:
            while True:
                # One at a time on each worker, so that they do not disturb each other.
                while len(running) < max(1, len(self._client.nthreads())):
                    job = request()
                    if job is None:
                        break
                    future = self._client.submit(isolated, job[1], self._seconds, pure=False)
                    running[future] = job[0]
                if not running:
                    return
                for future in wait(list(running), return_when="FIRST_COMPLETED").done:
                    yield running.pop(future), self._outcome(future)
        except OSError as error:
            raise TuneError(
                f"the Dask scheduler at {self._address} is lost: {error}; what was measured is "
                "kept: give the same command again"
            ) from None

    def _outcome(self, future: Future) -> Measured:
        error = future.exception()
        if error is None:
            found = future.result()
            assert isinstance(found, Measured)
            return found
        if isinstance(error, KilledWorker):
            return Measured(None, error="several workers of the cluster died with it")
        return Measured(None, error=f"{type(error).__name__}: {error}")
