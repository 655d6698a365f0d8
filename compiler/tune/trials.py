"""The file of everything that was measured: one JSON object a line, appended whole or not at all.

A line that cannot be read is moved to another file, with a note; the others stay good.
"""

import contextlib
import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dovetail.isa.frozen import frozen

from ..errors import TuneError
from .problem import Candidate, Measured

__all__ = ["Trial", "TrialFile", "read_trials"]

TRIALS, DAMAGED = "trials.jsonl", "damaged.jsonl"


@frozen
class Trial:
    """A candidate for the problem ``key`` of a setting, and what came of it.

    features: that the model had of it; empty when it has none.
    """

    setting: str
    key: str
    title: str
    candidate: dict[str, Any]
    cost: float | None
    baseline: float | None
    error: str
    features: tuple[float, ...] = ()

    @property
    def measured(self) -> Measured:
        """The measurement."""
        return Measured(self.cost, self.baseline, self.error)

    @property
    def text(self) -> Candidate:
        """The candidate."""
        return Candidate.of(self.candidate)


class TrialFile:
    """The trials in ``folder``, in which only one search is at work.

    notes: what was not as it should be.
    """

    def __init__(self, folder: Path) -> None:
        """Raises TuneError when the file cannot be read or written."""
        self.notes: list[str] = []
        self._path = folder / TRIALS
        try:
            self._path.touch()
            data = self._path.read_bytes()
            self.trials, damaged = _read(data)
            if damaged:
                self._set_aside(folder / DAMAGED, data, damaged)
            self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND)
        except OSError as error:
            raise self._problem(error) from None

    def append(self, trial: Trial) -> None:
        """Keep a trial.  Raises TuneError when there is no room; what is there stays whole."""
        line = (json.dumps(asdict(trial), separators=(",", ":")) + "\n").encode()
        size = os.fstat(self._file).st_size
        try:
            written = os.write(self._file, line)
            if written < len(line):
                raise OSError(0, "no room for a whole line")
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, size)
            raise self._problem(error) from None
        self.trials.append(trial)

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._file)

    def _set_aside(self, aside: Path, data: bytes, damaged: Sequence[int]) -> None:
        lines = data.split(b"\n")
        with aside.open("ab") as file:
            file.write(b"".join(lines[number - 1] + b"\n" for number in damaged))
        good = [line for n, line in enumerate(lines, 1) if line.strip() and n not in set(damaged)]
        part = self._path.with_suffix(".part")
        part.write_bytes(b"".join(line + b"\n" for line in good))
        os.replace(part, self._path)
        numbers = ", ".join(map(str, damaged[:8])) + (", ..." if len(damaged) > 8 else "")
        self.notes.append(
            f"{self._path.name}: {len(damaged)} of {len(good) + len(damaged)} lines cannot be read "
            f"(line {numbers}); they are in {aside.name} now, and are measured again if needed"
        )

    def _problem(self, error: OSError) -> TuneError:
        kept = len(getattr(self, "trials", ()))
        return TuneError(
            f"{self._path} cannot be written: {error.strerror}; its {kept} results are kept: make "
            "room or choose another folder, then give the same command again"
        )


def read_trials(path: Path) -> list[Trial]:
    """Trials from a file that a search wrote.

    Raises TuneError, with the number of the line, for one that cannot be read.
    """
    try:
        trials, damaged = _read(path.read_bytes())
    except OSError as error:
        raise TuneError(f"{path} cannot be read: {error.strerror}") from None
    if damaged:
        raise TuneError(
            f"{path}, line {damaged[0]}: found no trial; required a JSON object with the fields "
            f"{', '.join(Trial.__dataclass_fields__)}; remove the line, or tune with the folder "
            "once, which sets such lines aside"
        )
    return trials


def _read(data: bytes) -> tuple[list[Trial], list[int]]:
    """The trials, and the numbers of lines that are none."""
    trials, damaged = [], []
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        trial = _trial(line)
        if trial is None:
            damaged.append(number)
        else:
            trials.append(trial)
    return trials, damaged


def _trial(line: bytes) -> Trial | None:
    try:
        values = json.loads(line)
        found = Trial(**{**values, "features": tuple(values["features"])})
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    texts = (found.setting, found.key, found.title, found.error)
    numbers = (found.cost, found.baseline)
    right = (
        all(isinstance(each, str) for each in texts)
        and isinstance(found.candidate, dict)
        and all(each is None or isinstance(each, float | int) for each in numbers)
        and all(isinstance(each, float | int) for each in found.features)
    )
    return found if right else None
