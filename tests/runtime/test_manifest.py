"""Dataclasses as JSON values: what is written, read back, and refused by the path to its field."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, NamedTuple

import pytest

from dovetail.runtime.errors import InputError, ModuleError
from dovetail.runtime.manifest import Content, read_value, write_value


class Colour(Enum):
    RED = "red"
    TWO = 2


class Place(NamedTuple):
    row: int
    column: int = 7


@dataclass(frozen=True)
class Square:
    side: float


@dataclass(frozen=True)
class Circle:
    radius: float

    def __post_init__(self) -> None:
        if self.radius < 0:
            raise InputError("a radius below 0")


@dataclass(frozen=True)
class Page:
    flag: bool
    count: int
    share: float
    name: str
    colour: Colour
    place: Place
    pair: tuple[int, str]
    rows: tuple[tuple[int, ...], ...]
    shapes: tuple[Square | Circle, ...]
    known: Mapping[str, Circle]
    maybe: Square | None
    data: Content
    any: object


PAGE = Page(
    *(True, 3, 0.5, "n", Colour.TWO, Place(1, 2), (4, "p"), ((1,), ()), (Square(1.0), Circle(2.0))),
    *({"a": Circle(1.5)}, None, b"bytes", {"x": [1, None]}),
)
sections: list[Any] = []
WRITTEN: dict[str, Any] = json.loads(json.dumps(write_value(PAGE, sections)))
SECTIONS = [memoryview(each) for each in sections]


def test_what_is_written_is_plain_and_read_again() -> None:
    assert WRITTEN == {
        "flag": True, "count": 3, "share": 0.5, "name": "n", "colour": 2, "place": [1, 2],
        "pair": [4, "p"], "rows": [[1], []], "known": {"a": {"radius": 1.5}}, "maybe": None,
        "shapes": [{"kind": "Square", "side": 1.0}, {"kind": "Circle", "radius": 2.0}],
        "data": 0, "any": {"x": [1, None]},
    }  # fmt: skip
    assert [bytes(each) for each in SECTIONS] == [b"bytes"]
    assert read_value(Page, WRITTEN, "file", SECTIONS) == PAGE
    short = {**WRITTEN, "place": [5], "share": 2, "maybe": {"side": 3}}
    found = read_value(Page, short, "file", SECTIONS)
    assert found == replace(PAGE, place=Place(5), share=2.0, maybe=Square(3.0))
    assert type(found.share) is float


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("flag", 1, ", field page.flag: found 1, required true or false"),
        ("count", True, ", field page.count: found True, required an integer"),
        ("count", 3.0, ", field page.count: found 3.0, required an integer"),
        ("share", "0.5", ", field page.share: found '0.5', required a finite number"),
        ("share", True, ", field page.share: found True, required a finite number"),
        ("share", float("inf"), ", field page.share: found inf, required a finite number"),
        ("name", 3, ", field page.name: found 3, required a text"),
        ("name", ["x" * 60], f", field page.name: found ['{'x' * 35}..., required a text"),
        ("colour", "blue", ", field page.colour: found 'blue', required one of red, 2"),
        ("colour", 2.0, ", field page.colour: found 2.0, required one of red, 2"),
        ("place", [], ", field page.place: found [], required a list of row, column"),
        ("place", [1, 2, 3], ", field page.place: found [1, 2, 3], required a list of row, column"),
        ("place", [1, "a"], ", field page.place.column: found 'a', required an integer"),
        ("pair", [4], ", field page.pair: found [4], required a list of 2"),
        ("pair", [4, 5], ", field page.pair: found 5, required a text"),
        ("rows", {}, ", field page.rows: found {}, required a list"),
        ("rows", [[1], [2, "a"]], ", field page.rows[1][1]: found 'a', required an integer"),
        ("rows", [[1], [True]], ", field page.rows[1][0]: found True, required an integer"),
        ("shapes", [{"side": 1}], ", field page.shapes[0]: found None, required one of the kinds"),
        ("shapes", [{"kind": "Line"}], ", field page.shapes[0]: found 'Line', required one of the"),
        (
            "shapes", [{"kind": "Circle", "radius": -1}],
            ", field page.shapes[0]: a radius below 0; compile it again",
        ),
        ("known", [], ", field page.known: found [], required an object"),
        ("known", {"a": {}}, ", field page.known.a: no entry 'radius'"),
        ("known", {"": 1}, ", field page.known.'': found 1, required an object with radius"),
        ("maybe", {"side": 1, "odd": 2}, ", field page.maybe: an entry 'odd', which does not"),
        ("data", 1, ", field page.data: found 1, required the number of a section, below 1"),
        ("data", -1, ", field page.data: found -1, required the number of a section, below 1"),
        ("data", False, ", field page.data: found False, required the number of a section, below"),
    ],
)  # fmt: skip
def test_a_field_of_another_type_is_refused_by_its_path(name: str, value: Any, said: str) -> None:
    with pytest.raises(ModuleError) as found:
        read_value(Page, {**WRITTEN, name: value}, "file", SECTIONS, "page")
    assert str(found.value).startswith(f"file has a manifest that cannot be read{said}")


def test_fields_that_are_missing_or_too_many_are_named() -> None:
    less = {name: value for name, value in WRITTEN.items() if name != "rows"}
    for given, said in (
        (less, ": no entry 'rows'"),
        ([], ": found [], required an object with fl"),
    ):
        with pytest.raises(ModuleError, match=r"^file has a manifest that cannot be read") as found:
            read_value(Page, given, "file", SECTIONS)
        assert said in str(found.value)
