"""Expressions as text."""

from collections.abc import Callable
from dataclasses import dataclass, field

from ....errors import GraphError
from ....loops.expressions import (
    Binary,
    Bitcast,
    Buffer,
    Cast,
    Constant,
    Expr,
    Load,
    MultiplyAdd,
    Select,
    Unary,
    Variable,
)
from ....loops.traverse import expressions, fold, loads, operands
from .dialect import Dialect, Held

__all__ = ["Expressions"]


@dataclass(slots=True)
class Expressions:
    """Writes expressions; what is used twice becomes a constant of its own.

    line: takes lines of the statement at hand.  names: of variables and buffers in scope.
    held: where buffers are that are not in the device's memory.
    """

    dialect: Dialect
    line: Callable[[str], None]
    names: dict[str, str] = field(default_factory=dict)
    held: dict[str, Held] = field(default_factory=dict)
    count: int = 0

    def fresh(self, stem: str) -> str:
        """A name that the source has not had."""
        self.count += 1
        word = "".join(each if each.isascii() and each.isalnum() else "_" for each in stem)
        return f"{word.strip('_') or 'v'}_{self.count}"

    def texts(self, *roots: Expr) -> list[str]:
        """The expressions; lines with what they share come before."""
        shared = _shared(roots)
        memo: dict[int, tuple[Expr, str]] = {}

        def combine(node: Expr, below: tuple[str, ...]) -> str:
            text = self._node(node, below)
            if id(node) not in shared or isinstance(node, Constant | Variable):
                return text
            name = self.fresh("t")
            self.line(self.dialect.let(node.dtype, name, text))
            return name

        return [fold(root, combine, memo) for root in roots]

    def place(self, buffer: Buffer, indices: list[str]) -> tuple[Held, str, str]:
        """Where an element is: the kind of memory, the buffer's name, the element's number."""
        name = self.names.get(buffer.name)
        if name is None:
            raise GraphError(f"{buffer.name} is used, but is not in scope")
        held = self.held.get(buffer.name, Held.MEMORY)
        if held is Held.SCALAR:
            return held, name, ""
        place = "0"
        zero = self.number(0)
        for size, index in zip(buffer.shape, indices, strict=True):
            scaled = place if place == "0" or size == 1 else f"{place} * {self.number(size)}"
            if index != zero:
                place = index if scaled == "0" else f"({scaled} + {index})"
            else:
                place = scaled
        return held, name, place

    def number(self, value: int) -> str:
        """A literal index."""
        return self.dialect.constant(value, self.dialect.index)

    def _node(self, node: Expr, below: tuple[str, ...]) -> str:
        dialect = self.dialect
        match node:
            case Constant(value=value, dtype=dtype):
                return dialect.constant(value, dtype)
            case Variable(name=name):
                return self.names[name]
            case Load(buffer=buffer):
                return dialect.load(buffer.dtype, *self.place(buffer, list(below)))
            case Unary(function=function, operand=operand):
                return dialect.unary(function, operand.dtype, below[0])
            case Binary(function=function, left=left):
                index = left.dtype is dialect.index and not any(loads(node))
                return dialect.binary(function, left.dtype, below[0], below[1], index)
            case Select():
                return dialect.select(*below)
            case MultiplyAdd():
                return f"fma({', '.join(below)})"
            case Cast(dtype=dtype, operand=operand):
                return dialect.cast(operand.dtype, dtype, below[0])
            case Bitcast(dtype=dtype, operand=operand):
                return dialect.bitcast(operand.dtype, dtype, below[0])


def _shared(roots: tuple[Expr, ...]) -> set[int]:
    """Expressions that are used more than once, by identity, and may be computed before.

    A load that only one side of a selection reads may not.
    """
    uses: dict[int, int] = {}
    for root in roots:
        uses[id(root)] = uses.get(id(root), 0) + 1
    nodes: dict[int, Expr] = {}
    for root in roots:
        for node in expressions(root):
            if id(node) in nodes:
                continue
            nodes[id(node)] = node
            for each in operands(node):
                uses[id(each)] = uses.get(id(each), 0) + 1
    repeated = {key for key, node in nodes.items() if uses[key] > 1}
    if not repeated:
        return set()
    eager: set[int] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if id(node) in eager:
            continue
        eager.add(id(node))
        stack += (node.condition,) if isinstance(node, Select) else operands(node)
    return {key for key in repeated if key in eager or not any(loads(nodes[key]))}
