"""Steps of a part of kernels: which are launched, how often, and where, on a machine of arrays."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from dovetail.runtime.errors import WorkLimitError
from dovetail.runtime.gpu.part import GpuPart, KernelEntry, Launch, Place, Repeat, Space, Stride
from dovetail.runtime.gpu.run import ReadyPart
from dovetail.runtime.native.part import Constant
from dovetail.runtime.tensors import TensorSignature

ENTRIES = tuple(KernelEntry(name, 1, 1) for name in "abcd")
MEMORY = Place(Space.MEMORY, 0, 0, ())
INPUT, OUTPUT = (TensorSignature(name, (24,), "uint8") for name in "xy")
STRIDES = (Stride(0, 100, False), Stride(1, 10, True))


@dataclass
class Recorder:
    """Launches by name and offset of the only place; kernel d copies a byte of the input."""

    launched: list[tuple[str, int]] = field(default_factory=list)

    def compile(self, part: GpuPart) -> Sequence[str]:
        return [each.name for each in part.kernels]

    def allocate(self, size: int) -> Any:
        return np.zeros(size, np.uint8)

    def write(self, memory: Any, offset: int, array: Any) -> None:
        memory[offset : offset + array.nbytes] = array

    def read(self, memory: Any, offset: int, array: Any) -> None:
        array[:] = memory[offset : offset + array.nbytes]

    def launch(self, kernel: str, entry: KernelEntry, places: Sequence[tuple[Any, int]]) -> None:
        assert kernel == entry.name
        self.launched.append((kernel, places[0][1]))
        if kernel == "d":
            (source, start), (target, end) = places
            target[end] = source[start]

    def gather(self, launches: Sequence[tuple[Any, KernelEntry, Any]]) -> Any:
        def run() -> None:
            self.launched.append(("gathered", len(launches)))

        return run


def launch(kernel: str, *strides: Stride, offset: int = 0) -> Launch:
    return Launch("abcd".index(kernel), (Place(Space.MEMORY, 0, offset, strides),))


def loop(count: int, body: int, last: int, **given: Any) -> Repeat:
    places = dict.fromkeys(("counter", "condition", "done", "guard"))
    return Repeat(count, body, last, **{**places, "work": 5, "origin": "n", **given})


def part(*steps: Launch | Repeat) -> GpuPart:
    constants = (Constant("uint8", (2,), 0), Constant("uint8", (1,), 2))
    data = bytes([7, 8, 9])
    outputs = (OUTPUT,)
    return GpuPart("opencl", (INPUT,), outputs, "", ENTRIES, steps, constants, data, 64, 20, ())


def run(*steps: Launch | Repeat, x: Sequence[int] = ()) -> tuple[Recorder, np.ndarray]:
    machine = Recorder()
    given = np.zeros(24, np.uint8)
    given[: len(x)] = x
    result = ReadyPart("device", machine, part(*steps)).run({"x": given})
    return machine, result.outputs["y"]


def test_loops_in_loops_launch_their_steps_and_their_last_ones() -> None:
    machine, _ = run(
        launch("a"),
        loop(2, 4, 1),
        launch("b", STRIDES[0]),
        loop(3, 1, 1),
        launch("c", *STRIDES),
        launch("a", *STRIDES, offset=5),
        launch("b", STRIDES[0], offset=7),
        launch("a", offset=1),
    )
    inner = [
        [("b", first), *(("c", first + odd) for odd in (0, 10, 0)), ("a", first + 15)]
        for first in (0, 100)
    ]
    assert machine.launched == [("a", 0), *inner[0], *inner[1], ("b", 207), ("a", 1)]


def place(space: Space, offset: int = 0, number: int = 0) -> Place:
    return Place(space, number, offset, ())


def test_a_loop_goes_on_while_its_condition_holds_and_counts() -> None:
    x = place(Space.INPUT)
    ends = {"counter": place(Space.OUTPUT), "done": place(Space.OUTPUT, 8)}
    counted = loop(9, 1, 0, condition=x, **ends)
    machine, y = run(loop(1, 2, 0), counted, launch("a"), x=[0])
    assert machine.launched == [("a", 0)]
    assert y.view(np.int64).tolist() == [0, 1, 0]
    machine, y = run(replace(counted, condition=None, count=3), launch("a"))
    assert len(machine.launched) == 3
    assert y.view(np.int64).tolist() == [2, 3, 0]


@pytest.mark.parametrize(("count", "guard", "runs"), [(2, 1, 2), (2, 0, 0), (0, 1, 0), (1, 1, 1)])
def test_a_guard_that_does_not_hold_and_no_count_leave_a_loop_out(
    count: int, guard: int, runs: int
) -> None:
    guarded = loop(count, 1, 1, guard=place(Space.INPUT, 3))
    machine, _ = run(guarded, launch("a"), launch("b", STRIDES[0]), x=[0, 0, 0, guard])
    assert machine.launched == [("a", 0)] * runs + [("b", 100 * runs)]


@pytest.mark.parametrize(("work", "count", "ends"), [(5, 5, True), (5, 6, False), (0, 21, True)])
def test_work_is_taken_from_what_is_allowed(work: int, count: int, ends: bool) -> None:
    going = loop(count, 1, 0, condition=place(Space.INPUT), work=work)
    if ends:
        assert len(run(going, launch("a"), x=[1])[0].launched) == count
        return
    with pytest.raises(WorkLimitError, match="node 'n': its loop has not ended after 20 reads"):
        run(going, launch("a"), x=[1])


def test_each_space_has_its_memory() -> None:
    output = place(Space.OUTPUT, 2)
    for source, found in (
        (place(Space.INPUT, 1), 42),
        (place(Space.CONSTANT, 1), 8),
        (place(Space.CONSTANT, 0, 1), 9),
        (place(Space.MEMORY, 1), 0),
    ):
        _, y = run(Launch(3, (source, output)), x=[0, 42])
        assert y.tolist() == [0, 0, found, *[0] * 21]


def test_launches_without_loops_are_gathered() -> None:
    assert run(launch("a"), launch("b"))[0].launched == [("gathered", 2)]
    assert run(launch("a"))[0].launched == [("a", 0)]
    machine, _ = run(loop(1, 1, 0), launch("a"))
    assert machine.launched == [("a", 0)]


def test_a_part_is_timed_by_all_its_runs() -> None:
    machine = Recorder()
    assert ReadyPart("device", machine, part(launch("a"))).time(3) > 0
    assert machine.launched == [("a", 0)] * 3
