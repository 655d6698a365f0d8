"""Tests that are tried for a line, by their records."""

import json
from pathlib import Path

import pytest
from coverage import CoverageData

from . import __main__
from .faults import Fault
from .reach import Reach
from .workplace import Workplace

CODE, ONE, TWO = "isa/code.py", "tests/isa/test_one.py", "tests/isa/test_two.py"
LINES = {"": [1], f"{ONE}::a": [2], f"{ONE}::b": [3, 4], "fixture tests/isa made": [5]}


@pytest.fixture
def reach(tmp_path: Path) -> Reach:
    """A map of four tests, in a first run; in a second, one of the files has been recorded anew."""
    place = Workplace(tmp_path)
    for path in (CODE, ONE, TWO):
        (place.tree / path).parent.mkdir(parents=True, exist_ok=True)
        (place.tree / path).write_text(path)
    found = Reach(place)
    data = CoverageData(str(found.folder / "0"))
    for context, lines in LINES.items():
        data.set_context(context)
        data.add_lines({str(place.tree / CODE): lines})
    data.write()
    later = CoverageData(str(found.folder / "1"))
    later.set_context(f"{TWO}::new")
    later.add_lines({str(place.tree / CODE): [6]})
    later.write()
    code, one, two = (found._digest(path) for path in (CODE, ONE, TWO))
    seconds = {f"{ONE}::a": 1.0, f"{ONE}::b": 2.0, f"{TWO}::old": 3.0}
    sharing = {"fixture tests/isa made": [f"{ONE}::b", f"{TWO}::old"]}
    for number, files, took, shared in (
        (0, {ONE: one, TWO: "before"}, seconds, sharing),
        (1, {TWO: two}, {f"{TWO}::new": 4.0}, {}),
    ):
        run = {"data": str(found.folder / str(number)), "files": files, "sources": {CODE: code}}
        kept = json.dumps({**run, "seconds": took, "sharing": shared})
        (found.folder / f"{number}.json").write_text(kept)
    return Reach(place)


@pytest.mark.parametrize(
    ("line", "tests"),
    [
        (2, {f"{ONE}::a": True, f"{ONE}::b": False}),
        (3, {f"{ONE}::a": False, f"{ONE}::b": True}),
        (5, {f"{ONE}::a": False, f"{ONE}::b": True}),
        (6, {f"{TWO}::new": True}),
        (1, {f"{ONE}::a": True, f"{ONE}::b": True}),
        (7, {}),
    ],
    ids=["test", "other", "fixture", "later", "import", "nobody"],
)
def test_a_line_has_the_tests_that_reach_it_and_others_of_their_files(
    reach: Reach, line: int, tests: dict[str, bool]
) -> None:
    assert reach.tests(CODE, range(line, line + 1)) == tests


def test_where_the_code_has_changed_all_tests_of_the_file_reach_a_line(reach: Reach) -> None:
    (reach.place.tree / CODE).write_text("other")
    everyone = {f"{ONE}::a", f"{ONE}::b", f"{TWO}::new"}
    assert reach.tests(CODE, range(7, 8)) == dict.fromkeys(everyone, True)


def test_what_changed_or_was_never_recorded_is_missing(reach: Reach) -> None:
    assert reach.missing([ONE, TWO]) == []
    (reach.place.tree / TWO).write_text("other")
    other = "tests/isa/test_other.py"
    (reach.place.tree / other).write_text("")
    assert reach.missing([ONE, TWO, other]) == [TWO, other]
    assert reach.seconds == {f"{ONE}::a": 1.0, f"{ONE}::b": 2.0, f"{TWO}::new": 4.0}


@pytest.mark.parametrize(
    ("narrow", "tests"), [(False, [f"{ONE}::a", f"{ONE}::b"]), (True, [f"{TWO}::new"])]
)
def test_only_tests_that_mirror_a_file_are_asked_on_demand(
    narrow: bool, tests: list[str], reach: Reach, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(__main__, "mirrored", lambda root, path: [TWO])
    monkeypatch.setattr(__main__, "nearest", lambda root, path: [TWO, ONE])
    monkeypatch.setattr(__main__, "BROAD", ())
    fault = Fault(CODE, 2, "constant", 2, 3, "7")
    assert __main__.chosen(reach, fault, b"a\nb\n", narrow) == tests


def test_the_test_that_fails_is_named_whatever_its_simulator_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = f"ERROR    Ports:runner.py:674 ERROR: Failed 1 of 1 tests.\nFAILED {ONE}::a - Error\n"
    monkeypatch.setattr(Workplace, "_run", lambda *given: (1, output))
    (tmp_path / "cache").mkdir()
    assert Workplace(tmp_path).try_fault([ONE], 1) == f"{ONE}::a"
