"""Commands that compare a run with its model, and draw its signals."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from dovetail.isa.memories import Unit
from dovetail.runtime.debug.session import InstructionInfo
from dovetail.runtime.errors import InputError

from ...debug.debugger import CheckResult, Debugger
from ..output import table
from .answer import Answer, Command, Words, number

__all__ = ["CHECKING"]

WINDOW = 200
"""Cycles of waveforms, unless told."""


def _check(debugger: Debugger, words: Words) -> Answer:
    if words:
        raise InputError(f"{' '.join(words)!r}; required nothing more")
    found = debugger.check()
    rows: list[tuple[object, ...]] = [(n, f"{size:,}") for n, size in found.compared.items()]
    headings = {"layer": "left", "bytes that agree": "right"}
    done = table("Against the interpreter", headings, rows)
    values = {
        "passes": found.passes,
        "compared": dict(found.compared),
        "finding": _json(found.finding),
        "cause": _json(found.cause),
        "fault": _json(found.fault),
        "late": found.late,
        "unproved": found.unproved,
    }
    return Answer(values, (done, *_lines(found)), failed=not found.passes)


def _lines(found: CheckResult) -> list[str]:
    lines = []
    if found.finding:
        lines.append(str(found.finding))
    if found.cause:
        sure = "cause" if found.cause.certain else "cause, as far as it can be told"
        info = found.cause.instruction
        lines.append(
            f"{sure}: instruction {info.index} of layer {info.layer!r}: {found.cause.reason}"
        )
        lines.append(f"{info.index}: {info.assembly}")
    if found.fault:
        lines.append(str(found.fault))
    if found.late:
        lines.append(f"the machine's cycles are not the simulator's: {found.late}")
    if found.unproved:
        lines.append(f"no byte is wrong in this run, but: {found.unproved}")
    return lines or ["every byte of every activation agrees"]


def _json(found: Any) -> dict[str, Any] | None:
    """The fields of a dataclass as JSON values."""
    return None if found is None else {n: _plain(v) for n, v in asdict(found).items()}


def _plain(value: Any) -> Any:
    match value:
        case InstructionInfo():
            return _json(value)
        case Unit():
            return value.name
        case dict():
            return {name: _plain(each) for name, each in value.items()}
        case None | bool() | int() | float() | str():
            return value
        case _:
            return str(getattr(value, "value", value))


def _waves(debugger: Debugger, words: Words) -> Answer:
    match words:
        case [file, *rest] if len(rest) % 2 == 0:
            options = dict(zip(rest[::2], rest[1::2], strict=True))
        case _:
            options = {"": ""}
    if not set(options) <= {"around", "cycles"}:
        raise InputError(
            f"{' '.join(words)!r}; required FILE.fst|FILE.vcd [around INSTRUCTION] [cycles COUNT]"
        )
    count = number(options.get("cycles", str(WINDOW)), "a number of cycles")
    if count < 1:
        raise InputError(f"{count} cycles; required 1 or more")
    middle = debugger.cycle
    if "around" in options:
        info = debugger.instruction(number(options["around"], "the index of an instruction"))
        if info.start < 0:
            raise InputError(f"instruction {info.index} never started")
        middle = (info.start + max(info.end, info.start)) // 2
    first = max(0, middle - count // 2)
    debugger.waves(Path(file), first, first + count - 1)
    values = {"written": file, "first_cycle": first, "last_cycle": first + count - 1}
    line = f"written: {file}, cycles {first} to {first + count - 1}, 10 units of time each"
    return Answer(values, (line,))


CHECKING = {
    "check": Command(
        "",
        "Compare with the graph interpreter, byte by byte; stop at the first that differs.",
        _check,
    ),
    "waves": Command(
        "FILE.fst|FILE.vcd [around N] [cycles COUNT]",
        "Waveforms of the RTL around an instruction, or around here (--device rtl).",
        _waves,
    ),
}
