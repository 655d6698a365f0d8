"""Reads the text of programs; ``text`` shows its form."""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from numpy.typing import NDArray

from ..errors import GraphError
from ..graph.text import digest
from ..loops.expressions import Buffer
from ..loops.ir import Function
from ..loops.parse import parse as parse_function
from ..loops.tokens import Line
from .ir import Call, Item, Loop, Operand, Origin, Place, Program, Stride
from .text import ROLES

__all__ = ["parse"]


def parse(text: str, constants: Mapping[str, NDArray[Any]] | None = None) -> Program:
    """The program that ``text`` describes.

    constants: the arrays of its constants; the text has their digests.
    Raises GraphError, naming the line, for text that ``to_text`` does not write, and for a constant
    that is missing or another one.
    """
    rows = text.splitlines()
    starts = [n for n, row in enumerate(rows) if row.startswith("function ")] + [len(rows)]
    functions = tuple(_function(rows[start:end], start) for start, end in pairwise(starts))
    numbered = enumerate(rows[: starts[0]], 1)
    lines = [Line(number, row) for number, row in numbered if row.strip()]
    return _Parser(lines, constants or {}).program(functions)


def _function(rows: list[str], before: int) -> Function:
    """Empty lines stand for what is above, so that errors name the right line."""
    return parse_function("\n" * before + "\n".join(rows))


class _Parser:
    """Consumes lines from the first one on."""

    def __init__(self, lines: list[Line], constants: Mapping[str, NDArray[Any]]) -> None:
        self.lines = lines
        self.given = constants

    def program(self, functions: tuple[Function, ...]) -> Program:
        """All that is there."""
        memory = self._number("memory")
        most_work = self._number("most_work")
        inputs, outputs = self._buffers("input"), self._buffers("output")
        constants = dict(self._constants())
        calls = self._items(0)
        if self.lines:
            raise self.lines[0].error("is indented; required a call or a loop")
        return Program(functions, calls, inputs, outputs, constants, memory, most_work)

    def _starts_with(self, word: str) -> bool:
        return bool(self.lines) and self.lines[0].peek() == word

    def _line(self, word: str) -> Line:
        """The next line, which must begin with ``word``; it counts as read."""
        if not self.lines:
            raise GraphError(f"the program ends too early; required {word}")
        line = self.lines.pop(0)
        line.require(word)
        return line

    def _number(self, word: str) -> int:
        line = self._line(word)
        number = line.integer()
        line.end()
        return number

    def _buffers(self, word: str) -> tuple[Buffer, ...]:
        found = []
        while self._starts_with(word):
            line = self._line(word)
            found.append(_buffer(line))
            line.end()
        return tuple(found)

    def _constants(self) -> Iterator[tuple[str, NDArray[Any]]]:
        while self._starts_with("constant"):
            line = self._line("constant")
            buffer = _buffer(line)
            line.require("sha256")
            wanted = line.string()
            line.end()
            array = self.given.get(buffer.name)
            if array is None:
                raise line.error(f"no array is given for the constant {buffer.name}")
            same = array.shape == buffer.shape and array.dtype == buffer.dtype.numpy
            if not same or digest(array) != wanted:
                raise line.error(f"the array given for {buffer.name} is another one")
            yield buffer.name, array

    def _items(self, indent: int) -> tuple[Item, ...]:
        found: list[Item] = []
        while self.lines and self.lines[0].indent == indent and not self._starts_with("last"):
            found.append(self._loop(indent) if self._starts_with("loop") else self._call())
        return tuple(found)

    def _call(self) -> Call:
        line = self._line("call")
        function = line.name()
        line.require("(")
        arguments, origins = [], []
        while not line.accept(")"):
            arguments.append(_operand(line))
            if line.peek() != ")":
                line.require(",")
        if line.accept("from"):
            origins.append(line.string())
            while line.accept(","):
                origins.append(line.string())
        line.end()
        return Call(function, tuple(arguments), tuple(origins))

    def _loop(self, indent: int) -> Loop:
        line = self._line("loop")
        count = line.integer()
        line.require("work")
        work = line.integer()
        threads = line.integer() if line.accept("threads") else 1
        private = private_bytes = 0
        if line.accept("private"):
            private = line.integer()
            line.require("+")
            private_bytes = line.integer()
        line.require("from")
        origin = line.string()
        line.require(":")
        line.end()
        inner = self.lines[0].indent if self.lines else indent
        if inner <= indent:
            raise line.error("a loop without calls")
        roles: dict[str, Operand] = {}
        while self.lines and self.lines[0].peek() in ROLES:
            first = self.lines.pop(0)
            role = first.take().text
            roles[role] = _operand(first)
            first.end()
        carried = []
        while self._starts_with("carry"):
            first = self._line("carry")
            new = first.name()
            first.require("to")
            carried.append((new, first.name()))
            first.end()
        calls = self._items(inner)
        last: list[Call] = []
        if self.lines and self.lines[0].indent == inner and self._starts_with("last"):
            first = self._line("last")
            first.require(":")
            first.end()
            while self.lines and self.lines[0].indent > inner:
                last.append(self._call())
        return Loop(
            count, calls, tuple(last), work=work, origin=origin, threads=threads,
            private=private, private_bytes=private_bytes, carried=tuple(carried), **roles,
        )  # fmt: skip


def _buffer(line: Line) -> Buffer:
    name = line.name()
    line.require(":")
    dtype, shape = line.dtype(), []
    line.require("[")
    while not line.accept("]"):
        shape.append(line.integer())
        if line.peek() != "]":
            line.require(",")
    return Buffer(name, tuple(shape), dtype)


def _operand(line: Line) -> Operand:
    tensor = line.name()
    line.require(":")
    word = line.take().text
    if word not in set(Origin):
        raise line.error(f"found {word!r}; required one of {', '.join(Origin)}")
    origin = Origin(word)
    number = 0 if origin in (Origin.MEMORY, Origin.PRIVATE) else line.integer()
    offset, strides = 0, []
    while line.accept("+"):
        amount = line.integer()
        if not line.accept("*"):
            offset += amount
            continue
        index = line.name()
        if not index.startswith("i") or not index[1:].isdigit():
            raise line.error(f"found {index!r}; required the iteration of a loop, as i0")
        odd = line.accept("%")
        if odd:
            line.require("2")
        strides.append(Stride(int(index[1:]), amount, odd))
    return Operand(tensor, Place(origin, number, offset, tuple(strides)))
