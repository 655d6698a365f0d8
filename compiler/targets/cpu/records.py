"""Schedules for CPUs in files of records (``schedule/record_files.py``).

Kernels and convolutions are for one CPU, by LLVM's name, and one number of threads.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from ...schedule.record_files import read_entries
from ...schedule.records import KernelRecord, Records

__all__ = ["read_records"]

COMMON: Mapping[str, type] = {"cpu": str, "threads": int}
FIELDS: Mapping[str, Mapping[str, type]] = {
    "kernel": {**COMMON, "steps": list},
    "convolution": {**COMMON, "tile": int},
}
"""Fields of each kind besides its key."""


def read_records(paths: Sequence[Path], cpu: str, threads: int) -> Records:
    """Records of files for a CPU and a number of threads; of equal keys, the last file decides."""
    kernels: dict[str, KernelRecord] = {}
    tiles: dict[str, int] = {}
    for path in paths:
        for entry in read_entries(path, FIELDS):
            if entry.get("cpu") != cpu or entry.get("threads") != threads:
                continue
            if entry["kind"] == "kernel":
                kernels[entry["key"]] = KernelRecord(tuple(entry["steps"]))
            else:
                tiles[entry["key"]] = entry["tile"]
    return Records(kernels, tiles)
