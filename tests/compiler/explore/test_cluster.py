"""The same exploration on a Dask cluster of this machine."""

from pathlib import Path

import pytest

from dovetail.compiler.errors import ExploreError
from dovetail.compiler.explore import pools
from dovetail.compiler.explore.evaluate import Failure, Performance
from dovetail.compiler.explore.exploration import Exploration, Options, explore
from dovetail.compiler.explore.space import parse_space

from .test_pools import fake, tasks

distributed = pytest.importorskip("distributed", reason="needs distributed")

SPACE = parse_space(
    {"base": {"config": "tiny"}, "hardware": {"block": [4, 8]}, "dram": {"latency_cycles": [4, 12]}}
)


def cycles(found: Exploration) -> dict[str, int]:
    return {
        result.design.key: outcome.cycles
        for result in found.results
        for outcome in result.outcomes.values()
        if isinstance(outcome, Performance)
    }


def test_two_workers_of_a_cluster_find_the_same(one_layer_model: Path, tmp_path: Path) -> None:
    local = explore([one_layer_model], SPACE, tmp_path / "a", Options(workers=1, cache=False))
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0"
    ) as cluster:
        options = Options(scheduler=cluster.scheduler_address, cache=False)
        remote = explore([one_layer_model], SPACE, tmp_path / "b", options)
    assert remote.progress.found == 0
    assert len(cycles(remote)) == 4
    assert cycles(remote) == cycles(local)


def test_a_scheduler_that_does_not_answer_is_named(
    one_layer_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dovetail.compiler.processes import cluster

    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 0.5)
    options = Options(scheduler="tcp://127.0.0.1:9", cache=False)
    with pytest.raises(ExploreError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9"):
        explore([one_layer_model], SPACE, tmp_path / "a", options)


def test_a_task_that_kills_every_worker_fails_and_the_rest_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import dask

    monkeypatch.setattr(pools, "attempt", fake)
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, dashboard_address=":0"
        ) as cluster,
    ):
        pool = pools.ClusterPool(cluster.scheduler_address)
        found = {task.model.name: outcome for task, outcome in pool.run(tasks("dies", "a", "b"))}
    assert isinstance(found["dies"], Failure)
    assert found["dies"].kind == "WorkerDied"
    assert isinstance(found["a"], Performance) or isinstance(found["b"], Performance)


def test_a_scheduler_that_is_lost_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from dovetail.compiler.processes import cluster as connecting

    monkeypatch.setattr(pools, "attempt", fake)
    monkeypatch.setattr(connecting, "CONNECT_SECONDS", 5)
    cluster = distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0")
    running = pools.ClusterPool(cluster.scheduler_address).run(tasks("a", "takes:3", "takes:3"))
    next(running)
    cluster.close()
    with pytest.raises(ExploreError, match="is lost"):
        list(running)
