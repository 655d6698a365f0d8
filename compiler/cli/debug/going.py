"""Commands that go to a place in the run, and that set and remove stops."""

from collections.abc import Callable

from dovetail.isa.memories import Unit
from dovetail.runtime.debug.moments import Event
from dovetail.runtime.debug.stops import AtCycle, AtInstruction, AtLayer, AtToken, Stop, parse_space
from dovetail.runtime.debug.walk import Place
from dovetail.runtime.errors import InputError

from ...debug.debugger import Debugger
from .answer import UNITS, Answer, Command, Words, answer_place, number, unit

__all__ = ["GOING"]

STOPS = "N [start|end|queued], cycle C, layer NAME [end], or token GIVER TAKER [COUNT]"
EVENTS = {"start": Event.STARTED, "end": Event.ENDED, "queued": Event.QUEUED}


def _stop(debugger: Debugger, words: Words) -> Stop:
    """The place that follows ``until`` and ``break``.

    Raises InputError saying what is required.
    """
    match words:
        case [index]:
            return AtInstruction(number(index, STOPS))
        case [index, event] if event in EVENTS and index not in ("cycle", "layer"):
            return AtInstruction(number(index, STOPS), EVENTS[event])
        case ["cycle", cycle]:
            return AtCycle(number(cycle))
        case ["layer", name]:
            return AtLayer(debugger.layer(name))
        case ["layer", name, "start" | "end" as where]:
            return AtLayer(debugger.layer(name), where == "end")
        case ["token", giver, taker]:
            return AtToken(unit(giver), unit(taker))
        case ["token", giver, taker, count]:
            return AtToken(unit(giver), unit(taker), number(count))
        case _:
            raise InputError(f"{' '.join(words)!r}; required {STOPS}")


def _until(debugger: Debugger, words: Words) -> Answer:
    match _stop(debugger, words):
        case AtToken(giver=giver, taker=taker, count=None):
            return answer_place(debugger, debugger.run_to_token(giver, taker))
        case stop:
            return answer_place(debugger, debugger.go_to(stop))


def _break(debugger: Debugger, words: Words) -> Answer:
    stop = _stop(debugger, words)
    made = debugger.add_stop(stop)
    return Answer({"breakpoint": made, "stop": str(stop)}, (f"breakpoint {made}: {stop}",))


def _watch(debugger: Debugger, words: Words) -> Answer:
    kind = words[-1] if words and words[-1] in ("r", "w", "rw") else None
    rest = words[:-1] if kind else words
    if not 2 <= len(rest) <= 3:
        raise InputError(f"{' '.join(words)!r}; required MEMORY FIRST [LAST] [r|w|rw]")
    first = number(rest[1], "an address")
    last = number(rest[2], "an address") if len(rest) == 3 else first
    kind = kind or "rw"
    made = debugger.watch(parse_space(rest[0]), first, last, reads="r" in kind, writes="w" in kind)
    stop = debugger.breakpoints[made]
    return Answer({"breakpoint": made, "stop": str(stop)}, (f"breakpoint {made}: {stop}",))


def _breakpoints(debugger: Debugger, words: Words) -> Answer:
    listed = {number: str(stop) for number, stop in debugger.breakpoints.items()}
    lines = tuple(f"{number}: {stop}" for number, stop in listed.items())
    return Answer({"breakpoints": listed}, lines or ("no breakpoints",))


def _delete(debugger: Debugger, words: Words) -> Answer:
    if len(words) != 1:
        raise InputError("required the number of a breakpoint")
    debugger.delete_stop(number(words[0], "the number of a breakpoint"))
    return _breakpoints(debugger, [])


def _stepping(
    go: Callable[[Debugger, Unit | None, int], Place],
) -> Callable[[Debugger, Words], Answer]:
    def run(debugger: Debugger, words: Words) -> Answer:
        rest = list(words)
        which = unit(rest.pop(0)) if rest and rest[0].lower() in UNITS else None
        count = number(rest.pop(0), "[UNIT] [COUNT]") if rest else 1
        if rest or count < 1:
            raise InputError(f"{' '.join(words)!r}; required [UNIT] [COUNT], a count from 1 on")
        return answer_place(debugger, go(debugger, which, count))

    return run


def _plain(go: Callable[[Debugger], Place]) -> Callable[[Debugger, Words], Answer]:
    def run(debugger: Debugger, words: Words) -> Answer:
        if words:
            raise InputError(f"{' '.join(words)!r}; required nothing more")
        return answer_place(debugger, go(debugger))

    return run


GOING = {
    "until": Command(STOPS, "Go there: instructions are about to start.", _until),
    "step": Command(
        "[UNIT] [COUNT]",
        "Until the next instruction ends, of a unit or of any.",
        _stepping(lambda debugger, which, count: debugger.step(which, count)),
    ),
    "back": Command(
        "[UNIT] [COUNT]",
        "Back to before the last instruction ended.",
        _stepping(lambda debugger, which, count: debugger.back(which, count)),
    ),
    "continue": Command("", "On to the next breakpoint, or the end.", _plain(Debugger.resume)),
    "reverse": Command("", "Back to the breakpoint before.", _plain(Debugger.reverse)),
    "restart": Command("", "To before the first cycle.", _plain(Debugger.restart)),
    "break": Command(STOPS, "Stop there from now on.", _break),
    "watch": Command(
        "MEMORY FIRST [LAST] [r|w|rw]",
        "Stop before words (of dram: bytes) are read, and after they are written.",
        _watch,
    ),
    "breakpoints": Command("", "List the breakpoints.", _breakpoints),
    "delete": Command("NUMBER", "Remove a breakpoint.", _delete),
}
