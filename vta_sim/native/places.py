"""LLVM code for where values of native code are kept."""

import ast
from collections.abc import Mapping
from typing import Any

import llvmlite.ir as ir

from .errors import TranslationError
from .kinds import (
    BOOL,
    ELEMENTS,
    INT,
    POINTER,
    ArrayOf,
    LevelsOf,
    RecordOf,
    RowOf,
    Scalar,
    Value,
    kind_of,
)
from .words import Words

__all__ = ["Places", "Variables"]

Variables = dict[str, Value]
"""Values of arguments, and of locals the place where they are kept."""


class Places:
    """Emits loads and stores of one function at the end of the block of ``builder``.

    scope: the function's globals.
    """

    def __init__(
        self, builder: ir.IRBuilder, scope: Mapping[str, Any], words: Words | None
    ) -> None:
        self.b, self.scope, self._words = builder, scope, words
        self.arguments: Variables = {}
        self.locals: Variables = {}

    @property
    def words(self) -> Words:
        """Operations on lanes.

        Raises TranslationError when the code is translated without lanes.
        """
        if self._words is None:
            raise TranslationError("lanes are used; required a number of lanes to translate for")
        return self._words

    def refuse(self, node: ast.AST, why: str) -> TranslationError:
        return TranslationError(
            f"{self.scope['__name__']}, line {getattr(node, 'lineno', '?')} of the function: "
            f"{ast.unparse(node)!r}: {why}; see vta_sim/native/language.py"
        )

    def type_of(self, kind: object) -> Any:
        """The LLVM type of a kind."""
        match kind:
            case Scalar.INT:
                return INT
            case Scalar.BOOL:
                return BOOL
            case Scalar.LANES:
                return self.words.ints
            case Scalar.TILE:
                return self.words.tile
            case Scalar.NOTHING:
                return ir.VoidType()
        return POINTER

    def slot(self, node: ast.Attribute, base: Value) -> Value:
        """Place of an attribute of a record, or of a field of a row."""
        if isinstance(base.kind, RecordOf):
            cls = base.kind.cls
            if node.attr not in cls.__annotations__:
                raise self.refuse(node, f"{cls.__name__} has no {node.attr}")
            kind = kind_of(cls.__annotations__[node.attr])
            return Value(kind, self._step(base.ir, INT(cls.places[node.attr]), INT))
        assert isinstance(base.kind, RowOf)
        names = [field.name for field in base.kind.layout.fields]
        if node.attr in names:
            return Value(Scalar.INT, self._step(base.ir, INT(names.index(node.attr)), INT))
        levels = [
            place
            for place, name in enumerate(names)
            if name[:-1] == node.attr and name[-1].isdigit()
        ]
        if not levels:
            raise self.refuse(node, f"format {base.kind.layout.name} has no {node.attr}")
        return Value(LevelsOf(), self._step(base.ir, INT(levels[0]), INT))

    def _step(self, pointer: Any, index: Any, element: ir.Type) -> Any:
        return self.b.gep(pointer, [index], source_etype=element)

    def load(self, place: Value) -> Value:
        element = place.kind.element if isinstance(place.kind, ArrayOf) else "int64"
        value = self.b.load(place.ir, typ=ELEMENTS[element], align=1)
        if element == "uint8":
            return Value(Scalar.INT, self.b.zext(value, INT))
        return Value(Scalar.INT, value if element == "int64" else self.b.sext(value, INT))

    def store(self, place: Value, value: Value) -> None:
        element = place.kind.element if isinstance(place.kind, ArrayOf) else "int64"
        cut = value.ir if element == "int64" else self.b.trunc(value.ir, ELEMENTS[element])
        self.b.store(cut, place.ir, align=1)
