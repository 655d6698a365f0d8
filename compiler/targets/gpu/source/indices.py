"""Integers of 64 bits that 32 hold, for languages without the others.

    for i in 64: out[i] = cast(float32, i * 3 + cast(int64, x[i]))      all int64
    ->   i, 3 and their product are int32, and so is the sum, if x is int8

An expression becomes int32 where the range of its value, from the extents of loops and the types of
what is cast, shows that nothing wraps.  Elements of int64 stay what they are, and so does what is
computed of them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

from ....dtypes import DType
from ....loops.expressions import (
    COMPARISONS,
    Binary,
    Cast,
    Constant,
    Expr,
    Load,
    Select,
    Unary,
    Variable,
)
from ....loops.expressions import BinaryFunction as B
from ....loops.expressions import UnaryFunction as U
from ....loops.ir import For, Let, Stmt, Store, Update
from ....loops.rewrite import rebuilt, with_operands
from ....loops.traverse import fold

__all__ = ["with_short_indices"]

I32, I64 = DType.INT32, DType.INT64
LOWEST, HIGHEST = -(1 << 31), (1 << 31) - 1
MOST_ITERATIONS = HIGHEST
SHORT = (DType.BOOL, DType.INT8, DType.INT16, DType.INT32, DType.UINT8, DType.UINT16)


class _Range(NamedTuple):
    low: int
    high: int

    @property
    def fits(self) -> bool:
        """True if every value of the range fits in int32."""
        return self.low >= LOWEST and self.high <= HIGHEST


class _Found(NamedTuple):
    """An expression; of what was int64 and is int32, the range of its value."""

    expr: Expr
    range: _Range | None = None


def with_short_indices(stmt: Stmt) -> Stmt:
    """The statement with int32 loop variables and indices, and all else as above."""
    return _Shortener({}).statement(stmt)


class _Shortener:
    def __init__(self, ranges: dict[str, _Range]) -> None:
        self.ranges = ranges
        """Ranges of the names in scope that are int32 now."""

    def statement(self, stmt: Stmt) -> Stmt:
        """Its expressions, and those of its bodies."""
        match stmt:
            case For(variable=name, extent=extent, body=body):
                found = self.found(extent)
                most = found.range.high if found.range else MOST_ITERATIONS
                with self._named(name, _Range(0, max(most - 1, 0))):
                    return replace(stmt, extent=_short(found), body=self.statement(body))
            case Let(variable=variable, value=value, body=body):
                found = self.found(value)
                with self._named(variable.name, found.range):
                    kept = replace(variable, dtype=found.expr.dtype)
                    return Let(kept, found.expr, self.statement(body))
            case Store(indices=indices, value=value) | Update(indices=indices, value=value):
                places = tuple(_short(self.found(each)) for each in indices)
                return replace(stmt, indices=places, value=_wide(self.found(value)))
            case _:
                return rebuilt(stmt, lambda expr: self.found(expr).expr, self.statement)

    @contextmanager
    def _named(self, name: str, range_: _Range | None) -> Iterator[None]:
        before = dict(self.ranges)
        self.ranges.pop(name, None)
        if range_ is not None:
            self.ranges[name] = range_
        yield
        self.ranges = before

    def found(self, expr: Expr) -> _Found:
        """The expression with what can be short."""
        return fold(expr, self._node)

    def _node(self, node: Expr, below: tuple[_Found, ...]) -> _Found:
        match node:
            case Constant(value=value, dtype=DType.INT64) if LOWEST <= int(value) <= HIGHEST:
                return _Found(Constant(int(value), I32), _Range(int(value), int(value)))
            case Variable(name=name, dtype=DType.INT64) if name in self.ranges:
                return _Found(Variable(name, I32), self.ranges[name])
            case Load(buffer=buffer):
                return _Found(Load(buffer, tuple(map(_short, below))))
            case Cast(dtype=DType.INT64, operand=operand) if operand.dtype in SHORT:
                return _Found(_cast(I32, below[0].expr), _values(operand.dtype))
            case Cast(dtype=DType.INT64) if below[0].range is not None:
                return below[0]
            case Cast(dtype=dtype):
                return _Found(_cast(dtype, below[0].expr))
            case Select(dtype=DType.INT64):
                _, chosen, other = below
                if chosen.range and other.range:
                    both = _Range(*_hull((*chosen.range, *other.range)))
                    return _Found(with_operands(node, tuple(each.expr for each in below)), both)
            case Unary(function=U.NEG | U.ABS, dtype=DType.INT64) if below[0].range:
                low, high = below[0].range
                ends = (-high, -low) if node.function is U.NEG else (0, max(-low, high))
                if _Range(*ends).fits:
                    return _Found(Unary(node.function, below[0].expr), _Range(*ends))
            case Binary(function=function, left=left) if left.dtype is I64:
                a, b = below
                if a.range and b.range:
                    if function in COMPARISONS:
                        return _Found(Binary(function, a.expr, b.expr))
                    range_ = _combined(function, a.range, b.range)
                    if range_ is not None and range_.fits:
                        return _Found(Binary(function, a.expr, b.expr), range_)
        return _Found(with_operands(node, tuple(map(_wide, below))))


def _short(found: _Found) -> Expr:
    """As int32: an index, or a number of iterations."""
    return found.expr if found.range or found.expr.dtype is I32 else _cast(I32, found.expr)


def _wide(found: _Found) -> Expr:
    """As what it was."""
    return found.expr if found.range is None else _cast(I64, found.expr)


def _cast(dtype: DType, expr: Expr) -> Expr:
    if isinstance(expr, Constant) and expr.dtype is I32 and dtype is I64:
        return Constant(expr.value, I64)
    return expr if expr.dtype is dtype else Cast(dtype, expr)


def _values(dtype: DType) -> _Range:
    if dtype is DType.BOOL:
        return _Range(0, 1)
    half = 1 << 8 * dtype.bytes - 1
    return _Range(-half, half - 1) if dtype.is_signed else _Range(0, 2 * half - 1)


def _hull(values: tuple[int, ...]) -> tuple[int, int]:
    return min(values), max(values)


def _combined(function: B, a: _Range, b: _Range) -> _Range | None:
    """The range of a function's results for values in two ranges; None if it is not known."""
    match function:
        case B.ADD:
            return _Range(a.low + b.low, a.high + b.high)
        case B.SUB:
            return _Range(a.low - b.high, a.high - b.low)
        case B.MUL:
            return _Range(*_hull(tuple(x * y for x in a for y in b)))
        case B.MIN:
            return _Range(min(a.low, b.low), min(a.high, b.high))
        case B.MAX:
            return _Range(max(a.low, b.low), max(a.high, b.high))
        case B.DIV | B.FLOORDIV | B.REM | B.MOD if a.low > LOWEST:
            size = max(abs(a.low), abs(a.high), abs(b.low), abs(b.high))
            return _Range(0 if a.low >= 0 and b.low >= 0 else -size, size)
        case B.AND | B.OR | B.XOR:
            return _Range(LOWEST, HIGHEST)
        case _:
            return None
