"""Activation functions in terms of operators of the graph."""

from collections.abc import Callable, Mapping
from math import sqrt

from ...graph.operators.elementwise import UnaryFunction
from .build import (
    add,
    clip,
    div,
    exp,
    less,
    maximum,
    mul,
    scalar,
    sigmoid,
    sub,
    unary,
    where,
)
from .context import ImportContext, Tensor
from .node import OnnxNode

__all__ = ["ACTIVATIONS"]

SELU_ALPHA = 1.6732632423543772
SELU_GAMMA = 1.0507009873554805
"""Source: Klambauer et al., Self-Normalizing Neural Networks, 2017."""


def _relu(ctx: ImportContext, node: OnnxNode, x: Tensor) -> Tensor:
    return maximum(ctx, x, 0)


def _leaky_relu(ctx: ImportContext, node: OnnxNode, x: Tensor) -> Tensor:
    return where(ctx, less(ctx, x, 0), mul(ctx, x, node.real("alpha", 0.01)), x)


def _elu(ctx: ImportContext, node: OnnxNode, x: Tensor) -> Tensor:
    below = mul(ctx, sub(ctx, exp(ctx, x), 1), node.real("alpha", 1))
    return where(ctx, less(ctx, x, 0), below, x)


def _celu(ctx: ImportContext, node: OnnxNode, x: Tensor) -> Tensor:
    alpha = node.real("alpha", 1)
    below = mul(ctx, sub(ctx, exp(ctx, div(ctx, x, alpha)), 1), alpha)
    return where(ctx, less(ctx, x, 0), below, x)


def _selu(ctx: ImportContext, node: OnnxNode, x: Tensor) -> Tensor:
    alpha, gamma = node.real("alpha", SELU_ALPHA), node.real("gamma", SELU_GAMMA)
    below = mul(ctx, sub(ctx, exp(ctx, x), 1), alpha)
    return mul(ctx, where(ctx, less(ctx, scalar(ctx, 0, x), x), x, below), gamma)


def _thresholded_relu(ctx: ImportContext, node: OnnxNode, x: Tensor) -> Tensor:
    above = less(ctx, scalar(ctx, node.real("alpha", 1), x), x)
    return where(ctx, above, x, scalar(ctx, 0, x))


def _hard_sigmoid(ctx: ImportContext, node: OnnxNode, x: Tensor) -> Tensor:
    line = add(ctx, mul(ctx, x, node.real("alpha", 0.2)), node.real("beta", 0.5))
    return clip(ctx, line, 0, 1)


def _hard_swish(ctx: ImportContext, node: OnnxNode, x: Tensor) -> Tensor:
    return mul(ctx, x, clip(ctx, add(ctx, mul(ctx, x, 1 / 6), 0.5), 0, 1))


def _sigmoid(ctx: ImportContext, node: OnnxNode, x: Tensor) -> Tensor:
    return sigmoid(ctx, x)


def _softplus(ctx: ImportContext, node: OnnxNode, x: Tensor) -> Tensor:
    """max(x, 0) + log(1 + exp(-abs(x))), which does not overflow; small logarithms as Kahan's."""
    size = exp(ctx, unary(ctx, UnaryFunction.NEG, unary(ctx, UnaryFunction.ABS, x)))
    whole = add(ctx, size, 1)
    rest = sub(ctx, whole, 1)
    log = div(ctx, mul(ctx, unary(ctx, UnaryFunction.LOG, whole), size), rest)
    some = less(ctx, scalar(ctx, 0, x), rest)
    return add(ctx, maximum(ctx, x, 0), where(ctx, some, log, size))


def _softsign(ctx: ImportContext, node: OnnxNode, x: Tensor) -> Tensor:
    return div(ctx, x, add(ctx, unary(ctx, UnaryFunction.ABS, x), 1))


def _mish(ctx: ImportContext, node: OnnxNode, x: Tensor) -> Tensor:
    return mul(ctx, x, unary(ctx, UnaryFunction.TANH, _softplus(ctx, node, x)))


def _swish(ctx: ImportContext, node: OnnxNode, x: Tensor) -> Tensor:
    return mul(ctx, x, sigmoid(ctx, mul(ctx, x, node.real("alpha", 1))))


def _gelu(ctx: ImportContext, node: OnnxNode, x: Tensor) -> Tensor:
    if node.text("approximate", "none") == "tanh":
        cube = mul(ctx, mul(ctx, mul(ctx, x, x), x), 0.044715)
        inner = mul(ctx, add(ctx, x, cube), sqrt(2 / 3.141592653589793))
        part = unary(ctx, UnaryFunction.TANH, inner)
    else:
        part = unary(ctx, UnaryFunction.ERF, mul(ctx, x, sqrt(0.5)))
    return mul(ctx, mul(ctx, x, 0.5), add(ctx, part, 1))


def _shrink(ctx: ImportContext, node: OnnxNode, x: Tensor) -> Tensor:
    bias, limit = node.real("bias", 0), node.real("lambd", 0.5)
    zero = scalar(ctx, 0, x)
    above = less(ctx, scalar(ctx, limit, x), x)
    below = less(ctx, x, -limit)
    inner = where(ctx, above, sub(ctx, x, bias), zero)
    return where(ctx, below, add(ctx, x, bias), inner)


ACTIVATIONS: Mapping[str, Callable[[ImportContext, OnnxNode, Tensor], Tensor]] = {
    "Celu": _celu,
    "Elu": _elu,
    "Gelu": _gelu,
    "HardSigmoid": _hard_sigmoid,
    "HardSwish": _hard_swish,
    "LeakyRelu": _leaky_relu,
    "Mish": _mish,
    "Relu": _relu,
    "Selu": _selu,
    "Shrink": _shrink,
    "Sigmoid": _sigmoid,
    "Softplus": _softplus,
    "Softsign": _softsign,
    "Swish": _swish,
    "ThresholdedRelu": _thresholded_relu,
    "com.microsoft.Gelu": _gelu,
}
