"""Loops of attention: rows of queries together, some columns of scores after the other.

    for row.block: best = lowest; total = 0; acc = 0
      for column.block:
        score[r, c] = q[r] . k[c] * scale + bias
        old = best; best = max(old, score); factor = exp(old - best)
        weight[r, c] = exp(score - best); total = total * factor + sum(weight)
        acc[r] = acc[r] * factor + sum(weight[r, c] * v[c])
      y[r] = acc[r] / total

Scores exist for ``ROWS`` x ``COLUMNS`` of them at a time.  Weights, at most 1, are of v's type
where that has 16 bits, as products on tensor cores want them.  ``best`` begins with the lowest
finite number, so that scores of minus infinity weigh nothing.

Source: M. Milakov and N. Gimelshein, "Online normalizer calculation for softmax", 2018; T. Dao et
al., "FlashAttention", 2022, algorithm 1.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..dtypes import DType
from ..graph.operators.attention import Attention
from ..loops.expressions import (
    Binary,
    BinaryFunction,
    Buffer,
    Constant,
    Expr,
    Load,
    Select,
    Unary,
    UnaryFunction,
    Variable,
)
from ..loops.expressions import Scope as Memory
from ..loops.ir import Allocate, For, If, Let, LoopKind, Stmt, Store, Update, block, loops
from .operand import Anchor, Operand, Result, Scope, converted, index, over, zero

__all__ = ["ATTENTION", "COLUMNS", "ROWS"]

ROWS, COLUMNS = 64, 32
STEP = 16
"""Sides of the products that tensor cores compute."""
SCORE_PADDING, WEIGHT_PADDING = 1, 8
"""Elements behind each row that nothing uses: rows then begin in different banks of a GPU's memory.
"""

F32 = DType.FLOAT32
HALVES = (DType.FLOAT16, DType.BFLOAT16)
LOWEST = float(np.finfo(np.float32).min)

Indices = tuple[Expr, ...]


def attention(
    operator: Attention, operands: Sequence[Operand], results: Sequence[Result], scope: Scope
) -> Stmt:
    """See the module's docstring; loops over rows are called r0, r1, ... and columns c0, ..."""
    return _Writer(operator, operands, results[0], scope).write()


