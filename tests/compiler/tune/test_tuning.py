"""Tuning from end to end: kept, resumed, replayed; and by random search."""

import json
from collections import deque
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import dovetail.compiler
from dovetail.compiler.__main__ import main
from dovetail.compiler.errors import ScheduleError, TuneError
from dovetail.compiler.front.stored import StoredModel
from dovetail.compiler.options import CompileOptions
from dovetail.compiler.schedule.record_files import (
    SHIPPED,
    read_entries,
    write_entries,
)
from dovetail.compiler.schedule.records import Records, StaleRecordWarning
from dovetail.compiler.schedule.steps.trace import from_record
from dovetail.compiler.targets.cpu.records import read_records
from dovetail.compiler.tune.kernel import Setting
from dovetail.compiler.tune.problem import Measured
from dovetail.compiler.tune.subject import CpuSubject, cpu_subject
from dovetail.compiler.tune.trials import TRIALS, Trial, read_trials
from dovetail.compiler.tune.tuning import RECORDS, Options, tune
from dovetail.compiler.tune.whole import WholeJob
from dovetail.compiler.tune.workers import LocalWorkers, Request
from dovetail.runtime import run
from dovetail.runtime.manifest import read_value
from dovetail.runtime.module import Module
from dovetail.runtime.native.model import ModelPart
from dovetail.runtime.native.part import CpuPart

from .models import small_model

SETTING = Setting()


@pytest.fixture(scope="module")
def subject() -> CpuSubject:
    return cpu_subject(StoredModel(".onnx", small_model().to_bytes()), {}, SETTING, True)


def by_length(self: LocalWorkers[object], request: Request[object]):  # type: ignore[no-untyped-def]
    """In the place of measuring: candidates of longer text cost less."""
    waiting: deque[tuple[object, object]] = deque()
    while True:
        job = request()
        if job is None and not waiting:
            return
        if job is not None:
            waiting.append(job)
        name, own = waiting.popleft()
        if isinstance(own, WholeJob):
            yield name, Measured(0.9, 1.0)
        else:
            yield name, Measured(1 / len(own.candidate), 1 / 30)  # type: ignore[attr-defined]


@pytest.mark.parametrize("strategy", ["evolution", "random"])
def test_each_result_is_kept_and_the_search_goes_on_where_it_stopped(
    tmp_path: Path, subject: CpuSubject, monkeypatch: pytest.MonkeyPatch, strategy: str
) -> None:
    monkeypatch.setattr(LocalWorkers, "run", by_length)
    first = tune(subject, tmp_path, Options(None, 24, strategy=strategy))
    trials = read_trials(tmp_path / TRIALS)
    assert len(trials) == first.progress.trials >= 24
    assert {trial.key for trial in trials} == set(subject.layers.kernels)
    again = tune(subject, tmp_path, Options(None, 16, strategy=strategy, seed=1))
    later = read_trials(tmp_path / TRIALS)
    assert again.progress.known == len(trials)
    texts = [(trial.key, trial.text) for trial in later]
    assert len(set(texts)) == len(texts) == len(trials) + again.progress.trials
    assert again.progress.best <= first.progress.best
    assert [dict(each) for each in again.entries] == read_entries(tmp_path / RECORDS)


def test_a_full_disk_ends_it_and_the_next_run_goes_on(
    tmp_path: Path, subject: CpuSubject, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dovetail.compiler.tune import trials

    monkeypatch.setattr(LocalWorkers, "run", by_length)
    kept = 0

    def write(handle: int, data: bytes) -> int:
        nonlocal kept
        kept += 1
        if kept > 5:
            raise OSError(28, "No space left on device")
        return real(handle, data)

    real = trials.os.write
    monkeypatch.setattr(trials.os, "write", write)
    with pytest.raises(TuneError, match="No space left on device; its 5 results are kept"):
        tune(subject, tmp_path, Options(None, 60))
    monkeypatch.setattr(trials.os, "write", real)
    assert len(read_trials(tmp_path / TRIALS)) == 5
    assert tune(subject, tmp_path, Options(None, 20)).progress.known == 5


def test_records_are_measured_written_and_replayed(tmp_path: Path) -> None:
    path, out = tmp_path / "small.onnx", tmp_path / "out"
    path.write_bytes(small_model().to_bytes())
    command = ["tune", str(path), "-o", str(out), "--trials", "8", "--json"]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["trials"] >= 8
    for trial in read_trials(out / TRIALS):
        assert (trial.cost is None) == bool(trial.error), trial
    x = {"x": np.random.default_rng(0).standard_normal((1, 16, 10, 10)).astype(np.float32)}
    plain = run(dovetail.compiler.compile(path, "cpu"), x, device="cpu").outputs["y"]
    options = CompileOptions(records=(out / RECORDS,))
    tuned = run(dovetail.compiler.compile(path, "cpu", options), x, device="cpu").outputs["y"]
    assert np.abs(tuned - plain).max() <= 2e-5 * np.abs(plain).max()


def test_recorded_decisions_change_the_program(tmp_path: Path, subject: CpuSubject) -> None:
    file = tmp_path / RECORDS
    common = {"cpu": SETTING.cpu, "threads": 1}
    (convolution,) = subject.layers.choices
    entry = {"kind": "convolution", **common, "key": convolution, "tile": 2}
    write_entries(file, [entry])
    records = read_records([file], SETTING.cpu, 1)
    assert records.tiles == {convolution: 2}
    assert not read_records([file], "other", 1)
    assert not read_records([file], SETTING.cpu, 2)
    module = dovetail.compiler.compile(small_model(), "cpu", CompileOptions(records=(file,)))
    (part,) = module.parts
    assert isinstance(part, CpuPart)
    assert (16, 1, 1, 16, 16) in [constant.shape for constant in part.constants]


def test_a_record_of_another_version_is_left_out_with_a_warning(
    tmp_path: Path, subject: CpuSubject
) -> None:
    file = tmp_path / RECORDS
    common = {"kind": "kernel", "cpu": SETTING.cpu, "threads": 1}
    step = {"step": "fuse", "outer": "nowhere", "inner": "either", "name": ""}
    key = next(iter(subject.layers.rest))
    write_entries(file, [{**common, "key": key, "steps": [step]}])
    with pytest.warns(StaleRecordWarning, match="is of another version and is not used"):
        dovetail.compiler.compile(small_model(), "cpu", CompileOptions(records=(file,)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "line 1: not JSON"),
        ("[]", "found no version; required version 2"),
        ('{"records": []}', "found no version; required version 2"),
        (
            '{"version": 1, "records": [\n{"kind": "kernel", "key": "k", "decisions": {}}]}',
            "found version 1; required version 2",
        ),
        ('{"version": 2}', "required a list called records"),
        ('{"version": 2, "records": [\n{"kind": "kernel"}]}', "record 1 is malformed"),
        ('{"version": 2, "records": [\n{"kind": "other"}]}', "malformed; required kind, key;"),
    ],
)
def test_a_malformed_file_of_records_is_a_clear_error(
    tmp_path: Path, text: str, message: str
) -> None:
    file = tmp_path / RECORDS
    file.write_text(text)
    with pytest.raises(ScheduleError, match=message):
        read_entries(file)
    with pytest.raises(ScheduleError, match="tune again, or take the file out of --records"):
        dovetail.compiler.compile(small_model(), "cpu", CompileOptions(records=(file,)))


