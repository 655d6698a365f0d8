"""Reads the text of loop programs; ``text`` has the grammar."""

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
    Scope,
    Select,
    Unary,
    UnaryFunction,
    Variable,
)
from .ir import (
    Allocate,
    Block,
    For,
    Function,
    If,
    Invoke,
    Let,
    LoopKind,
    Region,
    Stmt,
    Store,
    Update,
    While,
)
from .text import INFIX, RESERVED
from .tokens import Line

__all__ = ["parse"]

SIGNS = {sign: (function, rank) for function, (sign, rank) in INFIX.items()}
UNARY = {function.value: function for function in UnaryFunction}
BINARY = {function.value: function for function in BinaryFunction}


def parse(text: str) -> Function:
    """The function that ``text`` describes.

    Raises GraphError, naming the line, for text that ``to_text`` does not write.
    """
    return _Parser(text).function()


class _Parser:
    def __init__(self, text: str) -> None:
        numbered = enumerate(text.splitlines(), 1)
        self.lines = [Line(number, line) for number, line in numbered if line.strip()]
        self.at = 0
        self.buffers: dict[str, Buffer] = {}
        self.variables: dict[str, DType] = {}

    @property
    def line(self) -> Line:
        return self.lines[self.at]

    def function(self) -> Function:
        if not self.lines:
            raise GraphError("line 1: found nothing; required a function")
        self.line.require("function")
        name = self.line.name()
        self._finish_line()
        inputs, outputs = self._parameters("input"), self._parameters("output")
        body = self._body(self.lines[0].indent)
        if self.at < len(self.lines):
            raise self.line.error("is indented less than what it follows")
        return Function(name, inputs, outputs, body)

    def _finish_line(self) -> None:
        self.line.end()
        self.at += 1

    def _parameters(self, word: str) -> tuple[Buffer, ...]:
        found = []
        while self.at < len(self.lines) and self.line.accept(word):
            found.append(self._buffer())
            self._finish_line()
        return tuple(found)

    def _buffer(self) -> Buffer:
        line = self.line
        name = line.name()
        line.require(":")
        dtype = line.dtype()
        line.require("[")
        shape = []
        while not line.accept("]"):
            shape.append(line.integer())
            if line.peek() != "]":
                line.require(",")
        scope = Scope.GLOBAL
        if line.peek() in set(Scope):
            scope = Scope(line.take().text)
        buffer = Buffer(name, tuple(shape), dtype, scope)
        self.buffers[name] = buffer
        return buffer

    def _body(self, outside: int) -> Stmt:
        """The statements indented more than ``outside``."""
        statements = self._statements(outside)
        return statements[0] if len(statements) == 1 else Block(statements)

    def _statements(self, outside: int) -> tuple[Stmt, ...]:
        found: list[Stmt] = []
        if self.at < len(self.lines) and self.line.indent > outside:
            indent = self.line.indent
            while self.at < len(self.lines) and self.line.indent > outside:
                if self.line.indent != indent:
                    raise self.line.error(f"is indented by {self.line.indent}; required {indent}")
                found.append(self._statement())
        return tuple(found)

    def _statement(self) -> Stmt:
        line = self.line
        word = line.peek()
        match word:
            case "block":
                line.take()
                self._colon()
                return Block(self._statements(line.indent))
            case "for":
                return self._for()
            case "while":
                line.take()
                condition = self._expr()
                self._colon()
                return While(condition, self._body(line.indent))
            case "if":
                return self._if()
            case "alloc":
                line.take()
                outer = dict(self.buffers)
                buffer = self._buffer()
                self._colon()
                body = self._body(line.indent)
                self.buffers = outer
                return Allocate(buffer, body)
            case "let":
                return self._let()
            case "invoke":
                return self._invoke()
            case _:
                return self._write()

    def _colon(self) -> None:
        self.line.require(":")
        self._finish_line()

    def _for(self) -> For:
        line = self.line
        line.take()
        name = line.name()
        line.require("in")
        extent = self._expr()
        kind = LoopKind(line.take().text) if line.peek() in set(LoopKind) else LoopKind.SERIAL
        notes = self._notes()
        self._colon()
        return For(name, extent, kind, self._scoped(name, DType.INT64, line.indent), notes)

    def _notes(self) -> tuple[tuple[str, int | str], ...]:
        line = self.line
        found: list[tuple[str, int | str]] = []
        if line.accept("{"):
            while not line.accept("}"):
                name = line.name()
                line.require(":")
                text = line.peek().startswith('"')
                found.append((name, line.string() if text else line.integer()))
                if line.peek() != "}":
                    line.require(",")
        return tuple(found)

    def _let(self) -> Let:
        line = self.line
        line.take()
        name = line.name()
        line.require(":")
        dtype = line.dtype()
        line.require("=")
        value = self._expr()
        self._colon()
        return Let(Variable(name, dtype), value, self._scoped(name, dtype, line.indent))

    def _scoped(self, name: str, dtype: DType, outside: int) -> Stmt:
        outer = dict(self.variables)
        self.variables[name] = dtype
        body = self._body(outside)
        self.variables = outer
        return body

    def _if(self) -> If:
        line = self.line
        line.take()
        condition = self._expr()
        self._colon()
        then = self._body(line.indent)
        otherwise = None
        if self.at < len(self.lines) and self.line.indent == line.indent:
            follower = self.line
            if follower.accept("else"):
                self._colon()
                otherwise = self._body(line.indent)
        return If(condition, then, otherwise)

    def _invoke(self) -> Invoke:
        line = self.line
        line.take()
        name = line.name()
        line.require("(")
        regions = []
        while not line.accept(")"):
            regions.append(self._region())
            if line.peek() != ")":
                line.require(",")
        self._finish_line()
        return Invoke(name, tuple(regions))

    def _region(self) -> Region:
        line = self.line
        buffer = self._known(line.name())
        start, shape = [], []
        line.require("[")
        while not line.accept("]"):
            start.append(self._expr())
            line.require(":")
            shape.append(line.integer())
            if line.peek() != "]":
                line.require(",")
        return Region(buffer, tuple(start), tuple(shape))

    def _write(self) -> Stmt:
        line = self.line
        buffer = self._known(line.name())
        indices = self._indices()
        function = None
        if line.peek() in BINARY:
            function = BINARY[line.take().text]
        line.require("=")
        value = self._expr()
        try:
            stmt = (
                Store(buffer, indices, value)
                if function is None
                else Update(buffer, indices, function, value)
            )
        except GraphError as error:
            raise line.error(str(error)) from None
        self._finish_line()
        return stmt

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
            raise line.error(f"{text} is no {dtype}")
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
        raise line.error(f"no function {word!r} of {len(given)} operands")
