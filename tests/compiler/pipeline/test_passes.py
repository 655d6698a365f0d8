"""The pipeline runs passes in order and tells observers about each."""

import io
from dataclasses import dataclass
from pathlib import Path

import pytest

from dovetail.compiler.pipeline.passes import Dump, Pipeline, Times, Verify


@dataclass(frozen=True)
class Append:
    """Adds ``text``; nothing to do for an empty one."""

    name: str
    text: str

    def run(self, ir: str) -> str:
        return ir + self.text if self.text else ir


PASSES = (Append("first", "a"), Append("nothing", ""), Append("last", "b"))


def test_passes_run_in_order() -> None:
    assert Pipeline(PASSES).run("x") == "xab"


def test_observers_see_every_pass() -> None:
    seen: list[tuple[str, str, str]] = []
    Pipeline(PASSES, (lambda name, before, after, _: seen.append((name, before, after)),)).run("")
    assert seen == [("first", "", "a"), ("nothing", "a", "a"), ("last", "a", "ab")]


def test_dumps_are_numbered_and_say_when_nothing_changed(tmp_path: Path) -> None:
    Pipeline(PASSES, (Dump(tmp_path / "dump", str),)).run("x")
    files = {path.name: path.read_text() for path in (tmp_path / "dump").iterdir()}
    assert files == {
        "00_first.txt": "xa\n",
        "01_nothing.txt": "(unchanged)\n",
        "02_last.txt": "xab\n",
    }


def test_a_failed_check_names_the_pass() -> None:
    def check(ir: str) -> None:
        if "b" in ir:
            raise ValueError("found b")

    with pytest.raises(ValueError, match="found b") as caught:
        Pipeline(PASSES, (Verify(check),)).run("x")
    assert caught.value.__notes__ == ["after pass 'last'"]


def test_times_list_every_pass() -> None:
    times: Times[str] = Times()
    Pipeline(PASSES, (times,)).run("x")
    stream = io.StringIO()
    times.write(stream)
    lines = [line.split("ms")[1].strip() for line in stream.getvalue().splitlines()]
    assert lines == ["first", "nothing (unchanged)", "last"]
