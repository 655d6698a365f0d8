"""Loops that become blocks and threads, and how many of each."""

import pytest

from dovetail.compiler.loops.ir import For
from dovetail.compiler.loops.parse import parse
from dovetail.compiler.loops.text import expr_to_text
from dovetail.compiler.loops.traverse import walk
from dovetail.compiler.schedule.rules.gpu.bind import bind_nests
from dovetail.compiler.schedule.steps.schedule import Schedule

HEAD = """
function "f"
  input n: int64[]
  input x: float32[8, 8, 64]
  output y: float32[8, 8, 64]
"""
PLACE = "y[i, j, k] = x[i, j, k]"
SUM = "y[i, j, 0] add= x[i, j, k]"
CHAIN = "y[i + 1, j, k] = y[i, j, k]"


def loops(text: str, threads: int) -> str:
    """Extents and kinds of all loops of a function when it is bound, as they stand."""
    function = bind_nests(Schedule.of(parse(f"{HEAD}{text}")), threads).function
    found = (each for each in walk(function.body) if isinstance(each, For))
    return " ".join(f"{expr_to_text(each.extent)}{each.kind.value[0]}" for each in found)


def nest(sizes: tuple[object, ...], body: str = PLACE) -> str:
    """``body`` in loops of i, j and k."""
    lines = [f"for {name} in {size}:" for name, size in zip("ijk", sizes, strict=True)]
    return "".join(f"{'  ' * depth}{line}\n" for depth, line in enumerate([*lines, body], 1))


@pytest.mark.parametrize(
    ("sizes", "threads", "expected"),
    [
        ((2, 4, 64), 64, "2b 4b 64t"),
        ((2, 4, 64), 127, "2b 4b 64t"),  # one more would not be twice as many
        ((2, 4, 64), 128, "2b 2b 2t 64t"),
        ((2, 4, 64), 256, "2b 4t 64t"),
        ((2, 4, 64), 512, "2t 4t 64t"),
        ((2, 4, 64), 63, "2b 4b 2b 32t"),  # the largest divisor
        ((2, 4, 39), 32, "2b 4b 2b 32t"),  # 13 is less than half: a rest
        ((2, 3, 64), 256, "2b 3t 64t"),
        ((0, 4, 64), 64, "0s 4s 64s"),
        ((2, 0, 64), 64, "2t 0s 64s"),
        ((1, 1, 1), 64, "1t 1t 1t"),
        ((2, "n[]", 64), 64, "2t n[]s 64s"),
    ],
)
def test_inner_loops_are_threads_and_outer_ones_blocks(
    sizes: tuple[object, ...], threads: int, expected: str
) -> None:
    assert loops(nest(sizes), threads) == expected


def test_loops_whose_iterations_meet_stay_in_order() -> None:
    assert loops(nest((2, 4, 64), SUM), 64) == "2t 4t 64s"
    assert loops(nest((7, 4, 64), CHAIN), 64) == "7s 4s 64s"


def test_each_nest_at_the_top_is_bound() -> None:
    inner = nest((2, 4, 8)).replace("\n", "\n  ").rstrip()
    text = f"  if n[] < 3:\n  {inner}\n  alloc s: float32[]:\n    s[] = 0.0:float32\n  {inner}\n"
    assert loops(text, 4) == " ".join(["2b 4b 2b 4t"] * 2)
    other = f"  if n[] < 3:\n  {inner}\n  else:\n  {inner}\n"
    assert loops(other, 4) == " ".join(["2s 4s 8s"] * 2)
