"""Crashes, hangs and errors of candidates cost those candidates only."""

import os
import signal
from collections import deque

import pytest

from dovetail.compiler.errors import TuneError
from dovetail.compiler.tune.problem import Measured
from dovetail.compiler.tune.workers import LocalWorkers, isolated

from .jobs import DoesNot


def run(jobs: list[DoesNot], count: int, seconds: float = 20.0) -> dict[int, Measured]:
    """What came of each job, by its number."""
    workers: LocalWorkers[int] = LocalWorkers(count, seconds)
    waiting = deque(enumerate(jobs))
    try:
        return dict(workers.run(lambda: waiting.popleft() if waiting else None))
    finally:
        workers.close()


def test_a_candidate_that_crashes_hangs_or_fails_costs_only_itself() -> None:
    kinds = ["well", "return", "well", "raise", "hang", "well"]
    found = run([DoesNot(how, cost=n) for n, how in enumerate(kinds)], 1, seconds=4.0)
    assert [found[n].cost for n in range(6)] == [0, None, 2, None, None, 5]
    assert "ended by signal 6" in found[1].error
    assert "ValueError: planted" in found[3].error
    assert "longer than 4 s" in found[4].error


def test_a_worker_that_is_killed_while_it_waits_is_replaced() -> None:
    workers: LocalWorkers[None] = LocalWorkers(1, 20.0)
    for _ in range(2):
        jobs = deque([(None, DoesNot("well"))])
        ((_, measured),) = workers.run(lambda jobs=jobs: jobs.popleft() if jobs else None)  # type: ignore[misc]
        assert measured.cost == 1.0
        for worker in workers.pool._idle:
            os.kill(worker.process.pid, signal.SIGKILL)
            worker.process.wait()
    workers.close()


def test_processes_that_all_die_end_the_search_with_a_clear_error() -> None:
    with pytest.raises(TuneError, match="processes that were started ended before any"):
        run([DoesNot("return")] * 6, 1)


def test_a_measurement_in_a_process_of_its_own_survives_a_crash() -> None:
    assert isolated(DoesNot("return"), 20.0).cost is None
    assert isolated(DoesNot("well", 3.0), 20.0).cost == 3.0
