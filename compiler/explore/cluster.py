"""Running tasks on a Dask cluster."""

from collections.abc import Iterator

from distributed import Client, KilledWorker, wait
from distributed.client import Future

from ..errors import ExploreError
from .evaluate import Failure, Performance, Task, attempt
from .pools import Finished

__all__ = ["ClusterPool"]

CONNECT_SECONDS = 15


class ClusterPool:
    """The workers of a Dask scheduler; Dovetail must be installed on each of them.

    Raises ExploreError when the scheduler cannot be reached, has no workers, or is lost.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        try:
            self._client = Client(address, timeout=CONNECT_SECONDS)
        except (OSError, ValueError) as error:
            raise ExploreError(f"no Dask scheduler answers at {address}: {error}") from None
        if not self._client.nthreads():
            self._client.close()
            raise ExploreError(f"the Dask scheduler at {address} has no workers; start some")

    def run(self, tasks: Iterator[Task]) -> Iterator[Finished]:
        running: dict[Future, Task] = {}
        try:
            while True:
                # Workers may come and go.
                room = 2 * max(1, sum(self._client.nthreads().values()))
                while len(running) < room:
                    task = next(tasks, None)
                    if task is None:
                        break
                    running[self._client.submit(attempt, task, pure=False)] = task
                if not running:
                    return
                done = wait(list(running), return_when="FIRST_COMPLETED").done
                for future in done:
                    yield running.pop(future), self._outcome(future)
        except OSError as error:
            raise ExploreError(
                f"the Dask scheduler at {self._address} is lost: {error}; all results so far are "
                "kept: give the same command again"
            ) from None
        finally:
            self._client.close()

    def _outcome(self, future: Future) -> Performance | Failure:
        try:
            return future.result()
        except KilledWorker as error:
            return Failure("WorkerDied", f"every worker that tried it died: {error}")
