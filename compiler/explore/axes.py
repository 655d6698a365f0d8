"""The values that one parameter of a design may have."""

import difflib
from collections.abc import Mapping
from typing import Any

from dovetail.isa.frozen import frozen

from ..errors import SpaceError

__all__ = ["MOST_VALUES", "Axis", "read_axes"]

MOST_VALUES = 1000
REQUIRED = {int: "integers", bool: "true or false", str: "names"}


@frozen
class Axis:
    """A parameter and its values, in the order given."""

    name: str
    values: tuple[int | str, ...]


def read_axes(
    table: Mapping[str, Any], title: str, kinds: Mapping[str, type], where: str
) -> tuple[Axis, ...]:
    """The axes of a table: ``name = value``, ``[values]``, ``{from, to, step}`` or
    ``{from, to, factor}``, both ends included.

    kinds: the type of each parameter's values.
    Raises SpaceError for a name that is not in ``kinds``, or values of another type.
    """
    axes = []
    for name, written in table.items():
        if name not in kinds:
            close = difflib.get_close_matches(name, kinds, 1)
            hint = f"did you mean {close[0]}?" if close else f"there are: {', '.join(kinds)}"
            raise SpaceError(f"{where}: [{title}] has no parameter {name!r}; {hint}")
        place = f"{where}: [{title}] {name}"
        values = _range(written, place) if isinstance(written, Mapping) else _list(written)
        for value in values:
            if type(value) is not kinds[name]:
                raise SpaceError(f"{place} = {value!r}; required {REQUIRED[kinds[name]]}")
        if not values:
            raise SpaceError(f"{place} has no value; required at least one")
        if len(set(values)) < len(values):
            raise SpaceError(f"{place} = {written}: a value is there twice")
        axes.append(Axis(name, tuple(values)))
    return tuple(axes)


def _list(written: Any) -> list[Any]:
    return list(written) if isinstance(written, list) else [written]


def _range(written: Mapping[str, Any], place: str) -> list[Any]:
    kinds = [kind for kind in ("step", "factor") if kind in written]
    if len(kinds) != 1 or set(written) != {"from", "to", kinds[0]}:
        raise SpaceError(
            f"{place} = {dict(written)}; required {{from, to, step}} or {{from, to, factor}}"
        )
    kind = kinds[0]
    low, high, by = written["from"], written["to"], written[kind]
    if any(isinstance(v, bool) or not isinstance(v, int) for v in (low, high, by)):
        raise SpaceError(f"{place} = {dict(written)}; required integers")
    if by < (2 if kind == "factor" else 1) or low > high or (kind == "factor" and low < 1):
        raise SpaceError(
            f"{place} = {dict(written)}; required from <= to, a step of at least 1, a factor of "
            "at least 2 from at least 1 on"
        )
    values = []
    while low <= high:
        values.append(low)
        if len(values) > MOST_VALUES:
            raise SpaceError(f"{place} has more than {MOST_VALUES} values; take a larger step")
        low = low * by if kind == "factor" else low + by
    return values
