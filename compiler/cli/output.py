"""How the command line speaks: results on standard output, all else on standard error."""

import errno
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dovetail.isa.errors import DovetailError

__all__ = [
    "clear_errors",
    "human",
    "json_option",
    "print_json",
    "printable",
    "progress",
    "progress_line",
    "require_folder",
    "table",
]

P = ParamSpec("P")
R = TypeVar("R")

DISTRIBUTIONS = {"PIL": "pillow", "serial": "pyserial", "xgboost": "xgboost-cpu"}
"""Packages that are imported by another name than they are installed by."""
TOGETHER = {"bitstream": ("hw", "board")}
"""Extras that a command needs all of."""
FILE_WIDTH = 120
"""Columns when standard error is not a terminal."""


def printable(text: str) -> str:
    """``text`` with what would speak to the terminal, or hide or turn letters, as escapes."""
    return "".join(
        each if each.isprintable() or each in "\n\t" else each.encode("unicode_escape").decode()
        for each in text
    )


class _Console(Console):
    """Names come from models and modules: none of them moves the cursor."""

    def render_str(self, text: str, **options: Any) -> Text:  # type: ignore[override]
        return super().render_str(printable(text), **options)


human = _Console(
    stderr=True,
    width=None if sys.stderr.isatty() else FILE_WIDTH,
    highlight=False,
    markup=False,
    emoji=False,
)


def clear_errors(command: Callable[P, R]) -> Callable[P, R]:
    """Turn every DovetailError into its message and exit code 1, never a traceback.

    Likewise what the system says of a file, and a package that is not installed, which an extra
    brings.
    """

    @wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except DovetailError as error:
            raise click.ClickException(printable(str(error))) from None
        except MemoryError:
            raise click.ClickException(
                "there is not enough memory for what was asked; is a file larger than it should be?"
            ) from None
        except OSError as error:
            if error.errno in (None, errno.EPIPE):
                raise
            place = f"{error.filename}: " if error.filename else ""
            raise click.ClickException(printable(f"{place}{error.strerror}")) from None
        except ModuleNotFoundError as error:
            missing = (error.name or "").split(".")[0]
            if missing in ("", "dovetail"):
                raise
            raise click.ClickException(
                f"this command needs {missing}, which is not installed; {_how_to_install(missing)}"
            ) from None

    return wrapped


def _how_to_install(module: str) -> str:
    """The extra that brings a package: the one called like the command, where several do."""
    from importlib import metadata

    package = DISTRIBUTIONS.get(module, module).replace("_", "-")
    extras = []
    with suppress(metadata.PackageNotFoundError):
        for each in metadata.requires("dovetail") or ():
            found = re.match(r"([\w.-]+).*\bextra == [\"'](\w+)[\"']", each)
            if found and found[1].lower().replace("_", "-") == package:
                extras.append(found[2])
    if not extras:
        return f"install it: pip install {package}"
    context = click.get_current_context(silent=True)
    command = context.info_name if context else None
    extra = command if command in extras else extras[0]
    together = TOGETHER.get(command or "", ())
    extra = ",".join(together) if extra in together else extra
    return f"install the extra: pip install 'dovetail[{extra}]'"


json_option = click.option(
    "--json", "as_json", is_flag=True, help="One JSON object on standard output."
)


def print_json(values: Mapping[str, Any]) -> None:
    """One object on standard output."""
    click.echo(json.dumps(values, indent=2))


@contextmanager
def progress_line(what: str) -> Iterator[Callable[[str], None]]:
    """Show on a terminal that something goes on that may take more than two seconds, and how long
    it has been; what it gives changes the text.
    """
    if not human.is_terminal:
        yield lambda text: None
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=human, transient=True) as shown:
        line = shown.add_task(printable(what), total=None)
        yield lambda text: shown.update(line, description=printable(text))


@contextmanager
def progress(what: str) -> Iterator[None]:
    """As ``progress_line``, for one thing."""
    with progress_line(what):
        yield


def table(title: str, columns: Mapping[str, str], rows: list[tuple[object, ...]]) -> Table:
    """A table; ``columns`` gives each heading's justification, left or right."""
    made = Table(title=title)
    for name, justify in columns.items():
        made.add_column(name, justify="right" if justify == "right" else "left")
    for row in rows:
        made.add_row(*(str(cell) for cell in row))
    return made


def require_folder(*paths: Path | None) -> None:
    """Refuse output files whose folder does not exist, before any work is done for them.

    Raises click.UsageError.
    """
    for path in paths:
        if path is not None and not path.parent.is_dir():
            raise click.UsageError(f"folder {path.parent} of {path.name} does not exist")
