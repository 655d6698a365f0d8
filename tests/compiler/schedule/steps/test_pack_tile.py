"""PackTile, and what it shares with PackStores: before, after, and what is refused."""

import pytest

from dovetail.compiler.errors import ScheduleError
from dovetail.compiler.schedule.steps.pack_stores import PackStores
from dovetail.compiler.schedule.steps.pack_tile import PackTile
from dovetail.compiler.schedule.steps.schedule import Step
from dovetail.compiler.targets.cpu.llvm.intrinsics import INTRINSICS

from .programs import body_of, keeps, program, scheduled


def tile(*places: str, value: str = "w + x[{n}, l]") -> str:
    """A vector loop that stores a byte of each lane in each place of y."""
    stores = (
        f"\n      y[{place}] = cast(uint8, max(min({value.format(n=n)}, 255:int32), 0:int32))"
        for n, place in enumerate(places)
    )
    return "\n  for l in 16 vector:\n    let w: int32 = x[0, l] * 3:int32:" + "".join(stores)


ROWS = tuple(f"{n}, l" for n in range(8))
UNROLLED = """
  for i in 8 unrolled:
    for l in 16 vector:
      y[{place}] = cast(uint8, max({value}, 0:int32))"""


def test_rows_of_a_tile_are_packed_by_fours() -> None:
    schedule = scheduled("packed", tile(*ROWS), INTRINSICS).pack_tile("l")
    text = body_of(schedule)
    assert text.count("invoke pack_uint8_16") == 2
    assert "y[4 : 4, 0 : 16])" in text
    assert "near7[l] = w + x[7, l]" in text, "limits are the instruction's"
    keeps(schedule, program("packed", tile(*ROWS)))


def test_rows_side_by_side_in_two_dimensions_are_not_packed() -> None:
    stores = tile("0, 0, l", "0, 1, l", "2, 0, l", "3, 0, l")
    with pytest.raises(ScheduleError, match="side by side"):
        scheduled("cube", stores, INTRINSICS).pack_tile("l")


@pytest.mark.parametrize(
    ("body", "step", "message"),
    [
        (tile(*ROWS).replace("16 vector", "8 vector"), PackTile("l"), "required 16 lanes"),
        (tile(*ROWS).replace(" vector", ""), PackTile("l"), "required 16 lanes"),
        (tile(*ROWS[:6]), PackTile("l"), "required 16 lanes"),
        (tile(*ROWS[:3], "4, l"), PackTile("l"), "side by side"),
        (tile("1, l", "0, l", "2, l", "3, l"), PackTile("l"), "side by side"),
        (tile("0, l", "1, l", "2, l", "3, 15 - l"), PackTile("l"), "side by side"),
        (
            tile(*ROWS[:4], value="x[{n}, l] + cast(int32, y[0, l])"),
            PackTile("l"),
            "made of an int32",
        ),
        (tile(*ROWS).replace("uint8, ", "uint8, cast(int64, ").replace("t32))", "t32)))"),
         PackTile("l"), "made of an int32"),
        (UNROLLED.format(place="min(i, 6), l", value="x[i, l]"), PackStores("i"), "side by side"),
        (
            UNROLLED.format(place="i, l", value="x[i, l] + cast(int32, y[max(i - 1, 0), l])"),
            PackStores("i"),
            "share an element of y",
        ),
    ],
)  # fmt: skip
def test_what_would_change_the_meaning_is_refused(body: str, step: Step, message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        scheduled("packed", body, INTRINSICS).then(step)
