"""Loops of recurrences: a serial loop over steps around the products and gates of one step."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..dtypes import DType
from ..graph.operators.contractions import Contract
from ..graph.operators.recurrent import Activation, Cell, Nonlinearity, Recurrence
from ..graph.types import TensorType
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
from ..loops.ir import Allocate, Let, Stmt, Store, block, loops
from .contractions import combine
from .operand import Anchor, Indices, Operand, Result, Scope, index, over

__all__ = ["RECURRENT"]


def recurrence(
    operator: Recurrence, operands: Sequence[Operand], results: Sequence[Result], scope: Scope
) -> Stmt:
    """State in the buffers of the last results, gates in work space."""
    buffers = [each.buffer for each in results if each.buffer is not None]
    assert len(buffers) == len(results), "nothing is fused with an opaque operator"
    return _Recurrence(operator, operands, buffers, scope).nest()


def _activation(which: Activation, clip: float, x: Expr) -> Expr:
    function, alpha, beta = which
    dtype = x.dtype

    def number(value: float) -> Constant:
        return Constant(value, dtype)

    if clip != float("inf"):
        x = Binary(BinaryFunction.MAX, x, number(-clip))
        x = Binary(BinaryFunction.MIN, x, number(clip))
    match function:
        case Nonlinearity.AFFINE:
            return x * alpha + beta
        case Nonlinearity.ELU:
            return Select(x < 0.0, (_unary(UnaryFunction.EXP, x) - 1.0) * alpha, x)
        case Nonlinearity.HARD_SIGMOID:
            line = Binary(BinaryFunction.MAX, x * alpha + beta, number(0))
            return Binary(BinaryFunction.MIN, line, number(1))
        case Nonlinearity.LEAKY_RELU:
            return Select(x < 0.0, x * alpha, x)
        case Nonlinearity.RELU:
            return Binary(BinaryFunction.MAX, x, number(0))
        case Nonlinearity.SCALED_TANH:
            return _unary(UnaryFunction.TANH, x * beta) * alpha
        case Nonlinearity.SIGMOID:
            return _divided(number(1), _unary(UnaryFunction.EXP, number(0) - x) + 1.0)
        case Nonlinearity.SOFTPLUS:
            return _unary(UnaryFunction.LOG, _unary(UnaryFunction.EXP, x) + 1.0)
        case Nonlinearity.SOFTSIGN:
            return _divided(x, _unary(UnaryFunction.ABS, x) + 1.0)
        case Nonlinearity.TANH:
            return _unary(UnaryFunction.TANH, x)
        case Nonlinearity.THRESHOLDED_RELU:
            return Select(number(alpha) < x, x, number(0))


def _unary(function: UnaryFunction, x: Expr) -> Expr:
    return Unary(function, x)


def _divided(a: Expr, b: Expr) -> Expr:
    return Binary(BinaryFunction.DIV, a, b)


@dataclass(slots=True)
class _Recurrence:
    operator: Recurrence
    operands: Sequence[Operand]
    results: Sequence[Buffer]
    """Outputs, h, and c of LSTM."""
    scope: Scope

    @property
    def state(self) -> tuple[int, int]:
        """Batch, hidden."""
        batch, hidden = self.results[1].shape
        return batch, hidden

    @property
    def dtype(self) -> DType:
        """Element type of everything but the lengths."""
        return self.results[0].dtype

    @property
    def h(self) -> Buffer:
        """The state at hand."""
        return self.results[1]

    def nest(self) -> Stmt:
        """The initial state copied, then the steps."""
        x, _, h, _, *rest = self.operands
        steps, batch, width = x.type.shape
        places, at = over(self.state, "i", self.scope)
        copies: list[Stmt] = [loops(places, Store(self.h, at, h[at]))]
        if self.operator.cell == Cell.LSTM:
            copies.append(loops(places, Store(self.results[2], at, rest[0][at])))
        gates = Buffer(self.scope.fresh("gates"), (batch, width), self.dtype, Memory.LOCAL)
        name = self.scope.fresh("t")
        step: Expr = Variable(name)
        if self.operator.reverse:
            step = index(steps - 1) - step
        body = Allocate(gates, self._step(step, gates))
        return block(*copies, loops(((name, steps),), body))

    def _step(self, step: Expr, gates: Buffer) -> Stmt:
        match self.operator.cell:
            case Cell.RNN:
                products = self._products(step, gates, 0, 1, self.h, None)
                return block(products, self._each(partial(self._rnn, step, gates)))
            case Cell.GRU:
                return self._gru_step(step, gates)
            case Cell.LSTM:
                products = self._products(step, gates, 0, 4, self.h, None)
                return block(products, self._each(partial(self._lstm, step, gates)))

    def _products(
        self, step: Expr, gates: Buffer, first: int, last: int, h: Buffer, bias: Operand | None
    ) -> Stmt:
        """``gates = x + h @ r`` of some gates; with ``bias``, only ``h @ r + bias``."""
        x, r, *_ = self.operands
        batch, hidden = self.state
        width = (last - first) * hidden
        offset = first * hidden

        def weight(indices: Indices, guarded: bool) -> Expr:
            column = indices[1] + offset if offset else indices[1]
            return r[(indices[0], column)]

        def store(indices: Indices, value: Expr) -> Stmt:
            row, column = indices
            place = column + offset if offset else column
            added = bias[(column,)] if bias is not None else x[(step, row, place)]
            return Store(gates, (row, place), value + added)

        left = Operand(TensorType(h.shape, h.dtype), lambda i, _: Load(h, i), h)
        right = Operand(TensorType((hidden, width), self.dtype), weight)
        contraction = Contract(
            (batch, hidden, width),
            ((((0, 1),), ((1, 1),)), (((1, 1),), ((2, 1),))),
            (((0, 1),), ((2, 1),)),
            self.dtype,
        )
        result = Result(TensorType((batch, width), self.dtype), store)
        return combine(contraction, (left, right), result, self.scope, BinaryFunction.ADD, 0)

    def _each(self, body: Callable[[Expr, Expr], Stmt]) -> Stmt:
        """``body(row, column)`` for every element of the state."""
        nest, (row, column) = over(self.state, "i", self.scope)
        return loops(nest, body(row, column))

    def _act(self, which: int, value: Expr) -> Expr:
        return _activation(self.operator.activations[which], self.operator.clip, value)

    def _finish(self, step: Expr, at: Indices, h: Expr, c: Expr | None = None) -> Stmt:
        """States and output, where the sequence is not over."""
        active = step < self.operands[3][(at[0],)]
        new = Variable(self.scope.fresh("h"), self.dtype)
        stores: list[Stmt] = [
            Store(self.results[0], (step, *at), Select(active, new, Constant(0, self.dtype))),
            Store(self.h, at, Select(active, new, Load(self.h, at))),
        ]
        if c is not None:
            memory = self.results[2]
            stores.append(Store(memory, at, Select(active, c, Load(memory, at))))
        return Let(new, h, block(*stores))

    def _gate(self, gates: Buffer, number: int, at: Indices) -> Expr:
        column = at[1] + number * self.state[1] if number else at[1]
        return Load(gates, (at[0], column))

    def _rnn(self, step: Expr, gates: Buffer, row: Expr, column: Expr) -> Stmt:
        at = (row, column)
        return self._finish(step, at, self._act(0, self._gate(gates, 0, at)))

    def _lstm(self, step: Expr, gates: Buffer, row: Expr, column: Expr) -> Stmt:
        at, old = (row, column), Load(self.results[2], (row, column))
        peepholes, hidden = self.operands[5], self.state[1]

        def peephole(number: int) -> Expr:
            return peepholes[(column + number * hidden if number else column,)]

        names = [Variable(self.scope.fresh(each), self.dtype) for each in ("i", "f", "c", "o")]
        i, f, c, o = names
        forget: Expr = Constant(1, self.dtype) - i
        if not self.operator.input_forget:
            forget = self._act(0, self._gate(gates, 2, at) + peephole(2) * old)
        values = (
            self._act(0, self._gate(gates, 0, at) + peephole(0) * old),
            forget,
            f * old + i * self._act(1, self._gate(gates, 3, at)),
            self._act(0, self._gate(gates, 1, at) + peephole(1) * c),
        )
        body = self._finish(step, at, o * self._act(2, c), c)
        for name, value in reversed(list(zip(names, values, strict=True))):
            body = Let(name, value, body)
        return body

    def _gru_step(self, step: Expr, gates: Buffer) -> Stmt:
        x, bias = self.operands[0], self.operands[4]
        hidden = self.state[1]
        first = self._products(step, gates, 0, 2, self.h, None)

        def reset(at: Indices) -> Expr:
            return self._act(0, self._gate(gates, 1, at))

        def finish(row: Expr, column: Expr) -> Stmt:
            at = (row, column)
            inner = self._gate(gates, 2, at)
            if self.operator.linear_before_reset:
                inner = reset(at) * inner
            candidate = self._act(1, x[(step, row, column + 2 * hidden)] + inner)
            z = Variable(self.scope.fresh("z"), self.dtype)
            h = (Constant(1, self.dtype) - z) * candidate + z * Load(self.h, at)
            return Let(z, self._act(0, self._gate(gates, 0, at)), self._finish(step, at, h))

        if self.operator.linear_before_reset:
            last = self._products(step, gates, 2, 3, self.h, bias)
            return block(first, last, self._each(finish))
        scaled = Buffer(self.scope.fresh("scaled"), self.state, self.dtype, Memory.LOCAL)

        def scale(row: Expr, column: Expr) -> Stmt:
            return Store(scaled, (row, column), reset((row, column)) * Load(self.h, (row, column)))

        last = self._products(step, gates, 2, 3, scaled, bias)
        return Allocate(scaled, block(first, self._each(scale), last, self._each(finish)))


RECURRENT: Mapping[type[Any], Anchor] = {Recurrence: recurrence}
