"""Loops of determinants: elimination with partial pivoting."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..dtypes import DType
from ..graph.operators.contractions import Determinant
from ..loops.expressions import (
    Binary,
    BinaryFunction,
    Buffer,
    Constant,
    Expr,
    Load,
    Unary,
    UnaryFunction,
    Variable,
)
from ..loops.expressions import Scope as Memory
from ..loops.ir import Allocate, For, If, Let, LoopKind, Stmt, Store, Update, block, loops
from .operand import Anchor, Operand, Result, Scope, converted, index, over

__all__ = ["DETERMINANTS"]


def determinant(
    operator: Determinant, operands: Sequence[Operand], results: Sequence[Result], scope: Scope
) -> Stmt:
    """In float64; a column without a pivot makes the product 0."""
    (x,), (result,) = operands, results
    size = x.type.shape[-1]
    outer, place = over(x.type.shape[:-2], "o", scope)
    matrix = Buffer(scope.fresh("matrix"), (size, size), DType.FLOAT64, Memory.LOCAL)
    total = Buffer(scope.fresh("total"), (), DType.FLOAT64, Memory.REGISTER)
    pivot = Buffer(scope.fresh("pivot"), (), DType.INT64, Memory.REGISTER)
    cells, cell = over((size, size), "i", scope)
    copy = loops(cells, Store(matrix, cell, converted(x[(*place, *cell)], DType.FLOAT64)))
    column, row, other = (Variable(scope.fresh("k")) for _ in range(3))
    below = index(size - 1) - column

    def magnitude(where: Expr) -> Expr:
        return Unary(UnaryFunction.ABS, Load(matrix, (where, column)))

    under = column + 1 + row
    search = For(
        row.name,
        below,
        LoopKind.SERIAL,
        If(magnitude(Load(pivot, ())) < magnitude(under), Store(pivot, (), under)),
    )
    kept = Variable(scope.fresh("v"), DType.FLOAT64)
    top, best = (column, other), (Load(pivot, ()), other)
    exchange = loops(
        ((other.name, size),),
        Let(
            kept,
            Load(matrix, top),
            block(Store(matrix, top, Load(matrix, best)), Store(matrix, best, kept)),
        ),
    )
    different = Binary(BinaryFunction.NE, Load(pivot, ()), column)
    negate = Store(total, (), Unary(UnaryFunction.NEG, Load(total, ())))
    head = Load(matrix, (column, column))
    factor = Variable(scope.fresh("v"), DType.FLOAT64)
    eliminate = For(
        row.name,
        below,
        LoopKind.SERIAL,
        Let(
            factor,
            Binary(BinaryFunction.DIV, Load(matrix, (under, column)), head),
            loops(
                ((other.name, size),),
                Store(
                    matrix,
                    (under, other),
                    Load(matrix, (under, other)) - factor * Load(matrix, (column, other)),
                ),
            ),
        ),
    )
    nought = Constant(0.0, DType.FLOAT64)
    step = block(
        Store(pivot, (), column),
        search,
        If(different, block(exchange, negate)),
        Update(total, (), BinaryFunction.MUL, head),
        If(Binary(BinaryFunction.NE, head, nought), eliminate),
    )
    body = block(
        copy,
        Store(total, (), Constant(1.0, DType.FLOAT64)),
        loops(((column.name, size),), step),
        result.store(place, converted(Load(total, ()), x.type.dtype)),
    )
    return loops(outer, Allocate(matrix, Allocate(total, Allocate(pivot, body))))


DETERMINANTS: Mapping[type[Any], Anchor] = {Determinant: determinant}
