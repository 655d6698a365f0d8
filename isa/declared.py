"""Meaning and range of a configuration's fields, declared with the field.

Constructors, files of configurations, the manual and the command line read these declarations.
"""

from collections.abc import Callable, Iterator
from dataclasses import Field, fields
from types import MappingProxyType
from typing import Any

from .errors import ConfigError
from .frozen import frozen

__all__ = ["Declared", "Limit", "check_fields", "declarations", "declare"]

KEY = "declared"


@frozen
class Limit:
    """An end of a range that follows from other fields: as text, and computed from their owner."""

    text: str
    of: Callable[[Any], int]


@frozen
class Declared:
    """A field: ``text`` with its unit, its smallest and largest value, both included.

    low None: it has no range (texts, truth values, tables).  high None: it has no end.
    power: whether only powers of two are allowed.
    """

    text: str
    low: int | Limit | None = None
    high: int | Limit | None = None
    power: bool = False

    @property
    def range(self) -> str:
        """The requirement, in words that hold for every configuration; empty without a range."""
        return self._range(*(x.text if isinstance(x, Limit) else x for x in (self.low, self.high)))

    def range_of(self, owner: object) -> str:
        """The requirement for the field of ``owner``."""
        return self._range(*self._ends(owner))

    def allows(self, value: int, owner: object) -> bool:
        """True if ``value`` is in the range that ``owner`` leaves."""
        low, high = self._ends(owner)
        return (low is None or value >= low) and (high is None or value <= high)

    def _ends(self, owner: object) -> tuple[int | None, int | None]:
        low, high = (x.of(owner) if isinstance(x, Limit) else x for x in (self.low, self.high))
        return low, high

    def _range(self, low: object, high: object) -> str:
        if low is None:
            return ""
        ends = f"at least {low}" if high is None else f"{low} to {high}"
        return f"{ends}, a power of two" if self.power else ends


def declare(
    text: str,
    low: int | Limit | None = None,
    high: int | Limit | None = None,
    power: bool = False,
) -> MappingProxyType[str, Declared]:
    """The metadata of a field."""
    return MappingProxyType({KEY: Declared(text, low, high, power)})


def declarations(owner: Any) -> Iterator[tuple[Field[Any], Declared]]:
    """The fields of a dataclass, or of an object of one, with their declarations, in order."""
    return ((field, field.metadata[KEY]) for field in fields(owner) if KEY in field.metadata)


def check_fields(owner: Any, who: str) -> None:
    """Hold every field of ``owner`` to its declaration; ``who`` begins the message.

    Powers of two come first: ranges may be computed from them.  Raises ConfigError.
    """
    values = [(field.name, getattr(owner, field.name), it) for field, it in declarations(owner)]
    for name, value, declared in values:
        if declared.power and (value < 1 or value & (value - 1)):
            raise ConfigError(f"{who}{name} = {value}; required {declared.range}")
    for name, value, declared in values:
        if not declared.allows(value, owner):
            raise ConfigError(f"{who}{name} = {value}; required {declared.range_of(owner)}")
