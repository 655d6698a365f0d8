"""Sessions with many samples, and with runs that are waited for later."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dovetail.runtime import Module, Session
from dovetail.runtime.device import PreparedPart
from dovetail.runtime.errors import DeviceError, InputError
from dovetail.runtime.parts import Part
from dovetail.runtime.result import RunResult
from dovetail.runtime.tensors import TensorSignature

from .sample import SHAPE, copy_module
from .test_session import SumPart

X = np.random.default_rng(6).integers(-128, 128, (5, *SHAPE[1:]), dtype=np.int8)


def test_a_session_has_workers() -> None:
    with pytest.raises(InputError, match="0 workers; required 1 or more"):
        Session(copy_module(), "sim", workers=0)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_batch_gives_what_its_samples_give(workers: int) -> None:
    with Session(copy_module(), "sim", workers=workers) as session:
        result = session.run_batch(X)
        once = session.run(X[:1])
        np.testing.assert_array_equal(result.outputs["y"], X)
        assert result.cycles == 5 * (once.cycles or 0)
        assert result.dram_bytes_read == 5 * (once.dram_bytes_read or 0)
        assert result.timeline == ()
        for names in (None, ["y"]):
            (found,) = session.run_batch(names, {"x": X[:2]})
            np.testing.assert_array_equal(found, X[:2])


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        ({}, "samples: none; required the same number"),
        (X[:0], "samples: 'x' 0; required the same number for each, from 1"),
        (np.int8(1), "samples: 'x' 0"),
        ({"x": X[:3], "y": X[:2]}, "samples: 'x' 3, 'y' 2; required the same"),
        (X[:, 0], r"input 'x' is int8\[1, 3, 8\]; required int8\[1, 2, 3, 8\]"),
        ({"z": X}, "no input 'z'; its inputs are: x"),
    ],
)
def test_a_wrong_batch_is_refused(batch: Any, message: str) -> None:
    with Session(copy_module(), "sim") as session, pytest.raises(InputError, match=message):
        session.run_batch(batch)


class Slow:
    """A device that sums vectors when it is let, and keeps the order in which it did."""

    name = target_kind = "toy"

    def __init__(self) -> None:
        self.let, self.order = threading.Event(), []  # type: threading.Event, list[int]

    def prepare(self, part: Part) -> PreparedPart:
        return self

    def run(self, inputs: Any) -> RunResult:
        assert self.let.wait(30)
        self.order.append(int(inputs["a"].sum()))
        total = inputs["a"] + inputs["b"]
        return RunResult({"c": total, "d": total.sum()}, "toy", 1.0, 0.0, 1.0)

    def close(self) -> None:
        pass


def vectors() -> Module:
    """A module without a dimension for batches."""
    tensors = [TensorSignature(name, (4,), "int64") for name in "abc"]
    tensors.append(TensorSignature("d", (), "int64"))
    part = SumPart((tensors[0], tensors[1]), (tensors[2], tensors[3]), 0)
    return Module("toy", part.inputs, part.outputs, (part,))


def test_samples_without_a_dimension_for_them_are_stacked() -> None:
    device, a = Slow(), np.arange(12).reshape(3, 4)
    device.let.set()
    with Session(vectors(), device) as session:
        c, d = session.run_batch(None, {"a": a, "b": 2 * a})
    np.testing.assert_array_equal(c, 3 * a)
    np.testing.assert_array_equal(d, (3 * a).sum(1))


def test_runs_that_are_under_way_keep_their_order() -> None:
    device, rows = Slow(), [np.full(4, place) for place in range(6)]
    session = Session(vectors(), device)
    futures = [session.run_async({"a": row, "b": row}) for row in rows]
    last = session.run_async(["d"], {"a": rows[1], "b": rows[2]})
    wrong = session.run_async(["e"], {"a": rows[1], "b": rows[2]})
    assert not any(each.done() for each in (*futures, last))
    device.let.set()
    session.close()
    assert all(each.done() for each in futures), "closing waits"
    assert [int(each.result().outputs["d"]) for each in futures] == [0, 8, 16, 24, 32, 40]
    assert device.order == [0, 4, 8, 12, 16, 20, 4]
    assert last.result() == [12]
    with pytest.raises(InputError, match="no output 'e'; its outputs are: c, d"):
        wrong.result()
    with pytest.raises(DeviceError, match="the session is closed"):
        session.run_async(rows[0])


def test_runs_can_be_awaited_and_go_side_by_side() -> None:
    together = threading.Barrier(2, timeout=30)

    class Meeting(Slow):
        def run(self, inputs: Any) -> RunResult:
            together.wait()
            return replace(super().run(inputs), wall_seconds=2.0)

    device = Meeting()
    device.let.set()

    async def both(session: Session) -> list[RunResult]:
        given = {"a": np.ones(4, np.int64), "b": np.ones(4, np.int64)}
        runs = (asyncio.wrap_future(session.run_async(given)) for _ in range(2))
        return await asyncio.gather(*runs)

    with Session(vectors(), device, workers=2) as session, ThreadPoolExecutor() as pool:
        # In a thread of its own: other tests may keep an event loop in this one.
        for result in pool.submit(asyncio.run, both(session)).result():
            assert (int(result.outputs["d"]), result.wall_seconds) == (8, 2.0)
