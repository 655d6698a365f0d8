"""Kernels from text: reads what ``text`` prints."""

import json
import re
from dataclasses import dataclass

from ..errors import GraphError
from .ir import (
    Affine,
    Buffer,
    Fold,
    Kernel,
    Loop,
    LoopKind,
    Product,
    Ref,
    Requantized,
    Scaled,
    Scope,
    Stage,
    Total,
    Value,
)

__all__ = ["parse_text"]

TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|-?\d+|[A-Za-z_][\w.]*|[\[\](),:=+*])')


def parse_text(text: str) -> Kernel:
    """The kernel that ``to_text`` printed.

    Raises GraphError, naming the line, for text of another form.
    """
    parser = _Parser()
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            parser.line(line)
        except (ValueError, GraphError) as error:
            raise GraphError(f"line {number}: {error}: {line.strip()!r}") from None
    if parser.open is not None:
        raise GraphError(f"stage {parser.open.name!r} ends without an assignment")
    if parser.name is None:
        raise GraphError("found no line; required kernel first")
    return Kernel(parser.name, tuple(parser.stages), parser.macs)


@dataclass(slots=True)
class _Open:
    """A stage whose assignment has not come yet."""

    name: str
    loops: tuple[Loop, ...] = ()
    reduction: frozenset[str] = frozenset()


class _Parser:
    """Reads line by line; ``tokens`` is what remains of the current one, from the end."""

    def __init__(self) -> None:
        self.name: str | None = None
        self.macs = 0
        self.buffers: dict[str, Buffer] = {}
        self.stages: list[Stage] = []
        self.open: _Open | None = None
        self.tokens: list[str] = []

    def line(self, line: str) -> None:
        """Read one line."""
        self.tokens = _tokens(line)
        first = self._next()
        if self.name is None and first != "kernel":
            raise GraphError(f"found {first!r}, required kernel first")
        match first:
            case "kernel" if self.name is None:
                self.name = self._string()
                self._take("macs")
                self.macs = self._integer()
            case "buffer":
                self._buffer()
            case "stage" if self.open is None:
                self.open = _Open(self._string())
            case "for":
                self._loop()
            case name if name.startswith('"'):
                self.tokens.append(name)
                self._assignment()
            case _:
                raise GraphError(f"found {first!r}, required buffer, stage, for or an assignment")
        if self.tokens:
            raise GraphError(f"unexpected {self.tokens[-1]!r} at the end")

    def _next(self) -> str:
        if not self.tokens:
            raise GraphError("the line ends too early")
        return self.tokens.pop()

    def _take(self, *wanted: str) -> str:
        found = self._next()
        if found not in wanted:
            raise GraphError(f"found {found!r}, required {' or '.join(map(repr, wanted))}")
        return found

    def _skip(self, token: str) -> bool:
        """Take ``token`` if it is next."""
        if not self.tokens or self.tokens[-1] != token:
            return False
        self.tokens.pop()
        return True

    def _string(self) -> str:
        found = self._next()
        if not found.startswith('"'):
            raise GraphError(f"found {found!r}, required a name in quotes")
        return str(json.loads(found))

    def _integer(self) -> int:
        return int(self._next())

    def _named(self) -> Buffer:
        name = self._string()
        if name not in self.buffers:
            raise GraphError(f"{name!r} is no buffer")
        return self.buffers[name]

    def _buffer(self) -> None:
        name = self._string()
        if name in self.buffers:
            raise GraphError(f"buffer {name!r} is declared a second time")
        self._take(":")
        dtype = self._next()
        self._take("[")
        shape = []
        while not self._skip("]"):
            shape.append(self._integer())
            if self.tokens[-1:] != ["]"]:
                self._take(",")
        self._take("in")
        self.buffers[name] = Buffer(name, tuple(shape), dtype, Scope(self._next()))

    def _stage(self) -> _Open:
        if self.open is None:
            raise GraphError("no stage is open")
        return self.open

    def _loop(self) -> None:
        stage = self._stage()
        name = self._next()
        self._take("in")
        extent = self._integer()
        stage.loops = (*stage.loops, Loop(name, extent, LoopKind(self._next())))
        if self._skip("reduces"):
            stage.reduction |= {name}

    def _assignment(self) -> None:
        stage = self._stage()
        target = self._ref()
        self._take("=")
        table = None
        if self._skip("lookup"):
            table = self._named()
            self._take("of")
        finish = self._finish() if self._skip("requantize") else None
        fold = Fold.NONE
        for each in (Fold.SUM, Fold.MAX):
            if self._skip(each.value):
                fold = each
        if fold is not Fold.NONE:
            self._take("(")
        value = self._value()
        if fold is not Fold.NONE:
            self._take(")")
        self.stages.append(
            Stage(stage.name, stage.loops, stage.reduction, target, fold, value, finish, table)
        )
        self.open = None

    def _finish(self) -> Requantized:
        self._take("(")
        bias = self._ref()
        self._take(",")
        scale = self._ref()
        numbers = []
        for _ in range(3):
            self._take(",")
            numbers.append(self._integer())
        self._take(")")
        self._take("of")
        return Requantized(bias, scale, *numbers)

    def _value(self) -> Value:
        left = self._ref()
        if not self._skip("*"):
            return left
        if self.tokens and self.tokens[-1].startswith('"'):
            return Product(left, self._ref())
        if self._skip("("):
            right = self._ref()
            self._take("+")
            product = Product(left, right, self._integer())
            self._take(")")
            return product
        first = Scaled(left, self._integer())
        if not self._skip("+"):
            return first
        second = self._ref()
        self._take("*")
        return Total(first, Scaled(second, self._integer()))

    def _ref(self) -> Ref:
        buffer = self._named()
        self._take("[")
        indices = []
        while not self._skip("]"):
            indices.append(self._affine())
            if self.tokens[-1:] != ["]"]:
                self._take(",")
        if len(indices) != len(buffer.shape):
            raise GraphError(
                f"{len(indices)} indices of {buffer.name!r}; required {len(buffer.shape)}"
            )
        return Ref(buffer, tuple(indices))

    def _affine(self) -> Affine:
        total = Affine()
        while True:
            first = self._next()
            if first.lstrip("-").isdigit():
                factor = int(first)
                named = self._skip("*")
                total = total + (Affine.make(0, {self._next(): factor}) if named else factor)
            else:
                total = total + Affine.make(0, {first: 1})
            if not self._skip("+"):
                return total


def _tokens(line: str) -> list[str]:
    """The tokens of a line, the last first."""
    found, place, line = [], 0, line.rstrip()
    while place < len(line):
        match = TOKEN.match(line, place)
        if match is None:
            raise GraphError(f"no token begins with {line[place:].strip()[:10]!r}")
        found.append(match[1])
        place = match.end()
    return found[::-1]
