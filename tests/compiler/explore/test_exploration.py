"""Whole explorations of a small network: figures, resuming, and everything that goes wrong."""

import csv
import io
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from dovetail.compiler.errors import ExploreError, ModelError, SpaceError
from dovetail.compiler.explore import exploration as module
from dovetail.compiler.explore.evaluate import Failure, Performance, Task, attempt
from dovetail.compiler.explore.exploration import Exploration, Options, Progress, explore
from dovetail.compiler.explore.export import rows, to_csv, to_parquet
from dovetail.compiler.explore.pools import Finished
from dovetail.compiler.explore.space import parse_space
from dovetail.compiler.explore.store import ResultFile
from dovetail.compiler.front.integer import integer_graph
from dovetail.compiler.front.table import open_model
from dovetail.compiler.options import CompileOptions
from dovetail.compiler.pipeline.trace import Trace
from dovetail.compiler.targets.vta.accelerate import accelerate_graph, prepare_graph
from dovetail.runtime import run
from dovetail.runtime.module import Module
from dovetail.vta_sim.timing import time_program

CONTENT = {
    "base": {"config": "tiny"},
    "hardware": {"block": [4, 8], "act_depth": [1024, 2048]},
}
SPACE = parse_space(CONTENT)


class HereNow:
    """A pool of this process, which can stop after some tasks."""

    def __init__(self, most: int | None = None) -> None:
        self.most, self.evaluated = most, 0

    def run(self, tasks: Iterator[Task]) -> Iterator[Finished]:
        from dovetail.compiler.explore.evaluate import attempt

        for task in tasks:
            if self.evaluated == self.most:
                raise KeyboardInterrupt
            self.evaluated += 1
            yield task, attempt(task)


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> HereNow:
    made = HereNow()
    monkeypatch.setattr(module, "_pool", lambda options: made)
    monkeypatch.setenv("DOVETAIL_CACHE", str(tmp_path / "cache"))
    return made


def cycles(found: Exploration) -> dict[str, int | str]:
    return {
        result.design.key: outcome.cycles if isinstance(outcome, Performance) else outcome.message
        for result in found.results
        for outcome in result.outcomes.values()
    }


def test_every_design_has_the_cycles_of_a_whole_run(
    pool: HereNow, small_model: Path, tmp_path: Path
) -> None:
    import numpy as np

    found = explore([small_model], SPACE, tmp_path / "out")
    assert len(found.results) == 4
    for result in found.results[::2]:
        config, options = result.design.config, CompileOptions(overlap=result.design.overlap)
        imported = integer_graph(open_model(small_model))
        graph = prepare_graph(imported, Trace(options), lanes=config.block)
        part = accelerate_graph(graph, config, options, Trace(options), time_program)
        compiled = Module.of_part(part)
        image = {t.name: np.zeros(t.shape, t.dtype) for t in compiled.inputs}
        # The runtime knows devices of named configurations only.
        from dovetail.isa import configs

        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(configs.CONFIGS, config.name, config)
            ran = run(compiled, image, "sim")
        (outcome,) = result.outcomes.values()
        assert isinstance(outcome, Performance)
        assert (outcome.cycles, outcome.macs) == (ran.cycles, ran.macs)
        assert outcome.counters == dict(ran.counters)


def test_the_tables_have_a_row_for_each_design_and_model(
    pool: HereNow, one_layer_model: Path, tmp_path: Path
) -> None:
    found = explore([one_layer_model], SPACE, tmp_path / "out")
    listed = rows(found)
    assert len(listed) == 4
    read = list(csv.DictReader(io.StringIO(to_csv(listed).decode())))
    assert [int(row["cycles"]) for row in read] == [row["cycles"] for row in listed]
    for row in listed:
        clock, took = row["ecp5_clock_mhz"], row["ecp5_latency_ms"]
        assert isinstance(clock, float)
        assert isinstance(row["cycles"], int)
        assert took == pytest.approx(row["cycles"] / clock / 1e3)
    front = [row for row in listed if row["ecp5_front"]]
    assert front
    assert min(row["ecp5_latency_ms"] for row in listed) in [r["ecp5_latency_ms"] for r in front]
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow")
    pyarrow = pytest.importorskip("pyarrow")
    assert parquet.read_table(pyarrow.BufferReader(to_parquet(listed))).to_pylist() == listed


def test_a_design_on_which_a_model_does_not_fit_is_recorded_and_the_rest_goes_on(
    pool: HereNow, one_layer_model: Path, tmp_path: Path
) -> None:
    space = parse_space({**CONTENT, "hardware": {"par_depth": [2, 4, 32], "wgt_depth": [2, 128]}})
    found = explore([one_layer_model], space, tmp_path / "out")
    failed = [o for r in found.results for o in r.outcomes.values() if isinstance(o, Failure)]
    assert len(found.results) == 6
    assert 0 < len(failed) == found.progress.failed < 6
    assert all(each.message for each in failed)
    errors = [row["error"] for row in rows(found) if row["error"]]
    assert len(errors) == len(failed)


