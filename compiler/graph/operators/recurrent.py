"""Recurrences over the steps of a sequence: the cells of RNN, GRU and LSTM networks."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any

import numpy as np

from dovetail.isa.frozen import frozen

from ...dtypes import DType
from ...errors import GraphError
from ..types import TensorType
from .protocol import Array, Opaque, require, require_inputs

__all__ = ["Activation", "Cell", "Nonlinearity", "Recurrence"]


class Cell(StrEnum):
    """Cell that computes the next state.  Source: the ONNX operators of these names."""

    RNN = "rnn"
    """``h = f(x + h @ r)``."""
    GRU = "gru"
    """Gates z, r, h: ``z, r = f(x + h @ R)``; ``h' = g(xh + (r * h) @ Rh + b)``, or, linear before
    reset, ``g(xh + r * (h @ Rh + b))``; ``h = (1 - z) * h' + z * h``."""
    LSTM = "lstm"
    """Gates i, o, f, c: ``c = f(f) * c + f(i) * g(c')``; ``h = f(o) * h(c)``, with peepholes."""

    @property
    def gates(self) -> int:
        """Their number."""
        return {Cell.RNN: 1, Cell.GRU: 3, Cell.LSTM: 4}[self]


class Nonlinearity(StrEnum):
    """Functions of gates."""

    AFFINE = "affine"
    ELU = "elu"
    HARD_SIGMOID = "hardsigmoid"
    LEAKY_RELU = "leakyrelu"
    RELU = "relu"
    SCALED_TANH = "scaledtanh"
    SIGMOID = "sigmoid"
    SOFTPLUS = "softplus"
    SOFTSIGN = "softsign"
    TANH = "tanh"
    THRESHOLDED_RELU = "thresholdedrelu"


Activation = tuple[Nonlinearity, float, float]
"""Function, alpha, beta."""

NUMPY: dict[Nonlinearity, Callable[[Array, float, float], Array]] = {
    Nonlinearity.AFFINE: lambda x, a, b: a * x + b,
    Nonlinearity.ELU: lambda x, a, b: np.where(x < 0, a * np.expm1(x), x),
    Nonlinearity.HARD_SIGMOID: lambda x, a, b: np.clip(a * x + b, 0, 1),
    Nonlinearity.LEAKY_RELU: lambda x, a, b: np.where(x < 0, a * x, x),
    Nonlinearity.RELU: lambda x, a, b: np.maximum(x, 0),
    Nonlinearity.SCALED_TANH: lambda x, a, b: a * np.tanh(b * x),
    Nonlinearity.SIGMOID: lambda x, a, b: 1 / (1 + np.exp(-x)),
    Nonlinearity.SOFTPLUS: lambda x, a, b: np.log1p(np.exp(x)),
    Nonlinearity.SOFTSIGN: lambda x, a, b: x / (1 + np.abs(x)),
    Nonlinearity.TANH: lambda x, a, b: np.tanh(x),
    Nonlinearity.THRESHOLDED_RELU: lambda x, a, b: np.where(x > a, x, 0),
}


@frozen
class Recurrence(Opaque):
    """The states of a cell after every step, and the last ones; ``reverse`` begins at the end.

    x: float[steps, batch, gates * hidden], the input's part of the gates, biases included;
    r: float[hidden, gates * hidden]; h: float[batch, hidden]; lengths: int64[batch], steps after
    which a sequence's state stays as it is, and its output is 0.  GRU: bias float[hidden] of the
    last gate's recurrent part.  LSTM: c as h, peepholes float[3 * hidden] of i, o, f.
    Results: float[steps, batch, hidden], the last h, and of LSTM the last c.
    ``clip`` bounds what activations see; infinity where there is no bound.
    """

    cell: Cell
    activations: tuple[Activation, ...]
    clip: float
    reverse: bool = False
    linear_before_reset: bool = False
    input_forget: bool = False
    """The forget gate is 1 - the input gate."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "cell", Cell(self.cell))
        chosen = tuple((Nonlinearity(f), a, b) for f, a, b in self.activations)
        object.__setattr__(self, "activations", chosen)
        wanted = {Cell.RNN: 1, Cell.GRU: 2, Cell.LSTM: 3}[self.cell]
        if len(chosen) != wanted or not self.clip > 0:
            raise GraphError(f"{self}: required {wanted} activations, and a clip above 0")

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """Raises GraphError for shapes that do not fit each other."""
        x, r, h, lengths, *rest = require_inputs(
            self, inputs, {Cell.RNN: 4, Cell.GRU: 5, Cell.LSTM: 6}[self.cell]
        )
        require(self, x.rank == 3 and h.rank == 2 and x.dtype.is_float, f"{x}, {h}", "3 and 2 dims")
        (steps, batch, width), hidden = x.shape, h.shape[1]
        state = TensorType((batch, hidden), x.dtype)
        extra = {
            Cell.RNN: (),
            Cell.GRU: (TensorType((hidden,), x.dtype),),
            Cell.LSTM: (state, TensorType((3 * hidden,), x.dtype)),
        }[self.cell]
        wanted = (TensorType((hidden, width), x.dtype), state, TensorType((batch,), DType.INT64))
        fits = (r, h, lengths, *rest) == (*wanted, *extra) and width == self.cell.gates * hidden
        require(self, fits, ", ".join(map(str, inputs)), ", ".join(map(str, (*wanted, *extra))))
        states = (state,) * (2 if self.cell == Cell.LSTM else 1)
        return (TensorType((steps, batch, hidden), x.dtype), *states)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Step by step."""
        x, r, h, lengths, *rest = inputs
        c = rest[0] if self.cell == Cell.LSTM else None
        outputs = np.zeros((*x.shape[:2], h.shape[1]), x.dtype)
        for step in reversed(range(len(x))) if self.reverse else range(len(x)):
            new_h, new_c = self._step(x[step], r, h, c, rest)
            active = (step < lengths)[:, None]
            outputs[step] = np.where(active, new_h, 0)
            h = np.where(active, new_h, h).astype(x.dtype)
            c = None if c is None else np.where(active, new_c, c).astype(x.dtype)
        return (outputs, h) if c is None else (outputs, h, c)

    def _act(self, which: int, x: Array) -> Array:
        function, alpha, beta = self.activations[which]
        return NUMPY[function](np.clip(x, -self.clip, self.clip), alpha, beta)

    def _step(
        self, x: Array, r: Array, h: Array, c: Array | None, rest: Sequence[Array]
    ) -> tuple[Array, Any]:
        gates, hidden = self.cell.gates, h.shape[1]
        x_parts, r_parts = np.split(x, gates, axis=1), np.split(r, gates, axis=1)
        if self.cell == Cell.RNN:
            return self._act(0, x + h @ r), None
        if self.cell == Cell.GRU:
            z = self._act(0, x_parts[0] + h @ r_parts[0])
            reset = self._act(0, x_parts[1] + h @ r_parts[1])
            if self.linear_before_reset:
                inner = reset * (h @ r_parts[2] + rest[0])
            else:
                inner = (reset * h) @ r_parts[2] + rest[0]
            return (1 - z) * self._act(1, x_parts[2] + inner) + z * h, None
        i, o, f, g = (part + h @ own for part, own in zip(x_parts, r_parts, strict=True))
        p_i, p_o, p_f = (rest[1][k * hidden : (k + 1) * hidden] for k in range(3))
        i = self._act(0, i + p_i * c)
        f = 1 - i if self.input_forget else self._act(0, f + p_f * c)
        c = f * c + i * self._act(1, g)
        return self._act(0, o + p_o * c) * self._act(2, c), c
