"""Frozen classes: those of ``dataclass(frozen=True, slots=True)``, made and constructed quickly.

That decorator compiles six methods for each class, which took a third of the time of importing a
compiler, and its constructors look up each field's name again, which takes four times as long as
setting slots.  Here a class shares most methods with all others, and has the rest written when they
are first asked for.
"""

from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform, overload

__all__ = ["KeepsHash", "frozen", "replace"]

Class = TypeVar("Class", bound=type)


@overload
def frozen(cls: Class, /) -> Class: ...


@overload
def frozen(*, eq: bool = True, kw_only: bool = False) -> Callable[[Class], Class]: ...


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type | None = None, /, *, eq: bool = True, kw_only: bool = False) -> Any:
    """Make a class a dataclass whose instances never change, with slots for its fields.

    What ``dataclasses`` has for its classes works for these, and either kind may inherit from the
    other.  eq: instances are compared, and hashed, by their fields.  kw_only: these are given by
    their names.
    """

    def made(cls: type) -> type:
        own = {name for name, value in vars(cls).items() if value is not None}
        # Else it is the text of a signature that there is not yet.
        cls.__doc__ = cls.__doc__ or ""
        # Of bases and classes all are frozen, or none.
        inherits = any(hasattr(base, "__dataclass_params__") for base in cls.__mro__[1:])
        options = {"init": False, "repr": False, "eq": False, "slots": True, "kw_only": kw_only}
        made: Any = dataclass(frozen=inherits, **options)(cls)
        made.__dataclass_params__.frozen = True
        for name, method in SHARED.items():
            if name not in own:
                setattr(made, name, method)
        for name, write in WRITTEN.items():
            if name not in own and (eq or name not in ("__eq__", "__hash__")):
                setattr(made, name, _Written(made, name, write))
        return made

    return made if cls is None else made(cls)


class KeepsHash:
    """Base of frozen classes that compute their hash once: of many fields, and looked up often."""

    __slots__ = ("_kept_hash",)


if TYPE_CHECKING:
    from dataclasses import replace
else:

    def replace(instance: Any, /, **changes: object) -> Any:
        """``dataclasses.replace``, of an instance of a frozen class, faster."""
        return instance.__replace__(**changes)


class _Written:
    """A method of ``owner`` that is written, in its place, when it is first asked for."""

    def __init__(self, owner: type, name: str, write: Callable[[Any], str]) -> None:
        self._owner, self._name, self._write = owner, name, write

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        names: dict[str, Any] = {"_missing": MISSING}
        if issubclass(self._owner, KeepsHash):
            names["_keep_hash"] = KeepsHash._kept_hash.__set__  # type: ignore[attr-defined]
        for each in fields(self._owner):
            names[f"_set_{each.name}"] = getattr(self._owner, each.name).__set__
            names[f"_default_{each.name}"] = each.default
            names[f"_make_{each.name}"] = each.default_factory
        exec(self._write(self._owner), names)
        method = names[self._name]
        method.__qualname__ = f"{self._owner.__qualname__}.{self._name}"
        method.__module__ = self._owner.__module__
        if self._name == "__init__":
            given = {each.name: each.type for each in fields(self._owner) if each.init}
            method.__annotations__ = given | {"return": None}
        setattr(self._owner, self._name, method)
        return method.__get__(instance, owner)


def _init(cls: Any) -> str:
    places: list[str] = []
    by_name: list[str] = []
    lines = []
    for each in fields(cls):
        name, value = each.name, each.name
        if each.default_factory is not MISSING:
            value = f"_make_{name}() if {name} is _missing else {name}"
        if each.init:
            default = "_missing" if each.default_factory is not MISSING else f"_default_{name}"
            optional = each.default is not MISSING or each.default_factory is not MISSING
            (by_name if each.kw_only else places).append(f"{name}={default}" if optional else name)
        elif each.default is MISSING and each.default_factory is MISSING:
            continue
        else:
            value = f"_default_{name}" if each.default is not MISSING else f"_make_{name}()"
        lines.append(f"_set_{name}(self, {value})")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    given = ", ".join(["self", *places, *(["*", *by_name] if by_name else [])])
    return f"def __init__({given}):\n " + "\n ".join(lines or ["pass"])


def _eq(cls: Any) -> str:
    names = [each.name for each in fields(cls) if each.compare]
    mine, others = ("".join(f"{who}.{name}, " for name in names) for who in ("self", "other"))
    return (
        "def __eq__(self, other):\n"
        " if other is self:\n  return True\n"
        f" if other.__class__ is self.__class__:\n  return ({mine}) == ({others})\n"
        " return NotImplemented"
    )


def _hash(cls: Any) -> str:
    used = (each for each in fields(cls) if (each.compare if each.hash is None else each.hash))
    value = f"hash(({''.join(f'self.{each.name}, ' for each in used)}))"
    if not issubclass(cls, KeepsHash):
        return f"def __hash__(self):\n return {value}"
    return (
        "def __hash__(self):\n try:\n  return self._kept_hash\n except AttributeError:\n"
        f"  _keep_hash(self, {value})\n  return self._kept_hash"
    )


def _replace(cls: Any) -> str:
    names = [each.name for each in fields(cls) if each.init]
    given = "".join(f", {name}=_missing" for name in names)
    values = (f"{name}=self.{name} if {name} is _missing else {name}" for name in names)
    return (
        f"def __replace__(self{', *' if names else ''}{given}):\n"
        f" return self.__class__({', '.join(values)})"
    )


def _repr(cls: Any) -> str:
    shown = ", ".join(f"{each.name}={{self.{each.name}!r}}" for each in fields(cls) if each.repr)
    return f"def __repr__(self):\n return f'{{self.__class__.__qualname__}}({shown})'"


def _setattr(self: object, name: str, value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _delattr(self: object, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _getstate(self: Any) -> list[Any]:
    return [getattr(self, each.name) for each in fields(self)]


def _setstate(self: Any, state: list[Any]) -> None:
    for each, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)


SHARED = {
    "__setattr__": _setattr,
    "__delattr__": _delattr,
    "__getstate__": _getstate,
    "__setstate__": _setstate,
}
"""Methods that are the same for all classes."""

WRITTEN: dict[str, Callable[[Any], str]] = {
    "__init__": _init,
    "__replace__": _replace,
    "__eq__": _eq,
    "__hash__": _hash,
    "__repr__": _repr,
}
"""Methods for which the fields of a class are written out, and what writes them."""
