"""Fields of JSON objects, whose form is checked."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ...errors import ModelError

__all__ = ["field_of", "list_of", "said", "table_of"]

T = TypeVar("T")
KINDS: Mapping[Any, str] = {dict: "an object", list: "a list", int: "an integer", str: "a text"}


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
