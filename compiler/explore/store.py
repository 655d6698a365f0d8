"""Results so far, in an SQLite file: each is safe as soon as it is stored.

A folder of results holds one space on given models; a second file, the cache, holds results of all
spaces.  Both map a key, the content a result follows from, to the result, behind a digest of both:
a result that was changed, or moved to another key, is taken for absent and found again.
"""

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..errors import ExploreError
from .evaluate import Failure, Performance, Task

__all__ = ["ResultFile", "result_key"]

Result = Performance | Failure

DIGEST_LETTERS = 64


def result_key(task: Task, program: str) -> str:
    """Key of a result: a hash of all it follows from, which is design, model and program."""
    text = f"{task.design.text};{task.model.digest};{program}"
    return hashlib.sha256(text.encode()).hexdigest()


class ResultFile:
    """Results by key, and what they are for.

    Every method raises ExploreError when the file cannot be read or written; what is in it stays.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._clear_errors("opened"):
            # Another process may be writing to the cache.
            self._db = sqlite3.connect(path, timeout=30, isolation_level=None)
            # What was put outlives this process; of a machine that loses power, the last may miss.
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = NORMAL")
            self._db.execute(
                "CREATE TABLE IF NOT EXISTS results (key TEXT PRIMARY KEY, value TEXT)"
            )
            self._db.execute("CREATE TABLE IF NOT EXISTS about (key TEXT PRIMARY KEY, value TEXT)")

    def find(self, key: str) -> Result | None:
        """The result with this key; None if there is none, or not a whole one."""
        with self._clear_errors("read"):
            row = self._db.execute("SELECT value FROM results WHERE key = ?", (key,)).fetchone()
        text = None if row is None else _checked(key, row[0])
        if text is None:
            return None
        values = json.loads(text)
        return Failure(**values) if "kind" in values else Performance(**values)

    def put(self, key: str, result: Result) -> None:
        """Keep ``result``, from now on."""
        text = json.dumps(asdict(result))
        with self._clear_errors("written"):
            self._db.execute(
                "INSERT OR REPLACE INTO results VALUES (?, ?)", (key, _digest(key, text) + text)
            )

    def count(self) -> int:
        """Results that are there."""
        with self._clear_errors("read"):
            return int(self._db.execute("SELECT count(*) FROM results").fetchone()[0])

    def about(self) -> dict[str, Any]:
        """The description that ``describe`` wrote; empty in a new file."""
        with self._clear_errors("read"):
            rows = self._db.execute("SELECT key, value FROM about").fetchall()
        return {key: json.loads(value) for key, value in rows}

    def describe(self, values: Mapping[str, Any]) -> None:
        """Write what the results are for."""
        rows = [(key, json.dumps(value)) for key, value in values.items()]
        with self._clear_errors("written"):
            self._db.executemany("INSERT OR REPLACE INTO about VALUES (?, ?)", rows)

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    @contextmanager
    def _clear_errors(self, what: str) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, ValueError) as error:
            raise ExploreError(
                f"{self._path} cannot be {what}: {error}; the results in it are kept: make room "
                "or choose another folder, then give the same command again"
            ) from None


def _digest(key: str, text: str) -> str:
    return hashlib.sha256(f"{key}\0{text}".encode()).hexdigest()


def _checked(key: str, stored: object) -> str | None:
    """The result behind its digest; None when this does not fit."""
    if not isinstance(stored, str):
        return None
    found, text = stored[:DIGEST_LETTERS], stored[DIGEST_LETTERS:]
    return text if found == _digest(key, text) else None
