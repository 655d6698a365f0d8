"""Which lines of the production code each test file reaches, recorded when it is first asked.

A record holds as long as the test file and the file asked about stay as they were.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from coverage import CoverageData

from .workplace import FIRST_LIMIT, Workplace

__all__ = ["Reach", "Record"]


@dataclass(frozen=True, slots=True)
class Record:
    """A test file's digest, its CPU seconds (None: it fails), and of each file that it runs the
    digest and the lines."""

    digest: str
    seconds: float | None
    files: dict[str, tuple[str, list[int]]]


@dataclass
class Reach:
    """The records of a workplace, kept in its file reach.json."""

    place: Workplace
    records: dict[str, Record] = field(default_factory=dict)
    passed: dict[str, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self._file.exists():
            kept = json.loads(self._file.read_text())
            self.records = {name: Record(**each) for name, each in kept.items()}

    @property
    def _file(self) -> Path:
        return self.place.folder / "reach.json"

    def knows(self, test: str, path: str) -> bool:
        """Whether a test file has a record that holds for ``path``."""
        record = self.records.get(test)
        if record is None or record.digest != self._digest(test):
            return False
        return path not in record.files or record.files[path][0] == self._digest(path)

    def passes(self, tests: str) -> bool:
        """Whether test files, with spaces between, pass without a fault."""
        key = " ".join(f"{test}@{self._digest(test)}" for test in tests.split())
        if key not in self.passed:
            self.passed[key] = not self.place.try_fault(tests.split(), FIRST_LIMIT)
        return self.passed[key]

    def ask(self, tests: Sequence[str]) -> None:
        """Run test files once, and record them."""
        data, times = self.place.folder / "coverage", self.place.folder / "seconds"
        for file in (data, times):
            file.unlink(missing_ok=True)
        self.place.watch(tests, data, times)
        seconds = json.loads(times.read_text()) if times.exists() else {}
        found = CoverageData(str(data))
        found.read()
        for test in tests:
            files = {}
            for name in found.measured_files():
                own = Path(name).relative_to(self.place.tree).as_posix()
                found.set_query_contexts([f"^{test}$", "^$"])  # the empty one: importing
                if lines := found.lines(name):
                    files[own] = (self._digest(own), sorted(lines))
            self.records[test] = Record(self._digest(test), seconds.get(test), files)
        kept = {name: asdict(each) for name, each in self.records.items()}
        self._file.write_text(json.dumps(kept))

    def _digest(self, path: str) -> str:
        return hashlib.sha256((self.place.tree / path).read_bytes()).hexdigest()[:16]
