"""Files of schedules that were found by search: one JSON object, a record on each line of it.

    {"version": 1, "records": [
    {"kind": "kernel", "cpu": "znver5", "threads": 1, "key": ..., "title": ...,
     "steps": [...], "seconds": 1.9e-4, "default_seconds": 2.2e-4},
    {"kind": "convolution", "cpu": "znver5", "threads": 1, "key": ..., "tile": 4},
    {"kind": "plan", "key": ..., "plan": {...}, "cycles": 81234, "default_cycles": 84321}]}

Kernels and convolutions are for one CPU, by LLVM's name, and one number of threads; plans say what
they are for by their keys.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dovetail.runtime.files import write_whole

from ..errors import ScheduleError
from ..schedule.records import KernelRecord, Records
from .vta.plan_record import PlanRecord

__all__ = [
    "SHIPPED",
    "merge_files",
    "read_entries",
    "read_plan_entries",
    "read_records",
    "write_entries",
]

VERSION = 1
SHIPPED = Path(__file__).parents[1] / "tune" / "records.json"
"""Those that come with this project."""

FIELDS: Mapping[str, Mapping[str, type]] = {
    "kernel": {"cpu": str, "threads": int, "key": str, "steps": list},
    "convolution": {"cpu": str, "threads": int, "key": str, "tile": int},
    "plan": {"key": str, "plan": dict},
}
"""What each kind has at least."""

Entry = Mapping[str, Any]


def read_entries(path: Path) -> list[Entry]:
    """All records of a file.  Raises ScheduleError, with the place, for a file of another kind."""
    hint = "tune anew, or take the file out of --records"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ScheduleError(f"records {path} cannot be read: {error.strerror}") from None
    except json.JSONDecodeError as error:
        raise ScheduleError(
            f"records {path}, line {error.lineno}: no JSON: {error.msg}; {hint}"
        ) from None
    except UnicodeDecodeError:
        raise ScheduleError(f"records {path}: no text in UTF-8; {hint}") from None
    if not isinstance(found, dict) or found.get("version") != VERSION:
        raise ScheduleError(f"records {path}: required an object of version {VERSION}; {hint}")
    entries = found.get("records")
    if not isinstance(entries, list):
        raise ScheduleError(f"records {path}: required a list called records; {hint}")
    for number, entry in enumerate(entries, 1):
        kind = entry.get("kind") if isinstance(entry, dict) else None
        wanted = FIELDS.get(str(kind))
        if wanted is None or not all(isinstance(entry.get(k), t) for k, t in wanted.items()):
            names = ", ".join(wanted) if wanted else f"a kind of {', '.join(FIELDS)}"
            raise ScheduleError(f"records {path}, record {number} is malformed: {names}; {hint}")
    return entries


def write_entries(path: Path, entries: Iterable[Entry]) -> None:
    """Write a file of records whole, or leave it as it was."""
    lines = ",\n".join(json.dumps(dict(entry), separators=(", ", ": ")) for entry in entries)
    text = f'{{"version": {VERSION}, "records": [\n{lines}\n]}}\n'
    write_whole(path, text.encode())


def merge_files(paths: Sequence[Path]) -> list[Entry]:
    """The records of all files; of equal keys on one CPU, the last file's."""
    found: dict[tuple[object, ...], Entry] = {}
    for path in paths:
        for entry in read_entries(path):
            found[entry["kind"], entry.get("cpu"), entry.get("threads"), entry["key"]] = entry
    return list(found.values())


def read_records(paths: Sequence[Path], cpu: str, threads: int) -> Records:
    """What files have for a CPU and a number of threads; of equal keys, the last file decides."""
    kernels: dict[str, KernelRecord] = {}
    tiles: dict[str, int] = {}
    for path in paths:
        for entry in read_entries(path):
            if entry.get("cpu") != cpu or entry.get("threads") != threads:
                continue
            if entry["kind"] == "kernel":
                kernels[entry["key"]] = KernelRecord(tuple(entry["steps"]))
            else:
                tiles[entry["key"]] = entry["tile"]
    return Records(kernels, tiles)


def read_plan_entries(paths: Sequence[Path]) -> dict[str, PlanRecord]:
    """The plans in files, by their keys."""
    return {
        entry["key"]: entry["plan"]
        for path in paths
        for entry in read_entries(path)
        if entry["kind"] == "plan"
    }
