"""Dataclasses as JSON values, and back: every field is held to its type.

Fields are bool, int, float, str, tuples (also named ones), mappings by name, other dataclasses,
unions of these with None, unions of dataclasses (an entry ``kind`` says which), enums, and
``object`` for any JSON value.  Bytes are outside the JSON, as sections; their field holds the
number of a section.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

from dovetail.isa.entry_points import ExtensionError
from dovetail.isa.errors import DovetailError

from .errors import ModuleError

__all__ = ["Content", "read_value", "write_value"]

Content = bytes | memoryview
"""The type of a field whose bytes are a section."""

T = TypeVar("T")
Sections = Sequence[memoryview]
Reader = Callable[[object, Sections], Any]


class _FieldError(Exception):
    """A fault in the manifest, and the path to its field, from the inside out."""

    def __init__(self, text: str, path: tuple[str, ...] = ()) -> None:
        self.text, self.path = text, path


def write_value(value: object, sections: list[Content]) -> object:
    """``value`` as JSON values; bytes in it are appended to ``sections``."""
    if isinstance(value, bytes | memoryview):
        sections.append(value)
        return len(sections) - 1
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple | list):
        return [write_value(each, sections) for each in value]
    if isinstance(value, Mapping):
        return {name: write_value(each, sections) for name, each in value.items()}
    if not is_dataclass(value):
        return value
    found: dict[str, object] = {}
    for name, kind in _types(value.__class__).items():
        inner = write_value(getattr(value, name), sections)
        found[name] = _tagged(inner, getattr(value, name), kind)
    return found


def _tagged(written: object, value: object, kind: object) -> object:
    """With the name of its class wherever ``kind`` lets a dataclass be of several."""
    inner = get_args(kind)
    is_union = get_origin(kind) in (Union, UnionType)
    if is_union and len(_classes(inner)) > 1 and isinstance(written, dict):
        return {"kind": type(value).__name__, **written}
    if isinstance(written, list) and isinstance(value, tuple) and inner[1:] == (Ellipsis,):
        return [_tagged(w, v, inner[0]) for w, v in zip(written, value, strict=True)]
    return written


def read_value(
    kind: type[T], value: object, where: str, sections: Sections = (), path: str = ""
) -> T:
    """The ``kind`` that ``write_value`` made ``value`` of.

    where: names the file in errors, ``path`` the place of ``value`` in it.
    Raises ModuleError naming the field that is missing, unknown, or not of its type, or a finish
    that is not installed here.
    """
    try:
        reader: Any = kind
        found: T = _reader(reader)(value, sections)
    except ExtensionError as problem:
        raise ModuleError(f"{where}: {problem}") from None
    except _FieldError as problem:
        field = _join((*((path,) if path else ()), *reversed(problem.path)))
        at = f", field {field}" if field else ""
        raise ModuleError(
            f"{where} has a manifest that cannot be read{at}: {problem.text}; compile it again"
        ) from None
    return found


def _join(path: tuple[str, ...]) -> str:
    return "".join(part if part[0] == "[" or not n else f".{part}" for n, part in enumerate(path))


@cache
def _types(cls: Any) -> dict[str, Any]:
    """The fields of a dataclass and their types."""
    return {field.name: field.type for field in fields(cls)}


def _classes(kinds: tuple[Any, ...]) -> list[Any]:
    """The dataclasses among the members of a union."""
    return [each for each in kinds if is_dataclass(each)]


@cache
def _reader(kind: Any) -> Reader:
    """Reader of values of type ``kind``; it raises _FieldError."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind is object:
        return lambda value, sections: value
    if kind == Content:
        return _section
    if kind is float:
        return _number
    if kind in (bool, int, str):
        return _plain(kind)
    if is_dataclass(kind):
        return _dataclass(kind)  # type: ignore[arg-type]
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _enum(kind)
    if isinstance(kind, type) and issubclass(kind, tuple) and origin is None:
        return _named_row(kind)
    if origin is tuple and inner[1:] == (Ellipsis,):
        return _list(_reader(inner[0]), inner[0])
    if origin is tuple:
        return _row(inner)
    if origin in (Mapping, dict):
        return _mapping(_reader(inner[1]))
    if origin in (Union, UnionType):
        return _union(inner)
    raise AssertionError(f"a field of type {kind}")


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _wrong(value: object, required: str) -> _FieldError:
    return _FieldError(f"found {_shown(value)}, required {required}")


