"""The command ``dovetail debug``: its options."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..arrays import random_inputs, read_inputs
from ..output import clear_errors, human, json_option, print_json, progress
from ..paths import PATH

if TYPE_CHECKING:
    from ...debug.debugger import Debugger

__all__ = ["debug"]


@click.command()
@click.argument("module", type=PATH)
@click.option("--input", "inputs", multiple=True, metavar="NAME=FILE.npy", help="Default: random.")
@click.option("--device", default="sim", help="sim or rtl.", show_default=True)
@click.option(
    "--model",
    type=PATH,
    metavar="MODEL",
    help="Model that MODULE was compiled from; check compares with it.",
)
@click.option(
    "-c", "--command", "commands", multiple=True, help="Command to execute; may be repeated."
)
@click.option("--script", type=PATH, help="File of commands, one a line.")
@click.option("--check", "checks", is_flag=True, help="Run the command check at the end.")
@click.option(
    "--waves",
    type=PATH,
    metavar="FILE.fst|FILE.vcd",
    help="Write waveforms of the RTL, around the place that the commands reached, or --around.",
)
@click.option(
    "--around", type=int, metavar="INSTRUCTION", help="Instruction in the middle of --waves."
)
@click.option("--cycles", type=click.IntRange(1), help="Length of --waves; default: 200.")
@json_option
@clear_errors
def debug(
    module: Path,
    inputs: tuple[str, ...],
    device: str,
    model: Path | None,
    commands: tuple[str, ...],
    script: Path | None,
    checks: bool,
    waves: Path | None,
    around: int | None,
    cycles: int | None,
    as_json: bool,
) -> None:
    """Step through a run of MODULE in both directions, stop anywhere, and look at its state.

    Without --command, --script, --check and --waves, commands are read from standard input, a
    terminal or a pipe; help lists them.
    """
    from .prompt import Prompt, run_script

    if not waves and (around is not None or cycles is not None):
        raise click.UsageError("--around and --cycles say where --waves are; required --waves FILE")
    lines = [*_read_script(script), *commands, *(["check"] if checks else [])]
    if waves:
        words = [str(waves)]
        words += [] if around is None else ["around", str(around)]
        words += [] if cycles is None else ["cycles", str(cycles)]
        lines.append(shlex.join(["waves", *words]))
    debugger = _open(module, inputs, device, model)
    if not lines and sys.stdin.isatty() and not as_json:
        Prompt(debugger).cmdloop()
        return
    # One line after the other, so that who writes them may read each answer before the next.
    values, failed = run_script(debugger, lines or sys.stdin, quiet=as_json)
    if as_json:
        print_json({"module": str(module), "device": device, "commands": values})
    if failed:
        human.print("check: the run differs from the model")
        raise click.exceptions.Exit(1)


def _read_script(path: Path | None) -> list[str]:
    from dovetail.runtime.errors import InputError

    if path is None:
        return []
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read script {path}: {error}") from None


def _open(path: Path, inputs: tuple[str, ...], device: str, model: Path | None) -> "Debugger":
    from dovetail.runtime.module import Module

    from ...debug.debugger import Debugger
    from ...front.table import open_model
    from ..building import build_for

    loaded = Module.load(path)
    given = read_inputs(inputs) or random_inputs(loaded)
    build_for(loaded, device)
    with progress(f"running {path.name} on {device}"):
        return Debugger(loaded, given, device, open_model(model) if model else None)
