"""Which tests reach which lines of the production code: recorded when first asked, and kept.

A test file is recorded again when it changes.  Where a file of the production code has changed
since, its lines may have moved: all tests that run it count as reaching each of them.
"""

import hashlib
import json
from collections.abc import Collection
from dataclasses import dataclass, field

from coverage import CoverageData

from .neighbours import production
from .workplace import Workplace

__all__ = ["Reach"]


@dataclass
class Reach:
    """The map of a workplace: lines in coverage's file ``reach``, the rest in ``reach.json``."""

    place: Workplace
    recorded: dict[str, str] = field(default_factory=dict)
    """The digest of each test file when it was recorded."""
    sources: dict[str, str] = field(default_factory=dict)
    """The digest of each file of the production code when the first was."""
    seconds: dict[str, float] = field(default_factory=dict)
    """The CPU seconds of each test that passes."""
    passed: dict[str, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        kept = self.place.folder / "reach.json"
        if kept.exists():
            self.recorded, self.sources, self.seconds = json.loads(kept.read_text())

    def knows(self, test: str) -> bool:
        """Whether a test file is recorded as it is."""
        return self.recorded.get(test) == self._digest(test)

    def record(self, tests: Collection[str]) -> None:
        """Run those test files that are not recorded."""
        new = [test for test in tests if not self.knows(test)]
        if not new:
            return
        if not self.sources:
            self.sources = {path: self._digest(path) for path in production(self.place.tree)}
        times = self.place.folder / "seconds"
        times.unlink(missing_ok=True)
        self.place.watch(new, self.place.folder / "reach", times)
        found = json.loads(times.read_text()) if times.exists() else {}
        for test in [test for test in self.seconds if test.split("::")[0] in new]:
            del self.seconds[test]
        self.seconds |= {test: each for test, each in found.items() if each is not None}
        self.recorded |= {test: self._digest(test) for test in new}
        kept = json.dumps((self.recorded, self.sources, self.seconds))
        (self.place.folder / "reach.json").write_text(kept)

    def tests(self, path: str, lines: range) -> list[str]:
        """The recorded tests that reach any of the lines of a file, the shortest first; all that
        run the file, where a line runs as it is imported or is translated first."""
        data = CoverageData(str(self.place.folder / "reach"))
        data.read()
        by_line = data.contexts_by_lineno(str(self.place.tree / path))
        found = {test for line in lines for test in by_line.get(line, ())} - {""}
        moved = self.sources.get(path) != self._digest(path)
        imported = any("" in by_line.get(line, ()) for line in lines)
        if moved or imported or (not found and path.startswith("vta_sim/")):
            found |= {test for each in by_line.values() for test in each}
        return sorted(found & self.seconds.keys(), key=lambda test: (self.seconds[test], test))

    def passes(self, test: str) -> bool:
        """Whether a test passes alone without a fault."""
        if test not in self.passed:
            self.passed[test] = test in self.seconds or not self.place.try_fault([test], 60)
        return self.passed[test]

    def _digest(self, path: str) -> str:
        return hashlib.sha256((self.place.tree / path).read_bytes()).hexdigest()[:16]
