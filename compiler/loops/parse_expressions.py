"""Reads expressions of the text of loop programs; ``text`` has the grammar."""

import math

from ..dtypes import DType
from ..errors import GraphError
from .expressions import (
    Binary,
    BinaryFunction,
    Bitcast,
    Buffer,
    Cast,
    Constant,
    Expr,
    Load,
    MultiplyAdd,
    Select,
    Unary,
    UnaryFunction,
    Variable,
)
from .text import INFIX, RESERVED
from .tokens import Line

__all__ = ["BINARY", "ExpressionParser"]

SIGNS = {sign: (function, rank) for function, (sign, rank) in INFIX.items()}
UNARY = {function.value: function for function in UnaryFunction}
BINARY = {function.value: function for function in BinaryFunction}


class ExpressionParser:
    """Reads expressions of a line, with the buffers and variables that are known there."""

    def __init__(self, lines: list[Line]) -> None:
        self.lines = lines
        self.at = 0
        self.buffers: dict[str, Buffer] = {}
        self.variables: dict[str, DType] = {}

    @property
    def line(self) -> Line:
        """The one that is read."""
        return self.lines[self.at]

    def _known(self, name: str) -> Buffer:
        if name not in self.buffers:
            raise self.line.error(f"no buffer {name!r} here")
        return self.buffers[name]

    def _indices(self) -> tuple[Expr, ...]:
        self.line.require("[")
        return self._list("]")

    def _list(self, close: str) -> tuple[Expr, ...]:
        found: list[Expr] = []
        while not self.line.accept(close):
            found.append(self._expr())
            if self.line.peek() != close:
                self.line.require(",")
        return tuple(found)

    def _expr(self, least: int = 1) -> Expr:
        line = self.line
        left = self._atom()
        while line.peek() in SIGNS:
            function, rank = SIGNS[line.peek()]
            if rank < least:
                break
            line.take()
            right = self._expr(rank + 1)
            left = self._made(Binary, function, left, right)
            if rank == 1:
                break
        return left

    def _made(self, kind: type, *fields: object) -> Expr:
        try:
            made: Expr = kind(*fields)
        except GraphError as error:
            raise self.line.error(str(error)) from None
        return made

    def _atom(self) -> Expr:
        line = self.line
        if line.accept("("):
            inner = self._expr()
            line.require(")")
            return inner
        kind = line.tokens[line.position].kind if line.peek() else ""
        word = line.peek()
        if kind == "number":
            return self._number()
        if word in ("true", "false"):
            line.take()
            return Constant(word == "true", DType.BOOL)
        if kind == "name" and word in RESERVED:
            return self._call()
        name = line.name()
        if line.peek() == "[":
            return self._made(Load, self._known(name), self._indices())
        if name not in self.variables:
            raise line.error(f"no variable {name!r} here")
        return Variable(name, self.variables[name])

    def _number(self) -> Constant:
        line = self.line
        text = line.take().text
        # A region's start is followed by a colon too, but then by a size.
        after = line.tokens[line.position + 1 : line.position + 2]
        dtype = DType.INT64
        if line.peek() == ":" and after and after[0].text in set(DType):
            line.take()
            dtype = line.dtype()
        if dtype.is_float:
            return Constant(math.nan if text == "nan" else float(text), dtype)
        if not text.lstrip("-").isdigit():
            raise line.error(f"{text} is not a value of {dtype}")
        return Constant(int(text), dtype)

    def _call(self) -> Expr:
        line = self.line
        word = line.take().text
        line.require("(")
        if word in ("cast", "bitcast"):
            dtype = line.dtype()
            line.require(",")
            operand = self._expr()
            line.require(")")
            return Cast(dtype, operand) if word == "cast" else Bitcast(dtype, operand)
        given = self._list(")")
        for table, kind, count in ((UNARY, Unary, 1), (BINARY, Binary, 2)):
            if word in table and len(given) == count:
                return self._made(kind, table[word], *given)
        if word == "select" and len(given) == 3:
            return self._made(Select, *given)
        if word == "fma" and len(given) == 3:
            return self._made(MultiplyAdd, *given)
        raise line.error(f"no function {word!r} of {len(given)} operands")
