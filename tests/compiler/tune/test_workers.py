"""Crashes, hangs and errors of candidates cost those candidates only."""

import os
import signal
from collections import deque

import pytest

from dovetail.compiler.errors import TuneError
from dovetail.compiler.tune.problem import Measured
from dovetail.compiler.tune.workers import LocalWorkers, Request, isolated

from .jobs import DoesNot

ENOUGH = 600.0
"""Seconds, on however busy a machine."""


def run(jobs: list[DoesNot]) -> dict[int, Measured]:
    """Result of each job, by its number."""
    workers: LocalWorkers[int] = LocalWorkers(1, ENOUGH)
    waiting = deque(enumerate(jobs))
    try:
        return dict(workers.run(lambda: waiting.popleft() if waiting else None))
    finally:
        workers.close()


def one(job: DoesNot) -> Request[None]:
    """It, and then no more."""
    jobs = [job]
    return lambda: (None, jobs.pop()) if jobs else None


def test_a_candidate_that_crashes_or_fails_costs_only_itself() -> None:
    kinds = ["well", "return", "well", "raise", "well"]
    found = run([DoesNot(how, cost=n) for n, how in enumerate(kinds)])
    assert [found[n].cost for n in range(5)] == [0, None, 2, None, 4]
    assert "ended by signal 6" in found[1].error
    assert "ValueError: planted" in found[3].error


def test_a_candidate_that_hangs_costs_only_itself() -> None:
    workers: LocalWorkers[None] = LocalWorkers(1, 0.2)
    ((_, hung),) = workers.run(one(DoesNot("hang")))
    assert "longer than 0.2 s" in hung.error
    workers.pool._seconds = ENOUGH
    ((_, measured),) = workers.run(one(DoesNot("well")))
    assert measured.cost == 1.0
    workers.close()


def test_a_worker_that_is_killed_while_it_waits_is_replaced() -> None:
    workers: LocalWorkers[None] = LocalWorkers(1, ENOUGH)
    for _ in range(2):
        ((_, measured),) = workers.run(one(DoesNot("well")))
        assert measured.cost == 1.0
        for worker in workers.pool._idle:
            os.kill(worker.process.pid, signal.SIGKILL)
            worker.process.wait()
    workers.close()


def test_processes_that_all_die_end_the_search_with_a_clear_error() -> None:
    with pytest.raises(TuneError, match="processes that were started ended before any"):
        run([DoesNot("return")] * 6)


def test_a_measurement_in_a_process_of_its_own_survives_a_crash() -> None:
    assert isolated(DoesNot("return"), ENOUGH).cost is None
    assert isolated(DoesNot("well", 3.0), ENOUGH).cost == 3.0
