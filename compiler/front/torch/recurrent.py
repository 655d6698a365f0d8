"""Recurrent layers and cells: products of all steps at once, then the recurrence.

Source: PyTorch 2.15, aten/src/ATen/native/RNN.cpp; the order of gates is that of ``nn.LSTM`` and
``nn.GRU``.
"""

from collections.abc import Sequence
from math import inf

import numpy as np

from dovetail.isa.frozen import frozen

from ...dtypes import DType
from ...errors import UnsupportedOperatorError
from ...graph.formulas import Term, concatenate
from ...graph.operators.recurrent import Activation, Cell, Nonlinearity, Recurrence
from .context import Context, Converter
from .contractions import product

__all__ = ["RECURRENT"]

RELU, SIGMOID, TANH = (
    (each, 1.0, 0.0) for each in (Nonlinearity.RELU, Nonlinearity.SIGMOID, Nonlinearity.TANH)
)


@frozen
class _Kind:
    """order: where the graph's gates are among torch's."""

    cell: Cell
    activations: tuple[Activation, ...]
    order: tuple[int, ...]

    @property
    def states(self) -> int:
        """Tensors that a step hands to the next."""
        return 2 if self.cell == Cell.LSTM else 1


LSTM = _Kind(Cell.LSTM, (SIGMOID, TANH, TANH), (0, 3, 1, 2))
GRU = _Kind(Cell.GRU, (SIGMOID, TANH), (1, 0, 2))
KINDS = {
    "gru": GRU,
    "lstm": LSTM,
    "rnn_relu": _Kind(Cell.RNN, (RELU,), (0,)),
    "rnn_tanh": _Kind(Cell.RNN, (TANH,), (0,)),
}


@frozen
class _Weights:
    """One layer's in one direction: of inputs and states, [gates * hidden, size], their biases,
    and of an LSTM's projection, [projected, hidden]."""

    inputs: Term
    states: Term
    biases: tuple[Term, ...] = ()
    projection: Term | None = None

    @classmethod
    def of(cls, parameters: Sequence[Term], biased: bool) -> "_Weights":
        """From torch's list.  Raises ValueError for another number of tensors."""
        inputs, states, *rest = parameters
        biases = tuple(rest[:2]) if biased else ()
        projections = rest[len(biases) :]
        if len(biases) != 2 * biased or len(projections) > 1:
            raise ValueError(f"{len(parameters)} weights of a layer")
        return cls(inputs, states, biases, projections[0] if projections else None)


def _run(
    context: Context, kind: _Kind, x: Term, states: Sequence[Term], weights: _Weights, reverse: bool
) -> tuple[Term, ...]:
    """Outputs of all steps, [steps, batch, size], and the last states; ``x``: as the outputs.

    A projected state is never made: where ``h = P u``, ``W h`` is ``(W P) u``, and the first state
    takes part in the first step's inputs.
    """
    steps, batch, size = x.shape
    hidden = weights.inputs.shape[0] // kind.cell.gates
    gates = (np.arange(kind.cell.gates * hidden).reshape(-1, hidden)[list(kind.order)]).ravel()
    inputs, recurrent = (
        each.take(gates, 0).transpose(1, 0) for each in (weights.inputs, weights.states)
    )
    projected = product(x.reshape(steps * batch, size), inputs)
    biases = [each.take(gates, 0) for each in weights.biases]
    last_gate = x.constant(np.zeros(hidden), x.dtype)
    if kind.cell == Cell.GRU and biases:
        last_gate = biases[1].slice(0, 2 * hidden, 3 * hidden)
        others = biases[1].slice(0, 0, 2 * hidden)
        biases[1] = concatenate([others, x.constant(np.zeros(hidden), x.dtype)], 0)
    for bias in biases:
        projected = projected + bias
    projected = projected.reshape(steps, batch, gates.size)
    state = states[0]
    if weights.projection is not None:
        turned = weights.projection.transpose(1, 0)
        first = product(state, recurrent).unsqueeze(0)
        ends = (steps - 1, 0) if reverse else (0, steps - 1)
        projected = projected + first.pad([ends, (0, 0), (0, 0)])
        recurrent, state = (
            product(turned, recurrent),
            x.constant(np.zeros((batch, hidden)), x.dtype),
        )
    extra: tuple[Term, ...] = ()
    if kind.cell == Cell.GRU:
        extra = (last_gate,)
    elif kind.cell == Cell.LSTM:
        extra = (states[1], x.constant(np.zeros(3 * hidden), x.dtype))
    lengths = x.constant(np.full(batch, steps), DType.INT64)
    operator = Recurrence(kind.cell, kind.activations, inf, reverse, linear_before_reset=True)
    operands = (projected, recurrent, state, lengths, *extra)
    results = context.emit_many(operator, *(each.tensor for each in operands))
    outputs, last, *rest = (Term(context, each) for each in results)
    if weights.projection is None:
        return outputs, last, *rest
    return product(outputs, turned), product(last, turned), *rest


def _layers(kind: _Kind) -> Converter:
    def convert(
        context: Context,
        x: Term,
        hx: Term | tuple[Term, ...],
        params: tuple[Term, ...],
        has_biases: bool,
        num_layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
        batch_first: bool,
    ) -> tuple[Term, ...]:
        if train and dropout:
            raise UnsupportedOperatorError(
                f"{context.where}: dropout in training; use model.eval()"
            )
        states = hx if isinstance(hx, tuple) else (hx,)
        directions = 2 if bidirectional else 1
        each, rest = divmod(len(params), num_layers * directions)
        if rest or len(states) != kind.states:
            raise ValueError(f"{len(params)} weights and {len(states)} states")
        x = x.transpose(1, 0, 2) if batch_first else x
        last: list[list[Term]] = []
        for layer in range(num_layers):
            outputs = []
            for way in range(directions):
                place = layer * directions + way
                weights = _Weights.of(params[place * each : (place + 1) * each], has_biases)
                own = [s.slice(0, place, place + 1).reshape(*s.shape[1:]) for s in states]
                found, *after = _run(context, kind, x, own, weights, way == 1)
                outputs.append(found)
                last.append(after)
            x = concatenate(outputs, 2)
        ends = [concatenate([s.unsqueeze(0) for s in own], 0) for own in zip(*last, strict=True)]
        return x.transpose(1, 0, 2) if batch_first else x, *ends

    return convert


def _cell(kind: _Kind) -> Converter:
    """One step: a layer's, of a sequence of one."""

    def convert(
        context: Context,
        x: Term,
        hx: Term | tuple[Term, ...],
        w_ih: Term,
        w_hh: Term,
        b_ih: Term | None = None,
        b_hh: Term | None = None,
    ) -> Term | tuple[Term, ...]:
        states = hx if isinstance(hx, tuple) else (hx,)
        biases = () if b_ih is None or b_hh is None else (b_ih, b_hh)
        weights = _Weights(w_ih, w_hh, biases)
        _, *after = _run(context, kind, x.unsqueeze(0), states, weights, False)
        return tuple(after) if len(after) > 1 else after[0]

    return convert


RECURRENT: dict[str, Converter] = {
    **{f"aten.{name}.input": _layers(kind) for name, kind in KINDS.items()},
    "aten.gru_cell": _cell(GRU),
    "aten.lstm_cell": _cell(LSTM),
    "aten.rnn_relu_cell": _cell(KINDS["rnn_relu"]),
    "aten.rnn_tanh_cell": _cell(KINDS["rnn_tanh"]),
}
