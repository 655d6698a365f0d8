"""Answers of the debugger's commands, and the meaning of their words."""

import ast
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from rich.console import RenderableType

from dovetail.isa.frozen import frozen
from dovetail.isa.memories import Unit
from dovetail.runtime.debug.moments import Event
from dovetail.runtime.debug.walk import Place
from dovetail.runtime.errors import InputError

from ...debug.debugger import Debugger

__all__ = ["Answer", "Command", "Words", "answer_place", "number", "slices", "unit"]

Words = list[str]
EVENTS = {Event.QUEUED: "is queued", Event.STARTED: "starts", Event.ENDED: "ends"}
UNITS = {unit.name.lower(): unit for unit in Unit}


@frozen
class Answer:
    """values: JSON.  shown: for people, one after the other.  failed: a check found something."""

    values: Mapping[str, Any]
    shown: tuple[RenderableType, ...] = field(default=())
    failed: bool = False


@frozen
class Command:
    """usage: its words.  doc: one line.  run: takes the words after its name."""

    usage: str
    doc: str
    run: Callable[[Debugger, Words], Answer]


def number(text: str, what: str = "a number") -> int:
    """``12`` or ``0x0c``.

    Raises InputError for anything else.
    """
    try:
        return int(text, 0)
    except ValueError:
        raise InputError(f"{text!r}; required {what}") from None


def unit(text: str) -> Unit:
    """``load``, ``gemm``, ``vector`` or ``store``.

    Raises InputError for anything else.
    """
    if text.lower() not in UNITS:
        raise InputError(f"no unit {text!r}; there are: {', '.join(UNITS)}")
    return UNITS[text.lower()]


def slices(text: str) -> tuple[int | slice, ...]:
    """``0,:,2:4``, perhaps in brackets, as NumPy takes it.

    Raises InputError for anything else.
    """
    try:
        parts = text.strip("[]").split(",")
        return tuple(_slice(part) for part in parts)
    except (ValueError, SyntaxError):
        raise InputError(f"index {text!r}; required numbers and ranges, as 0,:,2:4") from None


def _slice(text: str) -> int | slice:
    if ":" not in text:
        return int(ast.literal_eval(text.strip()))
    return slice(*(int(part) if part.strip() else None for part in text.split(":")))


def answer_place(debugger: Debugger, place: Place) -> Answer:
    """Where the run stands, in a line."""
    next_ = place.next
    values = {
        "cycle": place.cycle,
        "position": place.position,
        "reasons": list(place.reasons),
        "next": None
        if next_ is None
        else {"cycle": next_.cycle, "event": next_.event.name.lower(), "instruction": next_.index},
    }
    if next_ is None:
        end = f"the run is over: {debugger.error or 'done'}"
    else:
        info = debugger.instruction(next_.index)
        end = (
            f"next, in cycle {next_.cycle}: {info.unit.name} {next_.index} "
            f"{EVENTS[next_.event]}, layer {info.layer!r}"
        )
    why = f" ({'; '.join(place.reasons)})" if place.reasons else ""
    return Answer(values, (f"cycle {place.cycle}{why}; {end}",))
