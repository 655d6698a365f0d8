"""Tiles of sums in registers: what they mean, and what is refused."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.compiler.errors import ScheduleError
from dovetail.compiler.loops.interpreter import interpret
from dovetail.compiler.loops.intrinsic import PREFETCH
from dovetail.compiler.loops.ir import Function, Invoke
from dovetail.compiler.loops.parse import parse
from dovetail.compiler.loops.traverse import walk
from dovetail.compiler.loops.verify import verify
from dovetail.compiler.schedule.steps.register_tile import RegisterTile
from dovetail.compiler.schedule.steps.schedule import Schedule
from dovetail.compiler.targets.cpu.llvm.intrinsics import INTRINSICS

PRODUCT = """
function product
  input x: int32[6, 5]
  input w: int32[5, 9]
  input b: int32[9]
  output y: int32[6, 9]
  for i in 6:
    for j in 9:
      alloc c: int32[] register:
        c[] = 0:int32
        for k in 5:
          c[] add= x[i, k] * w[k, j]
        let t: int32 = c[]:
          let v: int32 = t + b[j]:
            y[i, j] = max(v, 0:int32)
"""
TILE = RegisterTile("c", ("i", "j"), ("k",))


def product() -> Schedule:
    return Schedule.of(parse(PRODUCT), INTRINSICS)


def computed(function: Function) -> np.ndarray:
    rng = np.random.default_rng(0)
    given_arrays = {
        buffer.name: rng.integers(-9, 9, buffer.shape).astype(np.int32)
        for buffer in function.inputs
    }
    return interpret(function, given_arrays, seed=1, intrinsics=INTRINSICS)["y"]


EXPECTED = computed(parse(PRODUCT))


@settings(max_examples=40, deadline=None)
@given(
    loops=st.permutations(["i", "j"]),
    rows=st.integers(1, 7),
    columns=st.integers(1, 4),
    vector=st.sampled_from(["", "i", "j", "k"]),
    lanes=st.integers(2, 7),
    staged=st.booleans(),
    start=st.booleans(),
)
def test_any_tile_computes_the_same(
    loops: list[str],
    rows: int,
    columns: int,
    vector: str,
    lanes: int,
    staged: bool,
    start: bool,
) -> None:
    tile = RegisterTile(
        "c",
        tuple(loops),
        () if vector == "k" else ("k",),
        vector=vector,
        lanes=lanes if vector else 1,
        tiles=(("i", rows), ("j", columns)),
        staged=staged,
    )
    plain = product().start_from("c") if start and vector != "k" else product()
    function = plain.register_tile(tile).function
    verify(function)
    np.testing.assert_array_equal(computed(function), EXPECTED)


@pytest.mark.parametrize(
    ("text", "tile", "message"),
    [
        (PRODUCT, RegisterTile("c", ("i",), ("k",)), "required the innermost of those directly"),
        (PRODUCT, RegisterTile("c", ("i", "j"), ()), "required each of k once"),
        (PRODUCT, RegisterTile("c", ("i", "j"), ("k",), vector="n", lanes=2), "no loop 'n' for"),
        (PRODUCT, RegisterTile("c", ("i", "j"), ("k",), lanes=2), "2 lanes of no loop"),
        (PRODUCT, RegisterTile("c", ("i", "j"), ("k",), tiles=(("k", 2),)), "each of i, j"),
        (PRODUCT, RegisterTile("d", ("i", "j"), ("k",)), "no allocation of 'd'"),
        (
            PRODUCT.replace("c[] = 0:", "c[] = 7:"),
            RegisterTile("c", ("i", "j"), (), (), "k", 2),
            "start from another value",
        ),
        (PRODUCT.replace("y[i, j]", "y[i, 0]"), TILE, "iterations of i, j touch the same element"),
        (PRODUCT.replace("+ b[j]", "+ y[0, j]"), TILE, "touch the same element of y"),
        (PRODUCT.replace("w[k, j]", "c[]"), TILE, "its value is used while it is summed"),
        (PRODUCT.replace("for k in 5", "for k in i"), TILE, "a sum's extent is not constant"),
        (PRODUCT.replace("c[] add=", "c[] ="), TILE, "no update of it follows"),
        (
            PRODUCT.replace("c: int32[]", "c: int32[1]").replace("c[]", "c[0]"),
            TILE,
            "the shape [1]",
        ),
    ],
)
def test_what_is_no_tile_of_a_sum_is_refused(text: str, tile: RegisterTile, message: str) -> None:
    with pytest.raises(ScheduleError, match=re.escape(message)):
        Schedule.of(parse(text)).register_tile(tile)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("c[] = 0:", "c[] = 1:"),
        ("t + b[j]", "t * b[j]"),
        ("t + b[j]", "t + 3:int32"),
        ("max(v, 0:int32)", "max(v, t)"),
        ("c[] add=", "c[] max="),
    ],
)
def test_a_sum_starts_only_from_what_is_added_to_it_alone(old: str, new: str) -> None:
    assert old in PRODUCT
    with pytest.raises(ScheduleError, match="used only to add an element of another buffer"):
        Schedule.of(parse(PRODUCT.replace(old, new))).start_from("c")


def test_the_next_round_is_asked_for() -> None:
    tile = RegisterTile("c", ("j", "i"), ("k",), tiles=(("j", 2),))
    schedule = product().register_tile(tile)
    ahead = schedule.prefetch("k", "w", "j.u.2")
    np.testing.assert_array_equal(computed(ahead.function), EXPECTED)
    (call,) = (each for each in walk(ahead.function.body) if isinstance(each, Invoke))
    assert call.intrinsic == PREFETCH
    assert len(call.operands) == 2
    assert schedule.prefetch("k", "w", "j").function != schedule.function
    with pytest.raises(ScheduleError, match="the loop does not read it"):
        schedule.prefetch("k", "b", "j")
    with pytest.raises(ScheduleError, match="moving loop k; required one around it, or one"):
        schedule.prefetch("k", "w", "k")


def test_only_bytes_side_by_side_are_packed() -> None:
    schedule = product().register_tile(TILE)
    for loop in ("i", "k"):
        with pytest.raises(ScheduleError, match="required unrolled loops around 16 lanes"):
            schedule.pack_stores(loop)
