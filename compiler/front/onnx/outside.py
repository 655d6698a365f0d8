"""Converters of operators that other packages bring."""

from typing import cast

from dovetail.isa.entry_points import ExtensionError, find_outside

from .context import Converter

__all__ = ["GROUP", "converter_outside"]

GROUP = "dovetail.onnx"
"""Entry points: the name is ``domain.Operator``, the object its converter."""


def converter_outside(name: str) -> Converter | None:
    """The converter of the operator called ``name`` that an installed package brings.

    Raises ExtensionError when it is not a function, cannot be imported, or two packages bring one.
    """
    found = find_outside(GROUP, name)
    if found is None:
        return None
    converter, brought = found
    if not callable(converter):
        raise ExtensionError(
            f"{GROUP} {name!r}: {brought} is a {type(converter).__name__}; required a function of "
            "the context, the node and its inputs"
        )
    return cast(Converter, converter)
