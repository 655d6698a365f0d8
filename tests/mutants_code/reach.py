"""Lines of the production code that each test reaches: recorded once, and kept.

A test file is recorded again when it changes.  Where a file of the production code has changed
since, its lines may have moved: all tests that run it count as reaching each of them.
"""

import hashlib
import json
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass
from functools import cached_property

from coverage import CoverageData

from .neighbours import production
from .workplace import Workplace

__all__ = ["Reach"]

TOGETHER = 10
"""Test files that are recorded in one process."""


@dataclass(frozen=True)
class Run:
    """A process's record: ``data`` is coverage's file, and the rest is in FILE.json."""

    data: str
    files: dict[str, str]
    """The digest of each test file."""
    sources: dict[str, str]
    """The digest of each file of the production code."""
    seconds: dict[str, float]
    """The CPU seconds of each test that passes."""
    sharing: dict[str, list[str]]
    """The tests that use each shared fixture."""

    @cached_property
    def lines(self) -> CoverageData:
        """The contexts that reach each line: tests, shared fixtures, and "" for imports."""
        data = CoverageData(self.data)
        data.read()
        return data

    def tests(self, contexts: Collection[str]) -> set[str]:
        """The tests that some contexts stand for."""
        return {test for each in contexts for test in self.sharing.get(each, [each])}


class Reach:
    """The map of a workplace, in its folder ``reach``."""

    def __init__(self, place: Workplace) -> None:
        self.place = place
        self.folder = place.folder / "reach"
        self.folder.mkdir(exist_ok=True)
        self.newest: dict[str, Run] = {}
        """The last run of each test file."""
        self.seconds: dict[str, float] = {}
        """The CPU seconds of each test that passes."""
        self.passed: dict[str, bool] = {}
        kept = sorted(self.folder.glob("*.json"), key=lambda path: int(path.stem))
        self.runs = len(kept)
        for path in kept:
            self._add(Run(**json.loads(path.read_text())))

    def missing(self, tests: Collection[str]) -> list[str]:
        """The test files that are not recorded as they are."""
        newest = self.newest
        return [
            each
            for each in tests
            if each not in newest or newest[each].files[each] != self._digest(each)
        ]

    def record(self, tests: Collection[str]) -> Iterator[list[str]]:
        """Run the test files that are not recorded, some at a time, and say which are next."""
        sources = {path: self._digest(path) for path in production(self.place.tree)}
        new = self.missing(tests)
        for some in (new[at : at + TOGETHER] for at in range(0, len(new), TOGETHER)):
            yield some
            data, notes = self.folder / str(self.runs), self.folder / "notes"
            notes.unlink(missing_ok=True)
            self.place.watch(some, data, notes)
            found = json.loads(notes.read_text()) if notes.exists() else ({}, {})
            run = Run(str(data), {each: self._digest(each) for each in some}, sources, *found)
            data.with_suffix(".json").write_text(json.dumps(asdict(run)))
            self.runs += 1
            self._add(run)

    def tests(self, path: str, lines: range) -> dict[str, bool]:
        """The recorded tests that reach any of the lines of a file, and, False, others of their
        test files: these may read what is made once.

        Where a line runs as it is imported or is translated first, all tests that run the file.
        """
        found: dict[str, bool] = {}
        for run in {id(each): each for each in self.newest.values()}.values():
            by_line = run.lines.contexts_by_lineno(str(self.place.tree / path))
            reached = {each for line in lines for each in by_line.get(line, ())}
            moved = run.sources.get(path) != self._digest(path)
            if moved or "" in reached or path.startswith("vta_sim/"):
                reached |= {each for some in by_line.values() for each in some}
            tests = run.tests(reached - {""})
            files = {test.split("::")[0] for test in tests}
            for test in run.seconds:
                if (file := test.split("::")[0]) in files and self.newest[file] is run:
                    found[test] = test in tests
        return found

    def passes(self, test: str) -> bool:
        """True if a test passes alone without a fault."""
        if test not in self.passed:
            self.passed[test] = test in self.seconds or not self.place.try_fault([test], 60)
        return self.passed[test]

    def _add(self, run: Run) -> None:
        self.newest |= dict.fromkeys(run.files, run)
        self.seconds = {
            test: each
            for test, each in self.seconds.items()
            if test.split("::")[0] not in run.files
        } | run.seconds

    def _digest(self, path: str) -> str:
        return hashlib.sha256((self.place.tree / path).read_bytes()).hexdigest()[:16]
