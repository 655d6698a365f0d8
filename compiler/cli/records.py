"""The option that names files of tuned schedules."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from .paths import PATH

__all__ = ["record_paths", "records_option"]

F = TypeVar("F", bound=Callable[..., Any])

SHIPPED = "shipped"


def records_option(command: F) -> F:
    """``--records``, any number of times."""
    return click.option(
        "--records",
        multiple=True,
        metavar="FILE",
        help="Schedules that `dovetail tune` found, or 'shipped': those that come with Dovetail.",
    )(command)


def record_paths(names: Sequence[str]) -> tuple[Path, ...]:
    """The files."""
    from ..schedule.record_files import SHIPPED as FILE

    return tuple(FILE if name == SHIPPED else PATH.convert(name, None, None) for name in names)
