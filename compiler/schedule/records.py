"""Schedules that were found by search, as compilation uses them: by what they are for."""

from collections.abc import Mapping
from dataclasses import field

from dovetail.isa.frozen import frozen

__all__ = ["NO_RECORDS", "KernelRecord", "Records", "StaleRecordWarning"]


class StaleRecordWarning(UserWarning):
    """A record does not suit the loops that the compiler makes now."""


@frozen
class KernelRecord:
    """The steps of a group's schedule, as JSON values (``schedule/steps/trace.py``)."""

    steps: tuple[Mapping[str, object], ...] = ()


@frozen
class Records:
    """kernels: by the keys of groups.  tiles: of convolutions by their keys, Winograd's tile, 0 for
    direct products (``graph/keys.py``).
    """

    kernels: Mapping[str, KernelRecord] = field(default_factory=dict)
    tiles: Mapping[str, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.kernels or self.tiles)


NO_RECORDS = Records()
