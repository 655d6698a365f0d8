"""Layers that are alike have one schedule, and each gets from it what is its own."""

import pytest

from dovetail.compiler.loops.ir import Function
from dovetail.compiler.loops.parse import parse
from dovetail.compiler.targets.vta.alike import Alike
from dovetail.compiler.targets.vta.schedules import CONSTANTS, Tiling, tiled

TILING = Tiling({"c": 1, "y": 1, "x": 2}, ("c", "y", "x"))


def part(
    source: str = "a", target: str = "b", channel: int = 1, column: int = 2, number: int = 7
) -> Function:
    """A copy of some pixels of a block of channels, of which ``number`` is the least."""
    return parse(f"""function "{source}"
  input {source}: int8[4, 3, 9, 4] act
  output {target}: int8[4, 3, 9, 4] act
  for c in 1:
    for y in 3:
      for x in 4:
        for l in 4:
          {target}[c, y, x + {column}, l] = max({source}[c + {channel}, y, x, l], {number}:int8)
""")


@pytest.mark.parametrize(
    "own", [{"source": "q", "target": "k"}, {"channel": 3}, {"column": 5}, {"number": -3}]
)
def test_one_schedule_gives_each_layer_its_own(own: dict[str, object]) -> None:
    layer = part(**own)  # type: ignore[arg-type]
    alike, other = (Alike.of(each, CONSTANTS) for each in (layer, part()))
    assert alike.function == other.function
    assert alike != other
    shared = tiled(other.function, TILING).function
    assert alike.own(shared) == tiled(layer, TILING).function


def test_0_and_1_stay() -> None:
    first, other = (Alike.of(part(number=number), CONSTANTS) for number in (1, 7))
    assert first.function != other.function
