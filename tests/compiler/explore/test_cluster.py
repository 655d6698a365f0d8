"""The same exploration on a Dask cluster of this machine."""

from pathlib import Path

import pytest

from dovetail.compiler.errors import ExploreError
from dovetail.compiler.explore.evaluate import Performance
from dovetail.compiler.explore.exploration import Exploration, Options, explore
from dovetail.compiler.explore.space import parse_space

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


def test_two_workers_of_a_cluster_find_the_same(digits_model: Path, tmp_path: Path) -> None:
    local = explore([digits_model], SPACE, tmp_path / "a", Options(workers=1, cache=False))
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None
    ) as cluster:
        options = Options(scheduler=cluster.scheduler_address, cache=False)
        remote = explore([digits_model], SPACE, tmp_path / "b", options)
    assert remote.progress.found == 0
    assert len(cycles(remote)) == 4
    assert cycles(remote) == cycles(local)


def test_a_scheduler_that_does_not_answer_is_named(
    digits_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dovetail.compiler.explore import cluster

    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 0.5)
    options = Options(scheduler="tcp://127.0.0.1:9", cache=False)
    with pytest.raises(ExploreError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9"):
        explore([digits_model], SPACE, tmp_path / "a", options)
