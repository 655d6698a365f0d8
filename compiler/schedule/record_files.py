"""Files of schedules that were found by search: one JSON object, a record on each line of it.

    {"version": 2, "records": [
    {"kind": "kernel", "cpu": "znver5", "threads": 1, "key": ..., "title": ...,
     "steps": [...], "seconds": 1.9e-4, "default_seconds": 2.2e-4},
    {"kind": "gpu kernel", "target": "cuda", "device": "NVIDIA H200", "key": ..., "steps": [...]},
    {"kind": "convolution", "cpu": "znver5", "threads": 1, "key": ..., "tile": 4},
    {"kind": "plan", "key": ..., "plan": {...}, "cycles": 81234, "default_cycles": 84321}]}

Each has a kind and a key; the target that it is for knows what else it holds.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from dovetail.runtime.files import write_whole

from ..errors import ScheduleError

__all__ = ["SHIPPED", "Entry", "read_entries", "write_entries"]

VERSION = 2
"""1 had decisions in place of steps."""
SHIPPED = Path(__file__).parents[1] / "tune" / "records.json"
"""The records that come with this project."""

Fields = Mapping[str, type]
"""Fields that every record of a kind has."""
Entry = Mapping[str, Any]


def read_entries(path: Path, kinds: Mapping[str, Fields] | None = None) -> list[Entry]:
    """The records of a file, of some kinds only if these are given.

    Raises ScheduleError, with the place, for a file of something else and for a record that lacks
    fields.
    """
    hint = "tune again, or take the file out of --records"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ScheduleError(f"records {path} cannot be read: {error.strerror}") from None
    except json.JSONDecodeError as error:
        raise ScheduleError(
            f"records {path}, line {error.lineno}: not JSON: {error.msg}; {hint}"
        ) from None
    except UnicodeDecodeError:
        raise ScheduleError(f"records {path}: not UTF-8 text; {hint}") from None
    except RecursionError:
        raise ScheduleError(f"records {path}: nested lists instead of records; {hint}") from None
    version = found.get("version") if isinstance(found, dict) else None
    if version != VERSION:
        what = "no version" if version is None else f"version {version}"
        raise ScheduleError(f"records {path}: found {what}; required version {VERSION}; {hint}")
    entries = found.get("records")
    if not isinstance(entries, list):
        raise ScheduleError(f"records {path}: required a list called records; {hint}")
    chosen: list[Entry] = []
    for number, entry in enumerate(entries, 1):
        kind = entry.get("kind") if isinstance(entry, dict) else None
        own = (kinds or {}).get(str(kind))
        wanted: Fields = {"kind": str, "key": str, **(own or {})}
        if kind is None or not all(isinstance(entry.get(k), t) for k, t in wanted.items()):
            raise ScheduleError(
                f"records {path}, record {number} is malformed; required {', '.join(wanted)}; "
                f"{hint}"
            )
        if kinds is None or own is not None:
            chosen.append(entry)
    return chosen


def write_entries(path: Path, entries: Iterable[Entry]) -> None:
    """Write a file of records whole, or leave it as it was."""
    lines = ",\n".join(json.dumps(dict(entry), separators=(", ", ": ")) for entry in entries)
    text = f'{{"version": {VERSION}, "records": [\n{lines}\n]}}\n'
    write_whole(path, text.encode())