class _Writer:
    def __init__(
        self, operator: Attention, operands: Sequence[Operand], result: Result, scope: Scope
    ) -> None:
        self.operator, self.result, self.scope = operator, result, scope
        self.q, self.k, self.v, *self.masks = operands
        self.sizes = operator.sizes([each.type for each in operands])
        self.rows = _together(self.sizes[operator.row], ROWS)
        self.columns = _together(self.sizes[operator.column], COLUMNS)
        self.at: dict[int, Expr] = {}
        """Index of each label in the current loops."""
        shape = tuple(self.sizes[each] for each in operator.columns)
        self.acc = self.buffer("acc", self.rows, *shape)
        self.score = self.buffer("score", self.rows, self.columns + SCORE_PADDING)
        self.weight = self.score
        if self.v.type.dtype in HALVES:
            shape = self.rows, self.columns + WEIGHT_PADDING
            name = scope.fresh("weight")
            self.weight = Buffer(name, shape, self.v.type.dtype, Memory.LOCAL)
        self.best, self.total, self.factor = (
            self.buffer(stem, self.rows) for stem in ("best", "total", "factor")
        )

    def buffer(self, stem: str, *shape: int) -> Buffer:
        return Buffer(self.scope.fresh(stem), shape, F32, Memory.LOCAL)

    def write(self) -> Stmt:
        operator, sizes = self.operator, self.sizes
        apart = {operator.row, operator.column}
        outer = [each for each in operator.scores if each not in apart]
        nest, places = over([sizes[each] for each in outer], "o", self.scope)
        self.at.update(zip(outer, places, strict=True))
        rows = -(-sizes[operator.row] // self.rows)
        columns = -(-sizes[operator.column] // self.columns)
        row, column = (Variable(self.scope.fresh(stem)) for stem in ("rows", "columns"))
        self.first_row, self.first_column = row * self.rows, column * self.columns
        start = block(
            self.each_row(
                lambda r: block(
                    Store(self.best, (r,), Constant(LOWEST, F32)),
                    Store(self.total, (r,), Constant(0.0, F32)),
                )
            ),
            self.each_element(lambda r, e: Store(self.acc, (r, *e), Constant(0.0, F32))),
        )
        step = Allocate(self.score, Allocate(self.factor, self.step()))
        if self.weight != self.score:
            step = Allocate(self.weight, step)
        body = block(
            start,
            For(column.name, index(columns), LoopKind.SERIAL, step),
            self.each_element(self.finish),
        )
        for each in (self.best, self.total, self.acc):
            body = Allocate(each, body)
        return loops(nest, For(row.name, index(rows), LoopKind.SERIAL, body))

    def step(self) -> Stmt:
        """Some columns of scores, and what they change."""
        best, total, factor = self.best, self.total, self.factor
        score, weight = self.score, self.weight

        def highest(r: Expr) -> Stmt:
            old = Variable(self.scope.fresh("v"), F32)
            found = self.each_column(lambda c: Update(best, (r,), BinaryFunction.MAX, score[r, c]))
            shrink = Unary(UnaryFunction.EXP, old - best[r])
            return Let(old, best[r], block(found, Store(factor, (r,), shrink)))

        def weigh(r: Expr) -> Stmt:
            def one(c: Expr) -> Stmt:
                value = Unary(UnaryFunction.EXP, score[r, c] - best[r])
                return Store(weight, (r, c), converted(value, weight.dtype))

            return self.each_column(one)

        def add(r: Expr) -> Stmt:
            def one(c: Expr) -> Stmt:
                return Update(total, (r,), BinaryFunction.ADD, converted(weight[r, c], F32))

            more = self.each_column(one)
            return block(Store(total, (r,), total[r] * factor[r]), more)

        return block(
            self.each_row(lambda r: self.each_column(lambda c: self.product(r, c))),
            self.each_row(highest),
            self.each_row(weigh),
            self.each_row(add),
            self.each_element(
                lambda r, e: Store(self.acc, (r, *e), Load(self.acc, (r, *e)) * factor[r])
            ),
            self.each_element(self.mean),
        )

    def product(self, r: Expr, c: Expr) -> Stmt:
        """A score."""
        operator = self.operator
        row, column = self.inside(r, c)
        sum_ = Buffer(self.scope.fresh("sum"), (), F32, Memory.REGISTER)
        nest, places = over([self.sizes[each] for each in operator.depth], "k", self.scope)
        self.at.update(zip(operator.depth, places, strict=True))
        left = self.read(self.q, operator.query, row)
        right = self.read(self.k, operator.key, column)
        add = Update(sum_, (), BinaryFunction.ADD, left * right)
        value: Expr = sum_[()]
        if operator.scale != 1.0:
            value = value * operator.scale
        masks = list(self.masks)
        both = _both(row, column)
        if operator.added:
            value = value + self.broadcast(masks.pop(0), both)
        if operator.chosen:
            keep = self.broadcast(masks.pop(0), both)
            value = Select(keep, value, Constant(operator.other, F32))
        if column is not None:
            value = Select(column, value, Constant(float("-inf"), F32))
        body = block(
            Store(sum_, (), Constant(0.0, F32)), loops(nest, add), Store(self.score, (r, c), value)
        )
        return Allocate(sum_, body)

    def mean(self, r: Expr, e: Indices) -> Stmt:
        """The statement that adds these columns' values to an element of the result."""

        def add(c: Expr) -> Stmt:
            _, column = self.inside(r, c)
            value = self.read(self.v, self.operator.value, column)
            weighed = converted(self.weight[r, c], F32) * value
            return Update(self.acc, (r, *e), BinaryFunction.ADD, weighed)

        return self.each_column(add)

    def finish(self, r: Expr, e: Indices) -> Stmt:
        """An element of the result."""
        row, _ = self.inside(r, zero())
        value = Binary(BinaryFunction.DIV, Load(self.acc, (r, *e)), self.total[r])
        where = tuple(self.at[each] for each in self.operator.output)
        stored = self.result.store(where, value)
        return stored if row is None else If(row, stored)

    def inside(self, r: Expr, c: Expr) -> tuple[Expr | None, Expr | None]:
        """Sets where the row and the column are; says whether they exist, None where all do."""
        found: list[Expr | None] = []
        for label, first, place, size in (
            (self.operator.row, self.first_row, r, self.rows),
            (self.operator.column, self.first_column, c, self.columns),
        ):
            self.at[label] = first + place
            ragged = self.sizes[label] % size != 0
            found.append(self.at[label] < self.sizes[label] if ragged else None)
        return found[0], found[1]

    def read(self, operand: Operand, labels: Sequence[int], inside: Expr | None) -> Expr:
        """An element as float32, 0 outside."""
        where = tuple(self.at[each] for each in labels)
        if inside is None:
            return converted(operand[where], F32)
        return converted(operand.where(inside, where, Constant(0.0, operand.type.dtype)), F32)

    def broadcast(self, operand: Operand, inside: Expr | None) -> Expr:
        """An element of a tensor that broadcasts to the scores."""
        labels = self.operator.scores[len(self.operator.scores) - operand.type.rank :]
        where = tuple(
            zero() if size == 1 else self.at[label]
            for size, label in zip(operand.type.shape, labels, strict=True)
        )
        if inside is None:
            return operand[where]
        kind = operand.type.dtype
        other = Constant(False, kind) if kind is DType.BOOL else Constant(0.0, kind)
        return operand.where(inside, where, other)

    def each_row(self, body: Callable[[Expr], Stmt]) -> Stmt:
        return self.over_one("r", self.rows, body)

    def each_column(self, body: Callable[[Expr], Stmt]) -> Stmt:
        return self.over_one("c", self.columns, body)

    def over_one(self, stem: str, size: int, body: Callable[[Expr], Stmt]) -> Stmt:
        name = self.scope.fresh(stem)
        return For(name, index(size), LoopKind.SERIAL, body(Variable(name)))

    def each_element(self, body: Callable[[Expr, Indices], Stmt]) -> Stmt:
        """Loops over rows, and labels of the values that are not columns of scores."""

        def inner(r: Expr) -> Stmt:
            labels = self.operator.columns
            nest, places = over([self.sizes[each] for each in labels], "e", self.scope)
            self.at.update(zip(labels, places, strict=True))
            return loops(nest, body(r, places))

        return self.each_row(inner)


def _together(size: int, most: int) -> int:
    """Number that go together: a multiple of ``STEP``, though some may not exist."""
    return min(most, -(-size // STEP) * STEP)


def _both(a: Expr | None, b: Expr | None) -> Expr | None:
    return a & b if a is not None and b is not None else a if b is None else b


ATTENTION: Mapping[type[Any], Anchor] = {Attention: attention}
