"""How the command line speaks: results on standard output, all else on standard error."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import click
from rich.console import Console
from rich.table import Table

from dovetail.isa.errors import DovetailError

__all__ = ["clear_errors", "human", "print_json", "progress", "table"]

P = ParamSpec("P")
R = TypeVar("R")

human = Console(stderr=True)


def clear_errors(command: Callable[P, R]) -> Callable[P, R]:
    """Turn every DovetailError into its message and exit code 1."""

    @wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except DovetailError as error:
            raise click.ClickException(str(error)) from None

    return wrapped


def print_json(values: Mapping[str, Any]) -> None:
    """One object on standard output."""
    click.echo(json.dumps(values, indent=2))


@contextmanager
def progress(what: str) -> Iterator[None]:
    """Show that something goes on that may take more than two seconds."""
    with human.status(what):
        yield


def table(title: str, columns: Mapping[str, str], rows: list[tuple[object, ...]]) -> Table:
    """A table; ``columns`` gives each heading's justification, left or right."""
    made = Table(title=title)
    for name, justify in columns.items():
        made.add_column(name, justify="right" if justify == "right" else "left")
    for row in rows:
        made.add_row(*(str(cell) for cell in row))
    return made


def require_folder(path: Path) -> None:
    """Raise a usage error when the folder of ``path`` does not exist."""
    if not path.parent.exists():
        raise click.UsageError(f"folder {path.parent} does not exist")
