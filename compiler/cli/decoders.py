"""Options that say what a decoder's tensors are for."""

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from .paths import PATH

if TYPE_CHECKING:
    from dovetail.runtime.generate.roles import Named

__all__ = ["roles_options", "tokenizer_option"]

ROLES = ("token", "position", "mask", "logits", "caches")


def roles_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options; the command gets them as ``named``, of the class ``Named``."""

    @wraps(command)
    def wrapped(**values: Any) -> Any:
        token, position, mask, logits, caches = (values.pop(role) for role in ROLES)
        return command(named=_named(token, position, mask, logits, caches), **values)

    for option in reversed(OPTIONS):
        wrapped = option(wrapped)
    return wrapped


def _named(
    token: str | None,
    position: str | None,
    mask: str | None,
    logits: str | None,
    caches: tuple[str, ...],
) -> "Named":
    from dovetail.runtime.generate.roles import Named

    return Named(token, position, mask, logits, tuple(map(_cache, caches)))


def _cache(pair: str) -> tuple[str, str, int | None]:
    """INPUT=OUTPUT or INPUT=OUTPUT:AXIS, as ``Named`` has caches.

    A colon within a name needs the axis behind it.  Raises click.UsageError for another form.
    """
    past, _, new = pair.partition("=")
    name, _, axis = new.rpartition(":")
    if not past or not new or (name and not axis.isdecimal()):
        raise click.UsageError(f"--cache {pair!r}; required INPUT=OUTPUT or INPUT=OUTPUT:AXIS")
    return (past, name, int(axis)) if name else (past, new, None)


tokenizer_option = click.option(
    "--tokenizer",
    type=PATH,
    metavar="FILE",
    help="llama2.c's (.bin) or Hugging Face's (tokenizer.json). Default: bytes are tokens.",
)
OPTIONS = (
    click.option(
        "--token",
        metavar="INPUT",
        help="A decoder's input for the token, if its name does not tell.",
    ),
    click.option("--position", metavar="INPUT", help="Input for the token's position, likewise."),
    click.option("--mask", metavar="INPUT", help="Input for the mask of positions, likewise."),
    click.option("--logits", metavar="OUTPUT", help="Output of the logits, likewise."),
    click.option(
        "--cache",
        "caches",
        multiple=True,
        metavar="INPUT=OUTPUT[:AXIS]",
        help="A cache's input, the output that a run adds to it, and the axis of positions.",
    ),
)
