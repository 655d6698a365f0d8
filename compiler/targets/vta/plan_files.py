"""Files in which plans of networks for the accelerator are kept."""

import json
from collections.abc import Sequence
from pathlib import Path

from dovetail.runtime.files import write_whole

from ...errors import ScheduleError
from ...schedule.record_files import read_entries
from .plan_record import PlanRecords

__all__ = ["read_plan_entries", "read_plans", "write_plans"]


def read_plan_entries(paths: Sequence[Path]) -> PlanRecords:
    """The plans in files of records, by their keys; of equal ones the last file's."""
    return {
        entry["key"]: entry["plan"]
        for path in paths
        for entry in read_entries(path, {"plan": {"plan": dict}})
    }


def read_plans(path: Path) -> PlanRecords:
    """The plans in a file; none when there is no such file yet.

    Raises ScheduleError when it is not a file of plans.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except OSError as problem:
        raise ScheduleError(f"{path} cannot be read: {problem.strerror}") from None
    except (ValueError, RecursionError) as problem:
        raise ScheduleError(f"{path} is not a file of plans: {problem}") from None
    if not isinstance(found, dict) or not all(isinstance(each, dict) for each in found.values()):
        raise ScheduleError(f"{path} is not a file of plans; required an object of plans by key")
    return found


def write_plans(path: Path, plans: PlanRecords) -> None:
    """Keep ``plans``.  Raises ModuleError when the file cannot be written."""
    write_whole(path, f"{json.dumps(dict(plans), indent=1)}\n".encode())
