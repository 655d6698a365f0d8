"""Measurements on a Dask cluster of this machine."""

from collections import deque
from pathlib import Path
from time import monotonic, sleep

import pytest

from dovetail.compiler.errors import TuneError
from dovetail.compiler.tune.workers import ClusterWorkers

from .jobs import DoesNot

distributed = pytest.importorskip("distributed", reason="needs distributed")


def left(cluster: "distributed.LocalCluster") -> None:
    """Wait until the scheduler knows of no client: whoever does not leave stays."""
    deadline = monotonic() + 30
    while cluster.scheduler.clients.keys() - {"fire-and-forget"}:
        assert monotonic() < deadline, cluster.scheduler.clients
        sleep(0.01)


def test_a_crash_on_a_worker_costs_one_candidate() -> None:
    kinds = ["well", "return", "well", "raise"]
    waiting = deque(enumerate(DoesNot(how, n) for n, how in enumerate(kinds)))
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0"
    ) as cluster:
        workers: ClusterWorkers[int] = ClusterWorkers(cluster.scheduler_address, 20.0)
        found = dict(workers.run(lambda: waiting.popleft() if waiting else None))
        workers.close()
        left(cluster)
    assert [found[n].cost for n in range(4)] == [0, None, 2, None]
    assert "ended by signal 6" in found[1].error


def test_a_lost_worker_of_the_cluster_loses_nothing(tmp_path: Path) -> None:
    waiting = deque(
        enumerate([DoesNot("kill", 1.0, str(tmp_path / "killed")), DoesNot("well", 2.0)])
    )
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0"
    ) as cluster:
        workers: ClusterWorkers[int] = ClusterWorkers(cluster.scheduler_address, 20.0)
        found = dict(workers.run(lambda: waiting.popleft() if waiting else None))
        workers.close()
    assert {number: each.cost for number, each in found.items()} == {0: 1.0, 1: 2.0}


def test_a_scheduler_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from dovetail.compiler.processes import cluster

    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 0.5)
    with pytest.raises(TuneError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9"):
        ClusterWorkers("tcp://127.0.0.1:9", 1.0)


def test_a_scheduler_without_workers_is_named_and_left() -> None:
    with distributed.LocalCluster(n_workers=0, dashboard_address=":0") as cluster:
        with pytest.raises(TuneError, match="has no workers; start some"):
            ClusterWorkers(cluster.scheduler_address, 1.0)
        left(cluster)
