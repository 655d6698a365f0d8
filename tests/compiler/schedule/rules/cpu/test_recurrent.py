"""Loops of recurrences against their NumPy meaning."""

import numpy as np
import pytest
from numpy.typing import NDArray

from dovetail.compiler.errors import GraphError
from dovetail.compiler.graph.operators.recurrent import Cell, Nonlinearity, Recurrence
from dovetail.compiler.graph.types import TensorType

from .single import interpreted

RNG = np.random.default_rng(0)
SIGMOID, TANH = (Nonlinearity.SIGMOID, 1.0, 0.0), (Nonlinearity.TANH, 1.0, 0.0)
ACTIVATIONS = {Cell.RNN: (TANH,), Cell.GRU: (SIGMOID, TANH), Cell.LSTM: (SIGMOID, TANH, TANH)}


def normal(*shape: int) -> NDArray[np.float32]:
    return RNG.standard_normal(shape).astype(np.float32)


def operands(cell: Cell, steps: int, batch: int, hidden: int) -> list[NDArray[np.generic]]:
    """Random ones; sequences of different lengths."""
    width = cell.gates * hidden
    lengths = RNG.integers(0, steps + 1, batch)
    found = [normal(steps, batch, width), normal(hidden, width), normal(batch, hidden), lengths]
    if cell == Cell.GRU:
        found.append(normal(hidden))
    if cell == Cell.LSTM:
        found += [normal(batch, hidden), normal(3 * hidden)]
    return found


@pytest.mark.parametrize("hidden", [3, 19])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("variant", [False, True])
@pytest.mark.parametrize("cell", Cell)
def test_loops_compute_the_recurrence(
    cell: Cell, variant: bool, reverse: bool, hidden: int
) -> None:
    clip = 0.5 if variant else float("inf")
    operator = Recurrence(cell, ACTIVATIONS[cell], clip, reverse, variant, variant)
    given = operands(cell, 3, 2, hidden)
    for found, expected in zip(
        interpreted(operator, *given), operator.evaluate(given), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("function", Nonlinearity)
def test_loops_compute_every_activation(function: Nonlinearity) -> None:
    operator = Recurrence(Cell.RNN, ((function, 0.3, 0.6),), float("inf"))
    given = operands(Cell.RNN, 2, 2, 3)
    for found, expected in zip(
        interpreted(operator, *given), operator.evaluate(given), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_operands_of_wrong_shapes_are_refused() -> None:
    operator = Recurrence(Cell.RNN, (TANH,), float("inf"))
    kinds = [TensorType(each.shape, str(each.dtype)) for each in operands(Cell.RNN, 2, 2, 3)]
    kinds[1] = TensorType((3, 4), "float32")
    with pytest.raises(GraphError, match=r"required float32\[3, 3\]"):
        operator.result(tuple(kinds))
    with pytest.raises(GraphError, match="required 2 activations"):
        Recurrence(Cell.GRU, (TANH,), float("inf"))
