"""Requests to a Dask cluster, and the fate of its answers, without one."""

from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest

from dovetail.compiler.errors import TuneError

cluster = pytest.importorskip("dovetail.compiler.processes.cluster", reason="needs distributed")
ADDRESS = "tcp://127.0.0.1:1"


class Answer:
    """A future that is done."""

    def __init__(self, error: Exception | None, value: object) -> None:
        self.error, self.value = error, value

    def exception(self) -> Exception | None:
        return self.error

    def result(self) -> object:
        return self.value


class Client:
    """A scheduler of two workers: what was submitted, and how much of it is under way."""

    def __init__(self, address: str, timeout: float) -> None:
        if address != ADDRESS:
            raise OSError("refused")
        self.workers: dict[str, int] = {"a": 1, "b": 2}
        self.closed, self.under_way, self.most, self.lost = False, 0, 0, False

    def nthreads(self) -> dict[str, int]:
        return self.workers

    def close(self) -> None:
        self.closed = True

    def submit(self, function: Any, argument: Any, pure: bool) -> Answer:
        assert not pure, "the same task again is a task of its own"
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            return Answer(None, function(argument))
        except Exception as error:
            return Answer(error, None)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Client]:
    """The clients that were made."""
    made: list[Client] = []

    def client(address: str, timeout: float) -> Client:
        made.append(Client(address, timeout))
        return made[-1]

    def wait(futures: list[Answer], return_when: str) -> Any:
        """The first is done, and no other."""
        assert return_when == "FIRST_COMPLETED"
        (found,) = made
        if found.lost:
            raise OSError("gone")
        found.under_way -= 1
        return SimpleNamespace(done=futures[:1])

    monkeypatch.setattr(cluster, "Client", client)
    monkeypatch.setattr(cluster, "wait", wait)
    return made


def work(number: int) -> int:
    if number == 1:
        raise ValueError("one")
    if number == 2:
        raise cluster.KilledWorker("two", SimpleNamespace(address="b"), 3)
    return 10 * number


def started(room: int) -> Any:
    def given(threads: dict[str, int]) -> int:
        assert threads == {"a": 1, "b": 2}
        return room

    return cluster.Cluster(work, ADDRESS, TuneError, given)


@pytest.mark.parametrize(("room", "most"), [(0, 1), (1, 1), (2, 2), (3, 3), (9, 5)])
def test_as_many_tasks_are_under_way_as_there_is_room_for(
    room: int, most: int, opened: list[Client]
) -> None:
    """One at least: workers that are gone may come back."""
    waiting, running = deque((f"task {n}", n) for n in range(5)), started(room)
    found = dict(running.run(lambda: waiting.popleft() if waiting else None))
    assert opened[0].most == most
    assert found["task 0"] == 0
    assert found["task 1"] == cluster.Raised("ValueError", "one")
    assert isinstance(found["task 2"], cluster.Lost)
    assert (found["task 3"], found["task 4"]) == (30, 40)
    running.close()
    assert opened[0].closed


def test_a_scheduler_that_is_lost_is_named(opened: list[Client]) -> None:
    running = started(1)
    opened[0].lost = True
    with pytest.raises(TuneError, match=rf"scheduler at {ADDRESS} is lost: gone; all results"):
        list(running.run(lambda: ("task", 3)))


def test_no_scheduler_and_one_without_workers_are_refused(
    opened: list[Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(TuneError, match="no Dask scheduler answers at elsewhere: refused"):
        cluster.Cluster(work, "elsewhere", TuneError, lambda _: 1)
    monkeypatch.setattr(Client, "nthreads", lambda _: {})
    with pytest.raises(TuneError, match="has no workers; start some"):
        started(1)
    assert opened[-1].closed
