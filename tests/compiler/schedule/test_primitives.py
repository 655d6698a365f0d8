"""Random sequences of primitives keep the meaning of random kernels; illegal ones are refused."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.compiler.schedule.primitives import (
    Bind,
    Cache,
    Pipeline,
    Primitive,
    Reorder,
    Schedule,
    ScheduleError,
    Split,
    apply,
    from_record,
)
from dovetail.compiler.tensor.ir import Kernel, LoopKind
from dovetail.compiler.tensor.stages import LoweredLayer
from dovetail.compiler.tensor.tiles import tile_loops
from dovetail.compiler.tensor.verify import verify

from ..graph.graphs import convolution, image_builder
from ..tensor.layers import lower_graph, networks
from .scheduled import scheduled_result

ORDERS = st.randoms(use_true_random=False)


def conv_layer() -> LoweredLayer:
    """A 3x3 convolution of 6x5 pixels from 3 to 12 channels, in blocks of 4."""
    builder = image_builder((1, 6, 5, 3))
    return lower_graph(builder.build((convolution(builder, "x", 12),)), 4, 0).layers[0]


CONV = conv_layer().kernel


def cacheable(kernel: Kernel) -> list[str]:
    """The buffers that ``Cache`` takes."""
    names = {ref.buffer.name for stage in kernel.stages for ref in stage.refs}
    return sorted(name for name in names if _applies(kernel, Cache(name)))


def _applies(kernel: Kernel, primitive: Primitive) -> bool:
    try:
        apply(kernel, primitive)
    except ScheduleError:
        return False
    return True


def random_primitive(data: st.DataObject, kernel: Kernel) -> Primitive:
    """A primitive that applies to ``kernel``, if nothing is cached yet."""
    stage = data.draw(st.sampled_from(kernel.stages))
    loop = data.draw(st.sampled_from(stage.loops))
    match data.draw(st.integers(0, 4)):
        case 0:
            extents = {s.extents.get(loop.name, loop.extent) for s in kernel.stages}
            (extent,) = extents
            factors = [n for n in range(1, extent + 1) if extent % n == 0]
            return Split(loop.name, data.draw(st.sampled_from(factors)))
        case 1:
            names = data.draw(st.permutations([each.name for each in stage.loops]))
            return Reorder(stage.name, tuple(names))
        case 2:
            bound = data.draw(st.sets(st.sampled_from(sorted(stage.extents)), min_size=1))
            return Bind(tuple(sorted(bound)), data.draw(st.sampled_from(LoopKind)))
        case 3:
            return Pipeline(data.draw(st.integers(1, 3)))
        case _:
            return Cache(data.draw(st.sampled_from(cacheable(kernel))))


@given(st.data())
@settings(max_examples=80, deadline=None)
def test_random_schedules_keep_the_result(data: st.DataObject) -> None:
    network = data.draw(networks(("conv", "depthwise", "max", "average", "lookup"), lanes=2))
    layer = network.layers[0]
    schedule = Schedule(layer.kernel)
    for _ in range(data.draw(st.integers(1, 7))):
        primitive = random_primitive(data, schedule.kernel)
        try:
            schedule = schedule.then(primitive)
        except ScheduleError:
            assert any(isinstance(each, Cache) for each in schedule.trace)
    verify(schedule.kernel)
    found = scheduled_result(network, layer, schedule)
    np.testing.assert_array_equal(found, network.wanted(layer))
    replayed = Schedule(layer.kernel)
    for record in json.loads(json.dumps(schedule.record)):
        replayed = replayed.then(from_record(record))
    assert replayed == schedule


def test_split_makes_two_loops_of_one() -> None:
    kernel = apply(CONV, Split("c", 3))
    for stage in kernel.stages:
        assert [loop.name for loop in stage.loops[:2]] == ["c.outer", "c.inner"]
        assert [loop.extent for loop in stage.loops[:2]] == [1, 3]
        assert str(stage.target.indices[0]) == "c.inner + 3*c.outer"
    kernel = apply(CONV, Split("ky", 3))
    assert {"ky.outer", "ky.inner"} <= kernel.stages[0].reduction
    assert kernel.stages[1] == CONV.stages[1]


def test_cache_holds_one_tile() -> None:
    schedule = Schedule(CONV).then(Split("y", 2)).then(Bind(("y.inner", "x"), LoopKind.HARDWARE))
    for stage in schedule.kernel.stages:
        rest = [n for n in stage.extents if n not in ("c", "y.outer")]
        schedule = schedule.then(Reorder(stage.name, ("c", "y.outer", *rest)))
    assert [loop.name for loop in tile_loops(schedule.kernel)] == ["c", "y.outer"]
    kernel = schedule.then(Cache("acc")).then(Cache("weights")).then(Cache("bias")).kernel
    shapes = {r.buffer.name: r.buffer.shape for s in kernel.stages for r in s.refs}
    assert shapes["acc"] == (1, 2, 5, 4)
    assert shapes["weights"] == (1, 1, 3, 3, 4, 4)
    assert shapes["bias"] == (1, 4)
    assert shapes["scale"] == (3, 4)


@pytest.mark.parametrize(
    ("primitive", "message"),
    [
        (Split("z", 2), "split: kernel conv has no loop 'z'"),
        (Split("y", 4), "split: 4 does not divide the 6 iterations of 'y' in sum"),
        (Split("y", 0), "split: 0 does not divide the 6 iterations of 'y' in sum"),
        (Split("y", -2), "split: -2 does not divide"),
        (Reorder("end", ("c",)), "reorder: kernel conv has no stage 'end'"),
        (Reorder("finish", ("c", "y", "x")), r"reorder: finish has the loops \['c', 'y', 'x', 'l'"),
        (Reorder("finish", ("c", "c", "x", "l")), "reorder: finish has the loops"),
        (Bind(("c", "q"), LoopKind.LANE), "bind: kernel conv has no loop 'q'"),
        (Cache("other"), "cache: kernel conv has no buffer 'other'"),
        (Pipeline(0), "pipeline: 0 tiles of kernel conv; required 1"),
        (Cache("y"), "cache: y is the result of conv"),
    ],
)
def test_illegal_primitives_are_refused(primitive: Primitive, message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        Schedule(CONV).then(primitive)


@pytest.mark.parametrize(
    "primitive",
    [
        Split("y", 2),
        Bind(("y",), LoopKind.HARDWARE),
        Reorder("sum", ("k", "c", "y", "x", "ky", "kx", "l", "i")),
    ],
)
def test_tiles_of_a_cache_do_not_change(primitive: Primitive) -> None:
    schedule = Schedule(CONV).then(Cache("acc"))
    with pytest.raises(ScheduleError, match=r"changes the tiles of kernel conv.*acc is cached"):
        schedule.then(primitive)
    assert schedule.then(Split("kx", 3)).kernel.stages[0].extents["kx.inner"] == 3


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({}, "no schedule primitive in {}; there are: split, reorder, bind, cache"),
        ({"primitive": "fuse"}, "no schedule primitive"),
        ({"primitive": "split", "loop": "y"}, "split requires"),
        ({"primitive": "cache", "buffer": "acc", "size": 3}, "cache requires"),
        ({"primitive": "split", "loop": "y", "factor": "2"}, "factor cannot be '2'"),
        ({"primitive": "split", "loop": "y", "factor": True}, "factor cannot be True"),
        ({"primitive": "bind", "names": "yx", "kind": "lane"}, "names cannot be 'yx'"),
        ({"primitive": "bind", "names": ["y"], "kind": "fast"}, "kind cannot be 'fast'"),
        ({"primitive": "reorder", "stage": 1, "names": []}, "stage cannot be 1"),
    ],
)
def test_records_of_another_form_are_refused(record: dict[str, object], message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        from_record(record)
