"""Kinds of values in native code, and their types in LLVM."""

from enum import Enum
from typing import Any, get_origin

import llvmlite.ir as ir

from dovetail.isa.formats import Format
from dovetail.isa.frozen import frozen

from .errors import TranslationError
from .language import Record

__all__ = [
    "BOOL",
    "BYTE",
    "ELEMENTS",
    "INT",
    "POINTER",
    "ArrayOf",
    "Kind",
    "LevelsOf",
    "RecordOf",
    "RowOf",
    "Scalar",
    "Value",
    "intrinsic",
    "kind_of",
]

INT = ir.IntType(64)
BOOL = ir.IntType(1)
BYTE = ir.IntType(8)
POINTER = ir.PointerType()
ELEMENTS = {
    "uint8": ir.IntType(8),
    "int8": ir.IntType(8),
    "int32": ir.IntType(32),
    "int64": ir.IntType(64),
    "float32": ir.FloatType(),
}
"""Types of elements of arrays, by the name of the NumPy type."""


class Scalar(Enum):
    """A value held in registers."""

    INT = "int"
    BOOL = "bool"
    LANES = "lanes"
    TILE = "tile"
    NOTHING = "nothing"


@frozen
class ArrayOf:
    """An array of elements of a NumPy type."""

    element: str


@frozen
class RowOf:
    """One row of an instruction table: a 64-bit slot for each field."""

    layout: Format


@frozen
class LevelsOf:
    """Consecutive slots of a row: one field, level by level."""


@frozen
class RecordOf:
    """A record: a 64-bit slot for each annotation."""

    cls: type[Record]


Kind = Scalar | ArrayOf | RowOf | LevelsOf | RecordOf


@frozen
class Value:
    """A value while code is emitted."""

    kind: Kind
    ir: Any


def kind_of(annotation: object) -> Kind:
    """The kind that an annotation names.

    Raises TranslationError for one that is not of the language.
    """
    if annotation is None:
        return Scalar.NOTHING
    if annotation is int:
        return Scalar.INT
    if annotation is bool:
        return Scalar.BOOL
    if isinstance(annotation, type) and issubclass(annotation, Record):
        return RecordOf(annotation)
    layout = getattr(annotation, "format", None)
    if isinstance(layout, Format):
        return RowOf(layout)
    if get_origin(annotation) is not None:
        (name,) = getattr(annotation, "__metadata__", ("",))
        if name in ELEMENTS:
            return ArrayOf(name)
        if name == "levels":
            return LevelsOf()
        if name in ("lanes", "tile"):
            return Scalar(name)
    raise TranslationError(f"annotation {annotation!r} is not of the native language")


def intrinsic(module: ir.Module, name: str, result: ir.Type, *arguments: ir.Type) -> Any:
    """LLVM's function ``name``."""
    known = module.globals.get(name)
    return known or ir.Function(module, ir.FunctionType(result, arguments), name)
