"""Nonlinearities of recurrent cells at the points where their pieces meet, by ONNX's formulas."""

from collections.abc import Callable
from math import exp, log, tanh

import numpy as np
import pytest

from dovetail.compiler.graph.operators.recurrent import NUMPY, Nonlinearity

FORMULAS: dict[str, Callable[[float, float, float], float]] = {
    "affine": lambda x, a, b: a * x + b,
    "elu": lambda x, a, b: x if x >= 0 else a * (exp(x) - 1),
    "hardsigmoid": lambda x, a, b: min(max(a * x + b, 0), 1),
    "leakyrelu": lambda x, a, b: x if x >= 0 else a * x,
    "relu": lambda x, a, b: max(0, x),
    "scaledtanh": lambda x, a, b: a * tanh(b * x),
    "sigmoid": lambda x, a, b: 1 / (1 + exp(-x)),
    "softplus": lambda x, a, b: log(1 + exp(x)),
    "softsign": lambda x, a, b: x / (1 + abs(x)),
    "tanh": lambda x, a, b: tanh(x),
    "thresholdedrelu": lambda x, a, b: x if x > a else 0,
}
"""The table of activation functions on ONNX's page of the operator RNN.  The page has the threshold
itself among what stays; ONNX Runtime does not.
"""


@pytest.mark.parametrize("name", list(Nonlinearity))
def test_nonlinearities_are_those_of_the_standard(name: Nonlinearity) -> None:
    for alpha, beta in ((0.5, 0.25), (1.0, -1.0), (-2.0, 0.5), (0.0, 0.0)):
        points = [0.0, -0.0, alpha, beta, *np.linspace(-3, 3, 25), 1e-6, -1e-6, 20.0, -20.0]
        found = NUMPY[name](np.array(points), alpha, beta)
        wanted = [FORMULAS[name.value](x, alpha, beta) for x in points]
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12, err_msg=f"{alpha} {beta}")
