"""Primitives keep the meaning of kernels, and traces replay."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dovetail.compiler.graph.fuse import fuse
from dovetail.compiler.graph.interpreter import run
from dovetail.compiler.schedule.defaults import Limits, default_schedule
from dovetail.compiler.schedule.primitives import (
    Bind,
    Cache,
    Reorder,
    Schedule,
    ScheduleError,
    Split,
    from_record,
)
from dovetail.compiler.schedule.trace import replay
from dovetail.compiler.tensor.activation import plan_activations
from dovetail.compiler.tensor.interpreter import Arrays, run_kernel
from dovetail.compiler.tensor.ir import LoopKind
from dovetail.compiler.tensor.lower import lower
from dovetail.compiler.tensor.stages import LoweredLayer
from dovetail.compiler.tensor.tiles import tile_loops
from dovetail.compiler.tensor.verify import verify

from ..graph.graphs import convolution, image_builder, random_input

LANES = 4
OUTPUTS = 12


def _layer() -> tuple[LoweredLayer, NDArray[np.int8], NDArray[np.int8]]:
    """A 3x3 convolution of 6x5 pixels and 3 to 12 channels, its input and its output (HWC)."""
    builder = image_builder((1, 6, 5, 3))
    graph = builder.build((convolution(builder, "x", OUTPUTS),))
    partition = fuse(graph)
    layer = lower(graph, partition.layers[0], plan_activations(graph, partition, LANES))
    x = random_input(graph)
    return layer, x["x"][0], run(graph, x)["y"][0]


LAYER, X, WANTED = _layer()


def result(schedule: Schedule) -> NDArray[Any]:
    """What the scheduled kernel makes of ``X``; caches of weights are filled as a target would."""
    source, output = LAYER.inputs[0], LAYER.output
    arrays: dict[str, NDArray[Any]] = {}
    buffers = {ref.buffer for stage in schedule.kernel.stages for ref in stage.refs}
    for buffer in buffers:
        arrays[buffer.name] = np.full(buffer.shape, 77, buffer.dtype)
    for name, array in LAYER.constants.items():
        if arrays[name].shape == array.shape:
            arrays[name] = array
    top, left = source.halo[:2]
    arrays[source.name][...] = source.fill
    block = arrays[source.name][0, top : top + 6, left : left + 5]
    block[...] = np.pad(X, ((0, 0), (0, 0), (0, LANES - 3)))

    def refill(tile: Mapping[str, int], arrays: Arrays) -> None:
        weights = LAYER.constants["weights"]
        count = arrays["weights"].shape[0]
        if count < len(weights):
            start = tile["c.outer"] * count
            arrays["weights"] = weights[start : start + count]

    run_kernel(schedule.kernel, arrays, refill)
    blocks = arrays[output.name]
    return np.concatenate(list(blocks), axis=-1)[..., :OUTPUTS]


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    """Random splits, orders and kinds, and perhaps a cache of the sums."""
    schedule = Schedule(LAYER.kernel)
    for _ in range(draw(st.integers(0, 6))):
        stage = draw(st.sampled_from(schedule.kernel.stages))
        match draw(st.integers(0, 2)):
            case 0:
                loop = draw(st.sampled_from(stage.loops))
                factors = [n for n in range(1, loop.extent + 1) if loop.extent % n == 0]
                schedule = schedule.then(Split(loop.name, draw(st.sampled_from(factors))))
            case 1:
                names = draw(st.permutations([loop.name for loop in stage.loops]))
                schedule = schedule.then(Reorder(stage.name, tuple(names)))
            case _:
                names = draw(st.lists(st.sampled_from(list(stage.extents)), min_size=1))
                kind = draw(st.sampled_from(LoopKind))
                schedule = schedule.then(Bind(tuple(names), kind))
    if draw(st.booleans()):
        schedule = schedule.then(Cache("acc"))
    return schedule


@given(schedules())
@settings(max_examples=150, deadline=None)
def test_schedules_keep_the_meaning_and_replay(schedule: Schedule) -> None:
    verify(schedule.kernel)
    np.testing.assert_array_equal(result(schedule), WANTED)
    assert replay(LAYER.kernel, json.loads(json.dumps(schedule.record))) == schedule


@pytest.mark.parametrize("acc_words", [1, 3, 10, 64])
@pytest.mark.parametrize("wgt_words", [9, 18, 64])
def test_default_schedules_keep_the_meaning(acc_words: int, wgt_words: int) -> None:
    schedule = default_schedule(LAYER.kernel, Limits(acc_words, wgt_words))
    verify(schedule.kernel)
    np.testing.assert_array_equal(result(schedule), WANTED)


def test_a_cache_holds_one_tile() -> None:
    schedule = default_schedule(LAYER.kernel, Limits(10, 9))
    shapes = {ref.buffer.name: ref.buffer.shape for s in schedule.kernel.stages for ref in s.refs}
    tiles = {loop.name: loop.extent for loop in tile_loops(schedule.kernel)}
    assert set(tiles) == {"c.outer", "y.outer", "x.outer"}
    assert shapes["acc"] == (1, 6 // tiles["y.outer"], 5 // tiles["x.outer"], LANES)
    assert shapes["weights"] == (1, 1, 3, 3, LANES, LANES)


ROWS = (Split("y", 2), Bind(("y.inner", "x"), LoopKind.HARDWARE))


@pytest.mark.parametrize(
    ("before", "primitive", "message"),
    [
        ((), Split("y", 4), "4 does not divide the 6 iterations of 'y'"),
        ((), Split("y", 0), "0 does not divide"),
        ((), Split("z", 2), "has no loop 'z'"),
        ((), Reorder("finish", ("c", "y", "x")), "finish has the loops"),
        ((), Reorder("start", ()), "has no stage 'start'"),
        ((), Bind(("y", "q"), LoopKind.HARDWARE), "has no loop 'q'"),
        ((), Cache("nothing"), "has no buffer 'nothing'"),
        (ROWS, Cache("y"), "y is the result of conv, which holds all tiles"),
        ((*ROWS, Cache("acc")), Split("y.outer", 3), "changes the tiles .* acc is cached"),
        ((*ROWS, Cache("acc")), Bind(("c",), LoopKind.HARDWARE), "put it before the cache"),
    ],
)
def test_illegal_primitives_are_refused(
    before: tuple[Any, ...], primitive: Any, message: str
) -> None:
    schedule = Schedule(LAYER.kernel)
    for each in before:
        schedule = schedule.then(each)
    with pytest.raises(ScheduleError, match=message):
        schedule.then(primitive)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({}, "no schedule primitive in {}; there are: split, reorder, bind, cache"),
        ({"primitive": "melt"}, "no schedule primitive"),
        ({"primitive": "split", "loop": "y"}, r"split requires \['factor', 'loop'\]"),
        ({"primitive": "cache", "buffer": "acc", "more": 1}, "found the fields"),
        ({"primitive": "split", "loop": "y", "factor": "2"}, "factor cannot be '2'"),
        ({"primitive": "split", "loop": "y", "factor": True}, "factor cannot be True"),
        ({"primitive": "split", "loop": 1, "factor": 2}, "loop cannot be 1"),
        ({"primitive": "bind", "names": 3, "kind": "serial"}, "names cannot be 3"),
        ({"primitive": "bind", "names": ["y"], "kind": "melted"}, "kind cannot be 'melted'"),
    ],
)
def test_records_of_another_form_are_refused(record: dict[str, object], message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        from_record(record)


def test_replay_names_the_entry_that_does_not_apply() -> None:
    record = Schedule(LAYER.kernel).then(Split("y", 2)).record
    with pytest.raises(ScheduleError, match=r"trace entry 1: split: .* has no loop 'y'"):
        replay(LAYER.kernel, [*record, *record])
