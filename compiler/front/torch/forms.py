"""Fields and numbers of JSON, whose form is checked."""

from collections.abc import Callable, Mapping
from math import inf, nan
from typing import Any, TypeVar

from ...errors import ModelError

__all__ = ["field_of", "list_of", "plain", "said", "table_of"]

T = TypeVar("T")
KINDS: Mapping[Any, str] = {dict: "an object", list: "a list", int: "an integer", str: "a text"}

PLAIN: Mapping[str, tuple[type[int | float | str], ...]] = {
    "as_bool": (bool,),
    "as_float": (float, int),
    "as_int": (int,),
    "as_string": (str,),
}
"""Forms of numbers and texts in the file, by kind."""

WORDS = {"-Infinity": -inf, "Infinity": inf, "NaN": nan}


def table_of(document: object, name: str) -> dict[str, Any]:
    """As ``field_of``, an object."""
    return field_of(document, name, dict)


def list_of(document: object, name: str) -> list[Any]:
    """As ``field_of``, a list."""
    return field_of(document, name, list)


def field_of(document: object, name: str, kind: Callable[..., T]) -> T:
    """A field of an object.  Raises ModelError when there is none, or it is of another type."""
    value = document.get(name) if isinstance(document, dict) else None
    if type(value) is not kind:
        raise ModelError(f"field {name!r} is {said(value)}; required {KINDS[kind]}")
    return value  # type: ignore[return-value]


def said(value: object) -> str:
    """A value as a message has it, cut where it is long."""
    text = repr(value)
    return "missing" if value is None else text if len(text) < 80 else f"{text[:77]}..."


def plain(kind: str, value: object) -> int | float | str:
    """A number or a text of the type that ``kind`` names; infinities and NaN are texts.

    Raises TypeError for another one.
    """
    if kind == "as_float" and isinstance(value, str) and value in WORDS:
        return WORDS[value]
    wanted = PLAIN.get(kind)
    if wanted is None or not isinstance(value, wanted):
        raise TypeError(f"{value!r}; required {kind.removeprefix('as_')}")
    return value
