"""Schedules for GPUs in files of records (``schedule/record_files.py``).

Each is for one kind of target, ``opencl`` or ``cuda``, and one device, by the name that its driver
says.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from dovetail.runtime.parts import target_kind

from ...errors import ScheduleError
from ...schedule.record_files import read_entries
from ...schedule.records import KernelRecord, Records

__all__ = ["KIND", "read_records"]

KIND = "gpu kernel"
FIELDS: Mapping[str, Mapping[str, type]] = {KIND: {"target": str, "device": str, "steps": list}}
"""Fields of each record besides its key."""


def read_records(paths: Sequence[Path], target: str, device: str = "") -> Records:
    """Records of files for a target, and a device with ``device`` in its name; of equal keys the
    last file decides.

    Raises ScheduleError where the records are of several devices.
    """
    found: dict[str, dict[str, KernelRecord]] = {}
    for path in paths:
        for entry in read_entries(path, FIELDS):
            name = entry["device"]
            if entry["target"] == target_kind(target) and device.lower() in name.lower():
                found.setdefault(name, {})[entry["key"]] = KernelRecord(tuple(entry["steps"]))
    if len(found) > 1:
        raise ScheduleError(
            f"records for {target} of the devices {', '.join(map(repr, found))}; required one; "
            "choose it by a part of its name (--gpu)"
        )
    return Records(next(iter(found.values()), {}))
