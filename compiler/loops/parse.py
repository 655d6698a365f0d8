"""Reads the text of loop programs; ``text`` has the grammar."""

from ..dtypes import DType
from ..errors import GraphError
from .expressions import Buffer, Scope, Variable
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
from .parse_expressions import BINARY, ExpressionParser
from .tokens import Line

__all__ = ["parse"]


def parse(text: str) -> Function:
    """The function that ``text`` describes.

    Raises GraphError, naming the line, for text that ``to_text`` does not write.
    """
    return _Parser(text).function()


class _Parser(ExpressionParser):
    def __init__(self, text: str) -> None:
        numbered = enumerate(text.splitlines(), 1)
        super().__init__([Line(number, line) for number, line in numbered if line.strip()])

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
