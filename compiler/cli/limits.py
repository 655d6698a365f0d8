"""The options that say what compiling may take."""

from collections.abc import Callable
from typing import Any

import click

from .numbers import POSITIVE

__all__ = ["limits_options"]


def limits_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options; the command gets ``most_compile_seconds`` and ``most_memory``."""
    for option in (
        click.option("--most-memory", type=POSITIVE, metavar="BYTES", help="Memory it may take."),
        click.option(
            "--most-compile-seconds", type=POSITIVE, metavar="NUMBER", help="Time it may take."
        ),
    ):
        command = option(command)
    return command
