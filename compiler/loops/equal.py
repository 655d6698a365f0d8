"""Structural equality, up to the names of what a program binds itself: loops, lets, allocations."""

import math
from collections.abc import Mapping
from typing import Any

from .expressions import Buffer, Constant, Expr, Load, Variable
from .ir import Allocate, Block, For, Function, If, Invoke, Let, Stmt, Store, Update, While
from .traverse import fold

__all__ = ["equal", "equal_statements"]

Names = Mapping[str, int]
"""A number for each name that the program binds."""


def equal(first: Function, second: Function) -> bool:
    """True if both are one program; their own names do not count, those of parameters do."""
    if (first.inputs, first.outputs) != (second.inputs, second.outputs):
        return False
    return equal_statements(first.body, second.body)


def equal_statements(first: Stmt, second: Stmt) -> bool:
    """True if both are one statement; free variables and buffers must have the same names."""
    table = _Table()
    return table.statement(first, {}, {}) == table.statement(second, {}, {})


class _Table:
    """Gives equal trees equal numbers; shared parts are seen once."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[Any, ...], int] = {}

    def number(self, *key: Any) -> int:
        return self.numbers.setdefault(key, len(self.numbers))

    def statement(self, stmt: Stmt, names: Names, buffers: Names) -> int:
        match stmt:
            case Block(statements=statements):
                parts = (self.statement(each, names, buffers) for each in statements)
                return self.number("block", *parts)
            case For(variable=variable, extent=extent, kind=kind, body=body):
                inner = {**names, variable: len(names)}
                return self.number(
                    "for",
                    kind,
                    stmt.annotations,
                    self.expr(extent, names, buffers),
                    self.statement(body, inner, buffers),
                )
            case While(condition=condition, body=body):
                return self.number(
                    "while",
                    self.expr(condition, names, buffers),
                    self.statement(body, names, buffers),
                )
            case If(condition=condition, then=then, otherwise=otherwise):
                return self.number(
                    "if",
                    self.expr(condition, names, buffers),
                    self.statement(then, names, buffers),
                    None if otherwise is None else self.statement(otherwise, names, buffers),
                )
            case Allocate(buffer=buffer, body=body):
                inner = {**buffers, buffer.name: len(buffers)}
                return self.number(
                    "allocate",
                    buffer.shape,
                    buffer.dtype,
                    buffer.scope,
                    self.statement(body, names, inner),
                )
            case Let(variable=variable, value=value, body=body):
                inner = {**names, variable.name: len(names)}
                return self.number(
                    "let",
                    variable.dtype,
                    self.expr(value, names, buffers),
                    self.statement(body, inner, buffers),
                )
            case Store(buffer=buffer, indices=indices, value=value):
                parts = (self.expr(each, names, buffers) for each in (*indices, value))
                return self.number("store", self.buffer(buffer, buffers), *parts)
            case Update(buffer=buffer, indices=indices, function=function, value=value):
                parts = (self.expr(each, names, buffers) for each in (*indices, value))
                return self.number("update", function, self.buffer(buffer, buffers), *parts)
            case Invoke(intrinsic=intrinsic, operands=regions):
                parts = (
                    self.number(
                        "region",
                        self.buffer(region.buffer, buffers),
                        region.shape,
                        *(self.expr(each, names, buffers) for each in region.start),
                    )
                    for region in regions
                )
                return self.number("invoke", intrinsic, *parts)

    def buffer(self, buffer: Buffer, buffers: Names) -> int:
        name = buffers.get(buffer.name, buffer.name)
        return self.number("buffer", name, buffer.shape, buffer.dtype, buffer.scope)

    def expr(self, expr: Expr, names: Names, buffers: Names) -> int:
        def combine(node: Expr, below: tuple[int, ...]) -> int:
            match node:
                case Constant(value=value, dtype=dtype):
                    if dtype.is_float:
                        number = float(value)
                        sign = math.copysign(1, number)
                        return self.number(
                            "float", dtype, "nan" if math.isnan(number) else (number, sign)
                        )
                    return self.number("integer", dtype, int(value))
                case Variable(name=name, dtype=dtype):
                    return self.number("variable", dtype, names.get(name, name))
                case Load(buffer=buffer):
                    return self.number("load", self.buffer(buffer, buffers), *below)
            what = getattr(node, "function", None) or node.dtype
            return self.number(type(node).__name__, what, node.dtype, *below)

        return fold(expr, combine)
