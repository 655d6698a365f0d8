"""Activation functions in terms of operators of the graph."""

from collections.abc import Callable, Mapping
from math import sqrt

from ...graph.formulas import Term
from ...graph.operators.elementwise import UnaryFunction
from .node import OnnxNode

__all__ = ["ACTIVATIONS"]

SELU_ALPHA = 1.6732632423543772
SELU_GAMMA = 1.0507009873554805
"""Source: Klambauer et al., Self-Normalizing Neural Networks, 2017."""


def _elu(node: OnnxNode, x: Term) -> Term:
    below = (x.exp() - 1) * node.real("alpha", 1)
    return (x < 0).where(below, x, x.dtype)


def _celu(node: OnnxNode, x: Term) -> Term:
    alpha = node.real("alpha", 1)
    below = ((x / alpha).exp() - 1) * alpha
    return (x < 0).where(below, x, x.dtype)


def _selu(node: OnnxNode, x: Term) -> Term:
    alpha, gamma = node.real("alpha", SELU_ALPHA), node.real("gamma", SELU_GAMMA)
    below = (x.exp() - 1) * alpha
    return (x > 0).where(x, below, x.dtype) * gamma


def _hard_sigmoid(node: OnnxNode, x: Term) -> Term:
    return (x * node.real("alpha", 0.2) + node.real("beta", 0.5)).clip(0, 1)


def _softplus(node: OnnxNode, x: Term) -> Term:
    """max(x, 0) + log(1 + exp(-abs(x))), which does not overflow; small logarithms as Kahan's."""
    size = (-x.abs()).exp()
    whole = size + 1
    rest = whole - 1
    log = whole.log() * size / rest
    some = rest > 0
    return x.maximum(0) + some.where(log, size, x.dtype)


def _gelu(node: OnnxNode, x: Term) -> Term:
    if node.text("approximate", "none") == "tanh":
        cube = x * x * x * 0.044715
        part = ((x + cube) * sqrt(2 / 3.141592653589793)).tanh()
    else:
        part = (x * sqrt(0.5)).unary(UnaryFunction.ERF)
    return x * 0.5 * (part + 1)


def _shrink(node: OnnxNode, x: Term) -> Term:
    bias, limit = node.real("bias", 0), node.real("lambd", 0.5)
    zero = x.constant(0, x.dtype)
    above = x > limit
    if not x.dtype.is_signed:
        return above.where(x - bias, zero, x.dtype)
    below = x < -limit
    inner = above.where(x - bias, zero, x.dtype)
    return below.where(x + bias, inner, x.dtype)


ACTIVATIONS: Mapping[str, Callable[[OnnxNode, Term], Term]] = {
    "Celu": _celu,
    "Elu": _elu,
    "Gelu": _gelu,
    "HardSigmoid": _hard_sigmoid,
    "HardSwish": lambda node, x: x * (x * (1 / 6) + 0.5).clip(0, 1),
    "LeakyRelu": lambda node, x: (x < 0).where(x * node.real("alpha", 0.01), x, x.dtype),
    "Mish": lambda node, x: x * _softplus(node, x).tanh(),
    "Relu": lambda node, x: x.maximum(0),
    "Selu": _selu,
    "Shrink": _shrink,
    "Sigmoid": lambda node, x: x.sigmoid(),
    "Softplus": _softplus,
    "Softsign": lambda node, x: x / (x.abs() + 1),
    "Swish": lambda node, x: x * (x * node.real("alpha", 1)).sigmoid(),
    "ThresholdedRelu": lambda node, x: (x > node.real("alpha", 1)).where(x, 0, x.dtype),
    "com.microsoft.Gelu": _gelu,
}
