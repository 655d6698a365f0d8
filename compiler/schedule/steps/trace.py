"""Traces of schedules as JSON values, and back."""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from enum import StrEnum
from types import UnionType
from typing import Any, get_args, get_type_hints

from ...errors import ScheduleError
from ...loops.intrinsic import Intrinsic
from ...loops.ir import Function
from .schedule import STEPS, Schedule, Step

__all__ = ["from_record", "replay", "step_record", "to_record"]

NAMES = {cls: name for name, cls in STEPS.items()}
TYPES = {cls: get_type_hints(cls) for cls in NAMES}


def to_record(schedule: Schedule) -> list[dict[str, object]]:
    """The trace as JSON values: of each step its name and its fields."""
    return [step_record(step) for step in schedule.trace]


def step_record(step: Step) -> dict[str, object]:
    """The name of a step and its fields, as JSON values."""
    values = {each.name: _plain(getattr(step, each.name)) for each in fields(step)}
    return {"step": NAMES[type(step)], **values}


def replay(
    function: Function,
    record: Iterable[Mapping[str, object]],
    intrinsics: Mapping[str, Intrinsic] | None = None,
) -> Schedule:
    """The schedule of ``function`` whose record is given.

    Raises ScheduleError, naming the entry, when one is not a step or does not apply.
    """
    schedule = Schedule.of(function, intrinsics)
    for number, entry in enumerate(record):
        try:
            schedule = schedule.then(from_record(entry))
        except ScheduleError as error:
            raise ScheduleError(f"trace entry {number}: {error}") from None
    return schedule


def from_record(entry: Mapping[str, object]) -> Step:
    """The step of one entry.  Raises ScheduleError when it is none."""
    values = dict(entry)
    name = values.pop("step", None)
    cls = STEPS.get(str(name))
    if cls is None:
        raise ScheduleError(f"no step {name!r}; there are: {', '.join(STEPS)}")
    types = TYPES[cls]
    if set(values) != set(types):
        raise ScheduleError(f"{name}: found the fields {sorted(values)}; required {sorted(types)}")
    return cls(**{key: _typed(f"{name}: {key}", types[key], values[key]) for key in types})


def _plain(value: object) -> object:
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return value.value if isinstance(value, StrEnum) else value


def _typed(what: str, wanted: Any, value: object) -> Any:
    """The value of a field from JSON."""
    parts = get_args(wanted)
    if isinstance(wanted, UnionType):
        if type(value) in parts:
            return value
    elif parts and isinstance(value, list | tuple):
        if parts[-1] is Ellipsis:
            return tuple(_typed(what, parts[0], each) for each in value)
        if len(parts) == len(value):
            return tuple(_typed(what, part, each) for part, each in zip(parts, value, strict=True))
    elif isinstance(wanted, type) and issubclass(wanted, StrEnum):
        if value in set(wanted):
            return wanted(str(value))
    elif type(value) is wanted:
        return value
    raise ScheduleError(f"{what} cannot be {value!r}")