def test_a_second_run_evaluates_nothing(
    pool: HereNow, one_layer_model: Path, tmp_path: Path
) -> None:
    first = explore([one_layer_model], SPACE, tmp_path / "out")
    assert pool.evaluated == 4
    again = explore([one_layer_model], SPACE, tmp_path / "out")
    elsewhere = explore([one_layer_model], SPACE, tmp_path / "other")
    assert pool.evaluated == 4
    assert again.progress.found == elsewhere.progress.found == 4
    assert cycles(first) == cycles(again) == cycles(elsewhere)
    explore([one_layer_model], SPACE, tmp_path / "third", Options(cache=False))
    assert pool.evaluated == 8


def test_a_stopped_run_goes_on_where_it_was(
    pool: HereNow, one_layer_model: Path, tmp_path: Path
) -> None:
    pool.most = 3
    options = Options(cache=False)
    with pytest.raises(KeyboardInterrupt):
        explore([one_layer_model], SPACE, tmp_path / "out", options)
    pool.most = None
    found = explore([one_layer_model], SPACE, tmp_path / "out", options)
    assert pool.evaluated == 4
    assert found.progress.found == 3
    assert cycles(found) == cycles(explore([one_layer_model], SPACE, tmp_path / "whole", options))


def test_a_task_whose_process_died_is_tried_again(
    pool: HereNow, one_layer_model: Path, tmp_path: Path
) -> None:
    explore([one_layer_model], SPACE, tmp_path / "out", Options(cache=False))
    file = ResultFile(tmp_path / "out" / "results.sqlite")
    with closing(sqlite3.connect(tmp_path / "out" / "results.sqlite")) as db:
        key = db.execute("SELECT key FROM results").fetchone()[0]
    file.put(key, Failure("WorkerDied", "out of memory?"))
    file.close()
    found = explore([one_layer_model], SPACE, tmp_path / "out", Options(cache=False))
    assert (pool.evaluated, found.progress.found, found.progress.failed) == (5, 3, 0)


def test_a_folder_of_something_else_is_refused(
    pool: HereNow, one_layer_model: Path, tmp_path: Path
) -> None:
    explore([one_layer_model], SPACE, tmp_path / "out")
    other = parse_space({**CONTENT, "hardware": {"block": [4]}})
    with pytest.raises(ExploreError, match="holds 4 results with different space; choose another"):
        explore([one_layer_model], other, tmp_path / "out")
    (tmp_path / "out" / "results.sqlite").write_bytes(b"no database" * 100)
    with pytest.raises(ExploreError, match="file is not a database"):
        explore([one_layer_model], SPACE, tmp_path / "out")
    (tmp_path / "file").touch()
    with pytest.raises(ExploreError, match="cannot be written: File exists"):
        explore([one_layer_model], SPACE, tmp_path / "file")


def test_two_at_once_in_one_folder_are_refused(
    pool: HereNow, one_layer_model: Path, tmp_path: Path
) -> None:
    def observe(progress: Progress) -> None:
        with pytest.raises(ExploreError, match="another exploration is at work"):
            explore([one_layer_model], SPACE, tmp_path / "out")

    explore([one_layer_model], SPACE, tmp_path / "out", observe=observe)


def test_what_is_missing_is_named(pool: HereNow, one_layer_model: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"absent\.onnx"):
        explore([tmp_path / "absent.onnx"], SPACE, tmp_path / "out")
    with pytest.raises(SpaceError, match="required one or more, named apart"):
        explore([one_layer_model, one_layer_model], SPACE, tmp_path / "out")
    with pytest.raises(SpaceError, match="family 'Virtex'; there are: ECP5"):
        explore([one_layer_model], SPACE, tmp_path / "out", Options(family="Virtex"))
    assert not (tmp_path / "out").exists()