def test_a_missing_file_of_records_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(ScheduleError, match="cannot be read: No such file"):
        read_entries(tmp_path / "none.json")


def test_what_makes_the_whole_model_slower_is_not_recorded(
    tmp_path: Path, subject: CpuSubject, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slower(self: WholeJob) -> Measured:
        return Measured(1.1, 1.0)

    def here(self: LocalWorkers[object], request: Request[object]):  # type: ignore[no-untyped-def]
        while True:
            job = request()
            if job is None:
                return
            whole = isinstance(job[1], WholeJob)
            yield job[0], slower(job[1]) if whole else Measured(1 / len(job[1].candidate), 1 / 30)  # type: ignore[arg-type,attr-defined]

    monkeypatch.setattr(LocalWorkers, "run", here)
    found = tune(subject, tmp_path, Options(None, 20))
    assert found.entries == ()
    assert read_entries(tmp_path / RECORDS) == []
    assert "nothing that was found makes the whole model faster" in found.notes


def test_good_candidates_of_another_compiler_are_measured_first(
    tmp_path: Path, subject: CpuSubject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LocalWorkers, "run", by_length)
    tune(subject, tmp_path, Options(None, 24))
    before = read_trials(tmp_path / TRIALS)
    lines = [trial.__class__(**{**_fields(trial), "setting": "older"}) for trial in before]
    (tmp_path / TRIALS).write_text("".join(json.dumps(_fields(line)) + "\n" for line in lines))
    again = tune(subject, tmp_path, Options(None, 16, seed=5))
    assert again.progress.known == 0
    new = [trial for trial in read_trials(tmp_path / TRIALS) if trial.setting != "older"]
    for key in subject.layers.kernels:
        old = [t for t in before if t.key == key and (t.measured.ratio or 1) < 0.98]
        best = min(old, key=lambda trial: trial.measured.ratio or 1, default=None)
        assert best is None or best.text in [trial.text for trial in new if trial.key == key]


def _fields(trial: Trial) -> dict[str, object]:
    return {name: getattr(trial, name) for name in Trial.__dataclass_fields__}


def test_a_module_of_open_shapes_takes_the_records_with_it(
    tmp_path: Path, subject: CpuSubject
) -> None:
    model = small_model().proto
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "n"
    file = tmp_path / RECORDS
    (convolution,) = subject.layers.choices
    where = {"cpu": SETTING.cpu, "threads": 1}
    write_entries(file, [{"kind": "convolution", **where, "key": convolution, "tile": 2}])
    module = dovetail.compiler.compile(model, "cpu", CompileOptions(records=(file,)))
    module.save(tmp_path / "open.dvt")
    loaded = Module.load(tmp_path / "open.dvt")
    (part,) = loaded.parts
    assert isinstance(part, ModelPart)
    records = read_value(Records, part.records, "records")
    assert records == read_records([file], SETTING.cpu, 1)
    x = {"x": np.random.default_rng(0).standard_normal((1, 16, 10, 10)).astype(np.float32)}
    plain = run(dovetail.compiler.compile(small_model(), "cpu"), x, device="cpu").outputs["y"]
    tuned = run(loaded, x, device="cpu").outputs["y"]
    assert np.abs(tuned - plain).max() <= 2e-5 * np.abs(plain).max()


def test_the_shipped_records_can_be_read_and_differ() -> None:
    entries = read_entries(SHIPPED)
    names = ("kind", "cpu", "threads", "target", "device", "key")
    assert len({tuple(map(entry.get, names)) for entry in entries}) == len(entries)
    assert any(entry["kind"] == "kernel" for entry in entries)
    for entry in entries:
        if entry["kind"] == "kernel":
            assert len([from_record(step) for step in entry["steps"]]) == len(entry["steps"])
            assert entry["seconds"] < entry["default_seconds"]