NAMES = {bool: "true or false", int: "an integer", str: "a text"}


def _plain(kind: type) -> Reader:
    def read(value: object, sections: Sections) -> object:
        if type(value) is not kind:
            raise _wrong(value, NAMES[kind])
        return value

    return read


def _number(value: object, sections: Sections) -> float:
    if type(value) not in (int, float) or not math.isfinite(value):  # type: ignore[arg-type]
        raise _wrong(value, "a finite number")
    return float(value)  # type: ignore[arg-type]


def _section(value: object, sections: Sections) -> memoryview:
    if type(value) is not int or not 0 <= value < len(sections):
        raise _wrong(value, f"the number of a section, below {len(sections)}")
    return sections[value]


def _enum(kind: type[Enum]) -> Reader:
    def read(value: object, sections: Sections) -> Enum:
        for each in kind:
            if type(value) is type(each.value) and value == each.value:
                return each
        raise _wrong(value, f"one of {', '.join(str(each.value) for each in kind)}")

    return read


def _list(item: Reader, kind: object) -> Reader:
    def read(value: object, sections: Sections) -> tuple[Any, ...]:
        if type(value) is not list:
            raise _wrong(value, "a list")
        if kind is int and {*map(type, value)} == {int}:
            return tuple(value)
        found = []
        for number, each in enumerate(value):
            try:
                found.append(item(each, sections))
            except _FieldError as problem:
                raise _FieldError(problem.text, (*problem.path, f"[{number}]")) from None
        return tuple(found)

    return read


def _row(kinds: tuple[Any, ...]) -> Reader:
    items = [_reader(kind) for kind in kinds]
    only_ints = {*kinds} == {int}

    def read(value: object, sections: Sections) -> tuple[Any, ...]:
        if type(value) is not list or len(value) != len(items):
            raise _wrong(value, f"a list of {len(items)}")
        if only_ints and {*map(type, value)} == {int}:
            return tuple(value)
        return tuple(item(each, sections) for item, each in zip(items, value, strict=True))

    return read


def _named_row(kind: Any) -> Reader:
    items = {name: _reader(each) for name, each in kind.__annotations__.items()}
    least = len(items) - len(kind._field_defaults)

    def read(value: object, sections: Sections) -> Any:
        if type(value) is not list or not least <= len(value) <= len(items):
            raise _wrong(value, f"a list of {', '.join(items)}")
        fields = zip(items.items(), value, strict=False)
        return kind(*(_field(item, name, each, sections) for (name, item), each in fields))

    return read


def _mapping(item: Reader) -> Reader:
    def read(value: object, sections: Sections) -> dict[str, Any]:
        if type(value) is not dict:
            raise _wrong(value, "an object")
        return {name: _field(item, name, each, sections) for name, each in value.items()}

    return read


def _field(item: Reader, name: str, value: object, sections: Sections) -> Any:
    try:
        return item(value, sections)
    except _FieldError as problem:
        raise _FieldError(problem.text, (*problem.path, name or "''")) from None


def _dataclass(kind: type) -> Reader:
    wanted = _types(kind)
    items = {name: _reader(each) for name, each in wanted.items()}

    def read(value: object, sections: Sections) -> Any:
        if type(value) is not dict:
            raise _wrong(value, f"an object with {', '.join(wanted)}")
        for name in items:
            if name not in value:
                raise _FieldError(f"no entry {name!r}")
        for name in value:
            if name not in items:
                raise _FieldError(f"an entry {_shown(name)}, which does not exist")
        given = {name: _field(items[name], name, value[name], sections) for name in items}
        try:
            return kind(**given)
        except ExtensionError:
            raise
        except DovetailError as error:
            raise _FieldError(str(error)) from None

    return read


def _union(kinds: tuple[Any, ...]) -> Reader:
    classes: dict[str, Any] = {each.__name__: each for each in _classes(kinds)}
    plain = [each for each in kinds if each is not NoneType]

    def read(value: object, sections: Sections) -> Any:
        if value is None and NoneType in kinds:
            return None
        if len(plain) == 1:
            return _reader(plain[0])(value, sections)
        name = value.get("kind") if type(value) is dict else None
        if type(name) is not str or name not in classes:
            raise _wrong(name, f"one of the kinds {', '.join(classes)}")
        rest = {key: each for key, each in value.items() if key != "kind"}  # type: ignore[attr-defined]
        return _reader(classes[name])(rest, sections)

    return read
