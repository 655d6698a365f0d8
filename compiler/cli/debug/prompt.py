"""Commands as text: at a prompt, from a file, from the command line."""

import shlex
from cmd import Cmd
from collections.abc import Iterable
from typing import Any

from dovetail.isa.errors import DovetailError
from dovetail.runtime.errors import InputError, RunError

from ...debug.debugger import Debugger
from ..output import human, progress
from .answer import Answer, Command
from .checking import CHECKING
from .going import GOING
from .looking import LOOKING

__all__ = ["COMMANDS", "Prompt", "ScriptError", "run_command", "run_script", "show", "show_help"]

COMMANDS: dict[str, Command] = {**GOING, **LOOKING, **CHECKING}
SHORT = {"u": "until", "s": "step", "c": "continue", "b": "break", "p": "print", "w": "where"}
LEAVE = ("quit", "exit", "q")
HELP = "help"


class ScriptError(RunError):
    """A command of a script cannot be done."""


def run_command(debugger: Debugger, line: str) -> Answer:
    """Do what ``line`` says.

    Raises InputError for a command that does not exist, and what the command raises.
    """
    try:
        name, *words = shlex.split(line)
    except ValueError as error:
        raise InputError(f"{line!r} cannot be read: {error}") from None
    command = COMMANDS.get(SHORT.get(name, name))
    if command is None:
        raise InputError(f"no command {name!r}; there are: {', '.join(COMMANDS)}")
    return command.run(debugger, words)


def run_script(
    debugger: Debugger, lines: Iterable[str], *, quiet: bool
) -> tuple[list[dict[str, Any]], bool]:
    """Do all ``lines`` and show what they give; their values, and whether a check found anything.

    Empty lines, and what follows ``#`` at the beginning of one, are left out; ``quit`` ends.
    Raises ScriptError naming the line that cannot be done.
    """
    values: list[dict[str, Any]] = []
    failed = False
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, *rest = line.split()
        if name in LEAVE:
            break
        if name == HELP:
            if not quiet:
                show_help(" ".join(rest))
            continue
        try:
            with progress(line.strip()):
                answer = run_command(debugger, line)
        except DovetailError as error:
            raise ScriptError(f"command {number}, {line.strip()!r}: {error}") from error
        if not quiet:
            show(answer)
        values.append({"command": line.strip(), **answer.values})
        failed = failed or answer.failed
    return values, failed


def show(answer: Answer) -> None:
    """For people, on standard error."""
    for each in answer.shown:
        human.print(each)


def show_help(name: str = "") -> None:
    """Help on a command; on all of them without a name."""
    for each, command in COMMANDS.items():
        if name in ("", each):
            human.print(f"{each} {command.usage}".rstrip(), style="bold")
            human.print(f"    {command.doc}")


class Prompt(Cmd):
    """Reads commands until the end; an empty line repeats ``step``."""

    prompt = "(dovetail) "

    def __init__(self, debugger: Debugger) -> None:
        super().__init__()
        self._debugger = debugger
        self.intro = (
            f"{len(debugger.program)} instructions of {len(debugger.layers)} layers on "
            f"{debugger.device}; help lists the commands"
        )

    def onecmd(self, line: str) -> bool:
        """Do any command; ``quit`` and the end of the input leave."""
        name, *rest = line.split() or ["step"]
        if name in (*LEAVE, "EOF"):
            return True
        if name == HELP:
            self.do_help(" ".join(rest))
            return False
        try:
            with progress(line.strip() or "step"):
                answer = run_command(self._debugger, line.strip() or "step")
            show(answer)
        except DovetailError as error:
            human.print(f"error: {error}")
        return False

    def do_help(self, arg: str) -> None:
        """List the commands."""
        show_help(arg)

    def completenames(self, text: str, *ignored: Any) -> list[str]:
        """Commands that begin with ``text``."""
        return [name for name in (*COMMANDS, "help", "quit") if name.startswith(text)]

    def completedefault(self, text: str, *ignored: Any) -> list[str]:
        """Names of layers and tensors that begin with ``text``."""
        names = [*self._debugger.layers, *(each.name for each in self._debugger.record.tensors)]
        return [name for name in names if name.startswith(text)]
