"""Names that have a meaning inside of a statement alone."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

__all__ = ["bound"]

T = TypeVar("T")


@contextmanager
def bound(names: dict[str, T], name: str, value: T) -> Iterator[None]:
    """``name`` means ``value``, and afterwards what it meant before."""
    before = names.get(name)
    names[name] = value
    yield
    if before is None:
        del names[name]
    else:
        names[name] = before
