"""Processes that die, and what is left of their work."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from dovetail.compiler.errors import ExploreError
from dovetail.compiler.explore import pools
from dovetail.compiler.explore.evaluate import Failure, ModelFile, Performance, Task, attempt
from dovetail.compiler.explore.pools import LocalPool
from dovetail.compiler.explore.space import Design
from dovetail.compiler.front.stored import StoredModel
from dovetail.compiler.options import Overlap
from dovetail.isa.configs import find_config

DESIGN = Design(find_config("tiny"), Overlap.LAYERS)


def fake(task: Task) -> Performance | Failure:
    """A model's name says what happens: the process dies, once or always, or it takes its time."""
    what, _, rest = task.model.name.partition(":")
    if what == "dies" or (what == "dies once" and not Path(rest).exists()):
        if rest:
            Path(rest).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "takes":
        time.sleep(float(rest))
    return Performance(1, 1, 1, 1, {}, 0.0)


def tasks(*names: str) -> Iterator[Task]:
    return (Task(DESIGN, ModelFile(name, StoredModel(".onnx", b""))) for name in names)


def names_of(monkeypatch: pytest.MonkeyPatch, *names: str) -> dict[str, Performance | Failure]:
    monkeypatch.setattr(pools, "attempt", fake)
    found = LocalPool(2).run(tasks(*names))
    return {task.model.name: outcome for task, outcome in found}


def test_a_task_that_kills_its_process_fails_and_all_others_succeed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    once = f"dies once:{tmp_path / 'mark'}"
    found = names_of(monkeypatch, "a", "dies", "b", "c", once, "d", "e", "f")
    assert len(found) == 8
    failed = {name: outcome for name, outcome in found.items() if isinstance(outcome, Failure)}
    assert list(failed) == ["dies"]
    assert failed["dies"].kind == "WorkerDied"


def test_when_no_process_lives_that_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ExploreError, match="processes that were started ended before any"):
        names_of(monkeypatch, *["dies"] * 4)


def test_tasks_are_taken_when_there_is_room_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "attempt", fake)
    taken = []

    def endless() -> Iterator[Task]:
        for number in range(1000):
            taken.append(number)
            yield Task(DESIGN, ModelFile(f"{number}", StoredModel(".onnx", b"")))

    running = LocalPool(1).run(endless())
    for _ in range(3):
        next(running)
    assert len(taken) <= 3 + 2
    running.close()


def test_workers_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(
        "import os, time\n"
        "from dovetail.compiler.explore.pools import LocalPool\n"
        "from tests.compiler.explore.test_pools import tasks, fake, pools\n"
        "if __name__ == '__main__':\n"
        "    pools.attempt = fake\n"
        "    running = LocalPool(1).run(tasks('a', 'takes:9999', 'takes:9999'))\n"
        "    next(running)\n"
        "    children = f'/proc/self/task/{os.getpid()}/children'\n"
        "    print(open(children).read().split()[0], flush=True)\n"
        "    time.sleep(9999)\n"
    )
    root = Path(__file__).resolve().parents[3]
    parent = subprocess.Popen(
        [sys.executable, script],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    assert parent.stdout is not None
    worker = int(parent.stdout.readline())
    os.kill(worker, 0)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    try:
        # For as long as this test may take.
        while _alive(worker):
            time.sleep(0.05)
    finally:
        with suppress(ProcessLookupError):
            os.kill(worker, signal.SIGKILL)


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_errors_of_any_kind_become_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = attempt(Task(DESIGN, ModelFile("broken", StoredModel(".onnx", b"no model"))))
    assert isinstance(broken, Failure)
    from dovetail.compiler.explore import evaluate

    def fail(task: Task) -> Performance:
        raise AssertionError("this cannot be")

    monkeypatch.setattr(evaluate, "_evaluate", fail)
    found = attempt(Task(DESIGN, ModelFile("a", StoredModel(".onnx", b""))))
    assert isinstance(found, Failure)
    assert found.kind == "AssertionError"
    assert "internal error at test_pools.py:" in found.message
