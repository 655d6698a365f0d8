"""Schedules that were found by search, as compilation uses them: by what they are for."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["NO_RECORDS", "KernelRecord", "Records", "from_details", "to_details"]


@dataclass(frozen=True, slots=True)
class KernelRecord:
    """The steps of a group's schedule, as JSON values (``schedule/steps/trace.py``).

    decisions: for groups that have no rule yet, what was decided before the steps.
    """

    steps: tuple[Mapping[str, object], ...] = ()
    decisions: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Records:
    """kernels: by the keys of groups.  tiles: of convolutions by their keys, Winograd's tile, 0 for
    direct products (``graph/keys.py``).
    """

    kernels: Mapping[str, KernelRecord] = field(default_factory=dict)
    tiles: Mapping[str, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.kernels or self.tiles)


NO_RECORDS = Records()


def to_details(records: Records) -> dict[str, Any]:
    """As JSON values, for a module that is compiled as it runs."""
    kernels = {
        key: {"decisions": dict(own.decisions), "steps": [dict(step) for step in own.steps]}
        for key, own in records.kernels.items()
    }
    return {"kernels": kernels, "tiles": dict(records.tiles)} if records else {}


def from_details(values: Mapping[str, Any]) -> Records:
    """What ``to_details`` gave."""
    kernels = {
        key: KernelRecord(tuple(own["steps"]), own["decisions"])
        for key, own in values.get("kernels", {}).items()
    }
    return Records(kernels, dict(values.get("tiles", {})))
