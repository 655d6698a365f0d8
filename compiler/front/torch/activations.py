"""Activation functions."""

from math import pi, sqrt

from ...dtypes import DType
from ...errors import UnsupportedOperatorError
from ...graph.formulas import Term, widened
from ...graph.operators.elementwise import UnaryFunction as U
from .context import Context, Converter, Number

__all__ = ["ACTIVATIONS"]


def gelu(context: Context, x: Term, approximate: str = "none") -> Term:
    """``x * Phi(x)``, Phi of the normal distribution, or its approximation by tanh."""
    given, x = x, widened(x)
    if approximate == "tanh":
        inner = (x + x * x * x * 0.044715) * sqrt(2 / pi)
        return (x * 0.5 * (inner.tanh() + 1.0)).cast(given.dtype)
    return (x * 0.5 * ((x * sqrt(0.5)).unary(U.ERF) + 1.0)).cast(given.dtype)


def hardsigmoid(context: Context, x: Term) -> Term:
    """``min(max(x + 3, 0), 6) / 6``."""
    return (x + 3.0).clip(0.0, 6.0) * (1 / 6)


def leaky_relu(context: Context, x: Term, negative_slope: Number = 0.01) -> Term:
    """``x``, times the slope below 0."""
    return (x > 0.0).where(x, x * negative_slope, x.dtype)


def prelu(context: Context, x: Term, weight: Term) -> Term:
    """``x``, times the weight of its channel below 0."""
    if weight.rank == 1 and x.rank > 1:
        weight = weight.reshape(-1, *(1,) * (x.rank - 2))
    return (x > 0.0).where(x, x * weight, x.dtype)


def elu(
    context: Context, x: Term, alpha: Number = 1, scale: Number = 1, input_scale: Number = 1
) -> Term:
    """``scale * (x if x > 0 else alpha * (exp(x * input_scale) - 1))``."""
    wider = widened(x)
    low = ((wider * input_scale).exp() - 1.0) * (alpha * scale)
    return (wider > 0.0).where(wider * scale, low, wider.dtype).cast(x.dtype)


def softplus(context: Context, x: Term, beta: Number = 1, threshold: Number = 20) -> Term:
    """``log(1 + exp(beta * x)) / beta``; ``x`` itself above the threshold."""
    scaled = widened(x) * beta
    soft = scaled.softplus() / float(beta)
    return (scaled > threshold).where(widened(x), soft, soft.dtype).cast(x.dtype)


def glu(context: Context, x: Term, dim: int = -1) -> Term:
    """One half times the sigmoid of the other."""
    half = x.shape[dim] // 2
    gate = widened(x.slice(dim, half, 2 * half)).sigmoid()
    return (widened(x.slice(dim, 0, half)) * gate).cast(x.dtype)


def softshrink(context: Context, x: Term, lambd: Number = 0.5) -> Term:
    """Nearer to 0 by ``lambd``."""
    low = (x < -lambd).where(x + lambd, x * 0.0, x.dtype)
    return (x > lambd).where(x - lambd, low, x.dtype)


def hardshrink(context: Context, x: Term, lambd: Number = 0.5) -> Term:
    """0 within ``lambd`` of 0."""
    return ((x < -lambd) | (x > lambd) | x.unary(U.ISNAN)).where(x, 0.0, x.dtype)


def threshold(context: Context, x: Term, threshold: Number, value: Number) -> Term:
    """``value`` where ``x`` is not above the threshold."""
    return (x <= x.constant(threshold, x.dtype)).where(value, x, x.dtype)


def logit(context: Context, x: Term, eps: float | None = None) -> Term:
    """``log(x / (1 - x))``."""
    x = x.cast(context.dtype)
    if eps is not None:
        x = x.clip(eps, 1 - eps)
    return (x / (1.0 - x)).log()


def softmax(
    context: Context, x: Term, dim: int, half_to_float: bool = False, dtype: DType | None = None
) -> Term:
    """``exp(x - max)`` over its sum."""
    if x.rank == 0:
        return x.constant(1.0, context.dtype)
    return (
        widened(x.cast(dtype or x.dtype)).cast(_at_least_float(x)).softmax(dim).cast(context.dtype)
    )


def log_softmax(
    context: Context, x: Term, dim: int, half_to_float: bool = False, dtype: DType | None = None
) -> Term:
    """``x - max - log(sum(exp(x - max)))``."""
    if x.rank == 0:
        return x.constant(0.0, context.dtype)
    given = widened(x.cast(dtype or x.dtype)).cast(_at_least_float(x))
    shifted = given - given.max(dim, keep=True)
    return (shifted - shifted.exp().sum(dim, keep=True).log()).cast(context.dtype)


def _at_least_float(x: Term) -> DType:
    return DType.FLOAT64 if x.dtype == DType.FLOAT64 else DType.FLOAT32


def rrelu(
    context: Context, x: Term, lower: Number = 1 / 8, upper: Number = 1 / 3, training: bool = False
) -> Term:
    """LeakyReLU by the mean of two slopes; in training they are drawn."""
    if training:
        raise UnsupportedOperatorError(f"{context.where}: rrelu in training; use model.eval()")
    return leaky_relu(context, x, (lower + upper) / 2)


ACTIVATIONS: dict[str, Converter] = {
    "aten._log_softmax": log_softmax,
    "aten._softmax": softmax,
    "aten.celu": lambda context, x, alpha=1.0: elu(context, x, alpha, 1, 1 / alpha),
    "aten.elu": elu,
    "aten.gelu": gelu,
    "aten.glu": glu,
    "aten.hardshrink": hardshrink,
    "aten.hardsigmoid": hardsigmoid,
    "aten.hardswish": lambda context, x: x * hardsigmoid(context, x),
    "aten.hardtanh": lambda context, x, min_val=-1, max_val=1: x.clip(min_val, max_val),
    "aten.leaky_relu": leaky_relu,
    "aten.log_sigmoid": lambda context, x: (-(-widened(x)).softplus()).cast(x.dtype),
    "aten.log_softmax": log_softmax,
    "aten.logit": logit,
    "aten.mish": lambda context, x: (widened(x) * widened(x).softplus().tanh()).cast(x.dtype),
    "aten.prelu": prelu,
    "aten.relu": lambda context, x: x.maximum(0),
    "aten.relu6": lambda context, x: x.clip(0, 6),
    "aten.rrelu": rrelu,
    "aten.selu": lambda context, x: elu(context, x, 1.6732632423543772848, 1.0507009873554804934),
    "aten.sigmoid": lambda context, x: widened(x.cast(context.dtype)).sigmoid().cast(context.dtype),
    "aten.silu": lambda context, x: (widened(x) * widened(x).sigmoid()).cast(x.dtype),
    "aten.softmax": softmax,
    "aten.softplus": softplus,
    "aten.softshrink": softshrink,
    "aten.softsign": lambda context, x: x / (x.abs() + 1.0),
    "aten.threshold": threshold,
}