def test_a_cache_that_cannot_be_used_is_left_out(
    pool: HereNow, one_layer_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("DOVETAIL_CACHE", str(tmp_path / "file"))
    found = explore([one_layer_model], SPACE, tmp_path / "out")
    assert len(found.results) == 4
    assert "goes on without the cache" in found.notes[0]


def test_a_search_keeps_to_its_budget_and_tries_nothing_twice(
    pool: HereNow, one_layer_model: Path, tmp_path: Path
) -> None:
    pytest.importorskip("optuna", reason="needs optuna")
    content = {
        "base": {"config": "tiny"},
        "hardware": {"block": [4, 8, 16], "bus_bytes": [4, 8], "wgt_depth": [64, 128, 256]},
        "dram": {"latency_cycles": {"from": 4, "to": 40, "step": 4}},
    }
    options = Options(budget=12)
    found = explore([one_layer_model], parse_space(content), tmp_path / "out", options)
    assert found.searched
    assert len(found.results) == len(cycles(found)) == pool.evaluated == 12
    again = explore([one_layer_model], parse_space(content), tmp_path / "out", options)
    assert cycles(again) == cycles(found)
    assert pool.evaluated == 12


COMMAND = [sys.executable, "-m", "dovetail.compiler", "explore", "--jobs", "1", "--json"]
SPACE_TEXT = """
[base]
config = "tiny"
[hardware]
block = [4, 8]
act_depth = [1024, 2048]
[dram]
latency_cycles = {from = 4, to = 12, step = 4}
"""


def command(model: Path, tmp_path: Path, *more: str) -> list[str]:
    (tmp_path / "space.toml").write_text(SPACE_TEXT)
    place = ("--space", str(tmp_path / "space.toml"), "-o", str(tmp_path / "out"))
    return [*COMMAND, "--models", str(model), *place, "--no-cache", *more]


def kept(tmp_path: Path) -> int:
    """Results that another process has written so far."""
    path = tmp_path / "out" / "results.sqlite"
    if not path.exists():
        return 0
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=30)) as db:
        try:
            return int(db.execute("SELECT count(*) FROM results").fetchone()[0])
        except sqlite3.OperationalError:
            return 0


def three(task: Task) -> Performance | Failure:
    """An attempt; the fourth takes for ever."""
    with open(os.environ["ATTEMPTS"], "a") as file:
        file.write("x")
    if os.path.getsize(os.environ["ATTEMPTS"]) > 3:
        time.sleep(9999)
    return attempt(task)


STALLING = """
from dovetail.compiler.__main__ import main
from dovetail.compiler.explore import pools
from tests.compiler.explore.test_exploration import three
if __name__ == "__main__":
    pools.attempt = three
    main()
"""


def test_nothing_is_lost_when_all_is_killed(one_layer_model: Path, tmp_path: Path) -> None:
    script = tmp_path / "stalling.py"
    script.write_text(STALLING)
    root = Path(__file__).resolve().parents[3]
    running = subprocess.Popen(
        [sys.executable, script, *command(one_layer_model, tmp_path)[3:]],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(root), "ATTEMPTS": str(tmp_path / "attempts")},
        start_new_session=True,
    )
    while kept(tmp_path) < 3 and running.poll() is None:
        time.sleep(0.02)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    before = kept(tmp_path)
    assert before == 3
    done = subprocess.run(
        command(one_layer_model, tmp_path), capture_output=True, text=True, check=True
    )
    assert f'"known": {before}' in done.stdout
    assert '"evaluations": 12' in done.stdout
    assert kept(tmp_path) == 12
    assert (tmp_path / "out" / "report.html").exists()


def test_a_full_disk_is_one_clear_error_and_what_was_found_stays(
    one_layer_model: Path, tmp_path: Path
) -> None:
    """A limit on the size of files stands for the disk."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (80_000, 80_000))

    done = subprocess.run(
        command(one_layer_model, tmp_path),
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=limit,
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    said = " ".join(done.stderr.split())
    assert "results.sqlite cannot be written: " in said
    assert "the results in it are kept" in said
    before = kept(tmp_path)
    assert before > 0
    again = subprocess.run(
        command(one_layer_model, tmp_path), capture_output=True, text=True, check=True
    )
    assert f'"known": {before}' in again.stdout


def test_results_outlive_the_file_being_closed_at_any_time(tmp_path: Path) -> None:
    path = tmp_path / "results.sqlite"
    first = ResultFile(path)
    result, failure = Performance(5, 4, 3, 2, {"cycles": 5}, 0.5), Failure("ModelError", "bad")
    first.put("a", result)
    first.put("b", failure)
    second = ResultFile(path)
    assert (second.find("a"), second.find("b"), second.find("c")) == (result, failure, None)
    assert second.count() == 2
    first.close()
    second.close()
    with pytest.raises(ExploreError, match="cannot be read"):
        second.find("a")


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE results SET value = replace(value, 'memory', 'nothing')",
        "UPDATE results SET value = substr(value, 65)",
        "UPDATE results SET value = (SELECT value FROM results WHERE key = 'b')",
        "UPDATE results SET value = 7",
    ],
)
def test_a_result_that_was_changed_is_found_anew(change: str, tmp_path: Path) -> None:
    path = tmp_path / "results.sqlite"
    file = ResultFile(path)
    file.put("a", Failure("WorkerDied", "out of memory"))
    file.put("b", Failure("WorkerDied", "out of memory, again"))
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"{change} WHERE key = 'a'")
        db.commit()
    assert file.find("a") is None
    assert file.find("b") == Failure("WorkerDied", "out of memory, again")
    file.put("a", Failure("WorkerDied", "once more"))
    assert file.find("a") == Failure("WorkerDied", "once more")
    file.close()
