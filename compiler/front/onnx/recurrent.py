"""Converters of RNN, GRU and LSTM: the input's products of all steps at once, then a recurrence."""

import numpy as np

from ...dtypes import DType
from ...errors import ModelError, UnsupportedOperatorError
from ...graph.formulas import Term, concatenate
from ...graph.operators.recurrent import Activation, Cell, Nonlinearity, Recurrence
from ...graph.products import accumulator, matmul
from .context import Converter, ImportContext
from .inputs import Inputs, optional_term, term
from .node import OnnxNode

__all__ = ["RECURRENT"]

DEFAULTS = {
    Cell.RNN: ("Tanh",),
    Cell.GRU: ("Sigmoid", "Tanh"),
    Cell.LSTM: ("Sigmoid", "Tanh", "Tanh"),
}
ALPHAS = {"Affine": 1.0, "Elu": 1.0, "HardSigmoid": 0.2, "LeakyRelu": 0.01, "ThresholdedRelu": 1.0}
BETAS = {"HardSigmoid": 0.5}


def _activations(node: OnnxNode, cell: Cell, directions: int) -> list[tuple[Activation, ...]]:
    """Activations of each direction; alphas and betas go to those that take them, in order."""
    names = node.texts("activations", DEFAULTS[cell] * directions)
    if len(names) != len(DEFAULTS[cell]) * directions:
        raise ModelError(f"{node}: {len(names)} activations")
    alphas = list(node.reals("activation_alpha", ()))
    betas = list(node.reals("activation_beta", ()))
    found = []
    for name in names:
        try:
            function = Nonlinearity(name.lower())
        except ValueError:
            raise UnsupportedOperatorError(f"{node}: activation {name!r}") from None
        alpha, beta = ALPHAS.get(name, 1.0), BETAS.get(name, 1.0 if name == "ScaledTanh" else 0.0)
        if (name in ALPHAS or name == "ScaledTanh") and alphas:
            alpha = float(alphas.pop(0))
        if name in ("Affine", "HardSigmoid", "ScaledTanh") and betas:
            beta = float(betas.pop(0))
        found.append((function, alpha, beta))
    size = len(DEFAULTS[cell])
    return [tuple(found[d * size : (d + 1) * size]) for d in range(directions)]


def convert_recurrent(context: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """RNN, GRU, LSTM in one direction or both."""
    cell = Cell(node.kind.lower())
    given, w, r = (term(context, node, inputs, place) for place in range(3))
    batch_first = bool(node.integer("layout", 0))
    x = given.transpose(1, 0, 2) if batch_first else given
    directions, hidden = r.shape[0], r.shape[2]
    names = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}
    reversals = names.get(node.text("direction", "forward"))
    if reversals is None or len(reversals) != directions:
        raise ModelError(f"{node}: {directions} directions of weights")
    states = [_state(context, inputs, place, x, r, batch_first) for place in (5, 6)]
    lengths = optional_term(context, inputs, 4)
    if lengths is None:
        lengths = x.constant(np.full(x.shape[1], x.shape[0]), DType.INT64)
    found = []
    for d, activations in enumerate(_activations(node, cell, directions)):
        operator = Recurrence(
            cell,
            activations,
            node.real("clip", 0.0) or float("inf"),
            reversals[d],
            bool(node.integer("linear_before_reset", 0)),
            bool(node.integer("input_forget", 0)),
        )
        parts = _direction(context, inputs, operator, d, x, w, r)
        operands = [*parts[:2], states[0][d], lengths.cast(DType.INT64), *parts[2:]]
        if cell == Cell.LSTM:
            operands = [*operands[:4], states[1][d], parts[2]]
        results = context.emit_many(operator, *(each.tensor for each in operands))
        found.append([Term(context, each) for each in results])
    y = concatenate([each[0].reshape(x.shape[0], 1, x.shape[1], hidden) for each in found], 1)
    last = [
        concatenate([each[k].unsqueeze(0) for each in found], 0) for k in range(1, len(found[0]))
    ]
    if batch_first:
        y, last = y.transpose(2, 0, 1, 3), [each.transpose(1, 0, 2) for each in last]
    return tuple(each.tensor for each in (y, *last))


def _state(
    context: ImportContext, inputs: Inputs, place: int, x: Term, r: Term, batch_first: bool
) -> list[Term]:
    """The initial state of each direction; zeros when it is left out."""
    value = optional_term(context, inputs, place)
    if value is None:
        return [x.constant(np.zeros((x.shape[1], r.shape[2])), x.dtype)] * r.shape[0]
    if batch_first:
        value = value.transpose(1, 0, 2)
    return [value.slice(0, d, d + 1).reshape(*value.shape[1:]) for d in range(r.shape[0])]


def _direction(
    context: ImportContext, inputs: Inputs, operator: Recurrence, d: int, x: Term, w: Term, r: Term
) -> list[Term]:
    """Projected input, recurrent weights, and bias or peepholes of one direction."""
    cell, hidden = operator.cell, r.shape[2]
    gates = cell.gates
    w_own = w.slice(0, d, d + 1).reshape(*w.shape[1:]).transpose(1, 0)
    r_own = r.slice(0, d, d + 1).reshape(*r.shape[1:]).transpose(1, 0)
    bias = optional_term(context, inputs, 3)
    if bias is None:
        bias = x.constant(np.zeros((r.shape[0], 2 * gates * hidden)), x.dtype)
    own = bias.slice(0, d, d + 1).reshape(2, gates * hidden)
    w_bias, r_bias = (own.slice(0, k, k + 1).reshape(gates * hidden) for k in range(2))
    flat = x.reshape(x.shape[0] * x.shape[1], x.shape[2])
    projected = matmul(flat, w_own, accumulator(x.dtype)).cast(x.dtype) + w_bias
    parts = []
    if cell == Cell.GRU:
        parts = [r_bias.slice(0, 2 * hidden, 3 * hidden)]
        zeros = x.constant(np.zeros(hidden), x.dtype)
        r_bias = concatenate([r_bias.slice(0, 0, 2 * hidden), zeros], 0)
    if cell == Cell.LSTM:
        peepholes = optional_term(context, inputs, 7)
        if peepholes is None:
            peepholes = x.constant(np.zeros((r.shape[0], 3 * hidden)), x.dtype)
        parts = [peepholes.slice(0, d, d + 1).reshape(3 * hidden)]
    projected = (projected + r_bias).reshape(x.shape[0], x.shape[1], gates * hidden)
    return [projected, r_own, *parts]


RECURRENT: dict[str, Converter] = {
    "GRU": convert_recurrent,
    "LSTM": convert_recurrent,
    "RNN": convert_recurrent,
}
