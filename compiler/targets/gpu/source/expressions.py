"""Expressions as text."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from ....dtypes import DType
from ....errors import GraphError
from ....loops.expressions import (
    COMPARISONS,
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
from ....loops.expressions import BinaryFunction as B
from ....loops.expressions import UnaryFunction as U
from ....loops.traverse import expressions, fold, loads, operands
from .arithmetic import Helpers
from .dialect import Dialect

__all__ = ["Expressions"]

SIGNS: Mapping[B, str] = {
    B.ADD: "+",
    B.SUB: "-",
    B.MUL: "*",
    B.DIV: "/",
    B.AND: "&",
    B.OR: "|",
    B.XOR: "^",
    B.LT: "<",
    B.LE: "<=",
    B.EQ: "==",
    B.NE: "!=",
}
OF_BOOL: Mapping[B, str] = {B.ADD: "^", B.SUB: "^", B.MUL: "&", B.MIN: "&", B.MAX: "|"}
"""bool is an integer of one bit."""
FUNCTIONS: Mapping[B, str] = {B.REM: "fmod", B.POW: "pow"}
NARROW_FLOATS = (DType.FLOAT16, DType.BFLOAT16)
WRAPPING = (B.ADD, B.SUB, B.MUL)


@dataclass(slots=True)
class Expressions:
    """Writes expressions; what is used twice becomes a constant of its own.

    line: takes lines of the statement at hand.  names: of variables and buffers in scope.
    scalars: buffers that are one variable.
    """

    dialect: Dialect
    helpers: Helpers
    line: Callable[[str], None]
    names: dict[str, str] = field(default_factory=dict)
    scalars: set[str] = field(default_factory=set)
    count: int = 0

    def fresh(self, stem: str) -> str:
        """A name that the source has not had."""
        self.count += 1
        word = "".join(each if each.isascii() and each.isalnum() else "_" for each in stem)
        return f"{word}_{self.count}"

    def texts(self, *roots: Expr) -> list[str]:
        """The expressions; lines with what they share come before."""
        shared = _shared(roots)
        memo: dict[int, tuple[Expr, str]] = {}

        def combine(node: Expr, below: tuple[str, ...]) -> str:
            text = self._node(node, below)
            if id(node) not in shared or isinstance(node, Constant | Variable):
                return text
            name = self.fresh("t")
            self.line(f"const {self.dialect.type(node.dtype)} {name} = {text};")
            return name

        return [fold(root, combine, memo) for root in roots]

    def element(self, buffer: Buffer, indices: list[str]) -> str:
        """An element where it is stored."""
        name = self.names.get(buffer.name)
        if name is None:
            raise GraphError(f"{buffer.name} is used, but is not in scope")
        if buffer.name in self.scalars:
            return name
        place = "0"
        for size, index in zip(buffer.shape, indices, strict=True):
            scaled = place if place == "0" or size == 1 else f"{place} * {size}L"
            if index != "0L":
                place = index if scaled == "0" else f"({scaled} + {index})"
            else:
                place = scaled
        return f"{name}[{place}]"

    def loaded(self, dtype: DType, element: str) -> str:
        """The value of a stored element."""
        if dtype in NARROW_FLOATS:
            return f"{self.helpers.narrow(f'from_{dtype.value}')}({element})"
        return f"({element} != 0)" if dtype is DType.BOOL else element

    def stored(self, dtype: DType, value: str) -> str:
        """What is stored of a value."""
        if dtype in NARROW_FLOATS:
            return f"{self.helpers.narrow(f'to_{dtype.value}')}({value})"
        return value

    def _node(self, node: Expr, below: tuple[str, ...]) -> str:
        match node:
            case Constant(value=value, dtype=dtype):
                return self.constant(value, dtype)
            case Variable(name=name):
                return self.names[name]
            case Load(buffer=buffer):
                return self.loaded(buffer.dtype, self.element(buffer, list(below)))
            case Unary(function=function, operand=operand):
                return self.unary(function, operand.dtype, below[0])
            case Binary(function=function, left=left):
                index = left.dtype is DType.INT64 and not any(loads(node))
                return self.binary(function, left.dtype, below[0], below[1], index)
            case Select():
                return f"({below[0]} ? {below[1]} : {below[2]})"
            case MultiplyAdd():
                return f"fma({', '.join(below)})"
            case Cast(dtype=dtype, operand=operand):
                return self.cast(operand.dtype, dtype, below[0])
            case Bitcast(dtype=dtype, operand=operand):
                bits = self.stored(operand.dtype, below[0])
                kind = self.dialect.element(dtype)
                return self.loaded(dtype, f"as_{kind}({bits})")

    def constant(self, value: float | bool, dtype: DType) -> str:
        """A literal."""
        kind = self.dialect.type(dtype)
        if dtype is DType.BOOL:
            return "true" if value else "false"
        if dtype.is_float:
            exact = float(np.asarray(value, dtype.numpy))
            if math.isnan(exact):
                return f"(({kind})NAN)"
            if math.isinf(exact):
                return f"(({kind}){'-' if exact < 0 else ''}INFINITY)"
            text = exact.hex() + ("" if dtype is DType.FLOAT64 else "f")
            return f"({text})" if text.startswith("-") else text
        bits = 8 * dtype.bytes
        whole = int(value) & (1 << bits) - 1
        if dtype is DType.INT64 and 0 <= int(value) < 1 << 63:
            return f"{int(value)}L"
        return f"(({kind}){whole}{'UL' if bits == 64 else 'U'})"

    def unary(self, function: U, dtype: DType, a: str) -> str:
        """``function(a)``; of integers, the functions of analysis are computed in float64."""
        if dtype.is_float:
            if function in (U.ISNAN, U.ISINF):
                return f"({function.value}({a}) != 0)"
            if function is U.NEG:
                return f"(-{a})"
            name = "fabs" if function is U.ABS else function.value
            return self._rounded(dtype, f"{name}({a})")
        kind = self.dialect.type(dtype)
        match function:
            case U.NOT:
                return f"(!{a})" if dtype is DType.BOOL else f"(({kind})~{a})"
            case U.NEG:
                return self.binary(B.SUB, dtype, self.constant(0, dtype), a)
            case U.ABS if dtype.is_signed:
                return f"({a} < 0 ? {self.binary(B.SUB, dtype, self.constant(0, dtype), a)} : {a})"
            case U.ABS | U.FLOOR | U.CEIL | U.TRUNC | U.RINT:
                return a
            case U.ISNAN | U.ISINF:
                return "false"
            case _:
                wide = f"{function.value}({self.cast(dtype, DType.FLOAT64, a)})"
                return self.cast(DType.FLOAT64, dtype, wide)

    def binary(self, function: B, dtype: DType, a: str, b: str, index: bool = False) -> str:
        """``function(a, b)``; index: it is known not to wrap."""
        if function in COMPARISONS:
            return f"({a} {SIGNS[function]} {b})"
        if dtype is DType.BOOL:
            sign = OF_BOOL.get(function) or SIGNS.get(function)
            if sign is not None and function is not B.DIV:
                return f"((bool)({a} {sign} {b}))"
            wide = self.binary(function, DType.UINT8, f"(uchar){a}", f"(uchar){b}")
            return f"(({wide} & 1) != 0)"
        if dtype.is_float:
            if function in SIGNS:
                return self._rounded(dtype, f"({a} {SIGNS[function]} {b})")
            wide_type = DType.FLOAT32 if dtype in NARROW_FLOATS else dtype
            name = FUNCTIONS.get(function) or self.helpers.binary(function.value, wide_type)
            return self._rounded(dtype, f"{name}({a}, {b})")
        kind = self.dialect.type(dtype)
        if function in (B.AND, B.OR, B.XOR):
            return f"(({kind})({a} {SIGNS[function]} {b}))"
        if function in WRAPPING and index:
            return f"({a} {SIGNS[function]} {b})"
        if function in WRAPPING:
            unsigned = self.dialect.type(DType("u" + dtype.value.removeprefix("u")))
            if dtype.bytes < 4:
                unsigned = self.dialect.type(DType.UINT32)
            return f"(({kind})(({unsigned}){a} {SIGNS[function]} ({unsigned}){b}))"
        return f"{self.helpers.binary(function.value, dtype)}({a}, {b})"

    def cast(self, source: DType, target: DType, a: str) -> str:
        """A conversion."""
        if source is target:
            return a
        kind = self.dialect.type(target)
        if target is DType.BOOL:
            return f"({a} != 0)"
        if target in NARROW_FLOATS:
            if source is DType.FLOAT64 and target is DType.FLOAT16:
                return self._rounded(target, f"{self.helpers.narrow('to_odd')}({a})")
            return self._rounded(target, f"((float){a})")
        if target.is_float or not source.is_float:
            return f"(({kind}){a})"
        wide = target if target in (DType.INT64, DType.UINT64) else DType.INT32
        if target is DType.UINT32:
            wide = DType.INT64
        real = DType.FLOAT32 if source in NARROW_FLOATS else source
        return f"(({kind}){self.helpers.to_integer(real, wide)}({a}))"

    def _rounded(self, dtype: DType, text: str) -> str:
        """A result of float32 as one of ``dtype``, where that is narrower."""
        return self.loaded(dtype, self.stored(dtype, text)) if dtype in NARROW_FLOATS else text


def _shared(roots: tuple[Expr, ...]) -> set[int]:
    """What is used more than once, by identity, and may be computed before the expression.

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
