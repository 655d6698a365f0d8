"""Operators on each element, norms, and what is rare in networks."""

from collections.abc import Sequence
from math import prod

import numpy as np

from .drawing import Drawing

__all__ = [
    "chain",
    "choose",
    "clip",
    "function",
    "normalise",
    "other_function",
    "pair",
    "with_constant",
]

INT64, F32 = np.int64, np.float32
FUNCTIONS = (
    "Relu", "Sigmoid", "Tanh", "HardSwish", "HardSigmoid", "LeakyRelu", "Elu", "Abs", "Neg", "Cos",
    "Softplus", "Erf", "Exp", "Softsign", "Sqrt", "Selu", "Ceil", "Round", "Sign", "Sin", "Celu",
    "ThresholdedRelu", "Mish", "Floor", "Identity",
)  # fmt: skip


def function(d: Drawing, x: str) -> list[str]:
    """A function of each element."""
    kind = d.random.choice(FUNCTIONS)
    match kind:
        case "LeakyRelu" | "Elu" | "Celu" | "ThresholdedRelu":
            alphas = (0.01, 0.1, 0.3, 1.0, 2.0, 1e-7)
            signed = kind == "LeakyRelu"
            return d.node(kind, [x], alpha=d.random.choice((*alphas, *[0.0, -0.5] * signed)))
        case "HardSigmoid":
            alpha = d.random.choice((0.2, 1 / 6, 1 / 6, 0.0, -0.3, 40.0))
            return d.node(kind, [x], alpha=alpha, beta=d.random.choice((0.5, 0.5, -0.2, 1.5)))
    return d.node(kind, [x])


def clip(d: Drawing, x: str) -> list[str]:
    """Clip or Relu, of one side perhaps."""
    low, high = sorted(d.rng.normal(0, np.abs(d.values[x]).max() / 2 + 0.1, 2).astype(F32))
    most = np.finfo(F32).max
    sides = d.random.choice(
        (
            *(
                (low, high),
                (F32(0), F32(6)),
                (low, None),
                (None, high),
                (high, low),
                (F32(0), most),
            ),
            *((low, low), (-most, high), (F32(-np.inf), high), (None, None)),
        )
    )
    given = ["" if side is None else d.constant(side) for side in sides]
    return d.node("Relu", [x]) if d.chance(0.4) else d.node("Clip", [x, *given])


def chain(d: Drawing, x: str) -> list[str]:
    """A function of several operators: SiLU, GELU, HardSwish, x + f(x), PRelu."""
    (half, one) = (d.constant(F32(0.5)), d.constant(F32(1)))
    match d.random.randrange(5):
        case 0:
            inner = d.node(d.random.choice(("Sigmoid", "HardSigmoid", "Tanh")), [x])
            inner = [d.again(inner[0])] if d.chance(0.5) else inner
            return d.node(d.random.choice(("Mul", "Add")), [x, *inner])
        case 1:
            inner = d.node("Div", [x, d.constant(F32(np.sqrt(2)))])
            inner = d.node("Add", [*d.node("Erf", inner), one])
            return d.node("Mul", [*d.node("Mul", [x, *inner]), half])
        case 2:
            shape = (d.shape(x)[1], *[1] * (len(d.shape(x)) - 2)) if len(d.shape(x)) > 1 else (1,)
            slopes = d.rng.uniform(0, 0.5, d.random.choice((shape, (1,)))).astype(F32)
            return d.node("PRelu", [x, d.constant(slopes)])
        case 3:
            inner = d.node("Add", [x, d.constant(F32(3))])
            inner = d.node("Clip", [*inner, d.constant(F32(0)), d.constant(F32(6))])
            return d.node("Div", [*d.node("Mul", [x, *inner]), d.constant(F32(6))])
        case _:
            return d.node(d.random.choice(("Mul", "Add", "Sub", "Max", "Min")), [x, x])


def pair(d: Drawing, x: str) -> list[str]:
    """An operator of two tensors that broadcast."""
    kind = d.random.choice(("Add", "Add", "Mul", "Mul", "Sub", "Div", "Max", "Min"))
    fitting = [name for name in d.floats if _broadcasts(d.shape(name), d.shape(x))]
    other = d.random.choice(fitting[-8:])
    return d.node(kind, [x, other] if d.chance(0.6) else [other, x])


def with_constant(d: Drawing, x: str) -> list[str]:
    """An operator with a constant: of one number, of channels, or of any shape that broadcasts."""
    kind = d.random.choice(("Add", "Mul", "Sub", "Div", "Max", "Min", "Pow"))
    shape = d.shape(x)
    which = d.random.randrange(4)
    sizes: tuple[int, ...] = ()
    if which == 1 and len(shape) > 1:
        sizes = (shape[1], *[1] * (len(shape) - 2))
    elif which > 1:
        sizes = tuple(n if d.chance(0.4) else 1 for n in shape)
    if kind == "Pow":
        return d.node(kind, [x, d.constant(F32(d.random.choice((1, 2, 3, 0, 4))))])
    values = (d.rng.normal(0, 1, sizes) + (kind == "Div") * 3).astype(F32)
    if d.chance(0.2):
        values = np.rint(values * d.random.choice((1, 4, 100))) + F32(0.5) * (kind == "Div")
    given = [x, d.constant(values)]
    if d.quantized and d.chance(0.5):
        given[1] = d.quantize(given[1])
    return d.node(kind, given if d.chance(0.7) else given[::-1])


def normalise(d: Drawing, x: str) -> list[str]:
    """BatchNormalization, InstanceNormalization, LayerNormalization, LpNormalization, Softmax."""
    shape = d.shape(x)
    axis = d.random.randrange(-len(shape), len(shape))
    match d.random.randrange(5):
        case 0 if len(shape) > 1:
            numbers = [d.rng.uniform(0.5, 1.5, shape[1]).astype(F32) for _ in range(4)]
            return d.node("BatchNormalization", [x, *map(d.constant, numbers)])
        case 1 if prod(shape[2:]) > 1:
            numbers = [d.rng.uniform(0.5, 1.5, shape[1]).astype(F32) for _ in range(2)]
            return d.node("InstanceNormalization", [x, *map(d.constant, numbers)])
        case 2 if shape[-1] > 1:
            numbers = [d.rng.uniform(0.5, 1.5, shape[-1]).astype(F32) for _ in range(2)]
            return d.node("LayerNormalization", [x, *map(d.constant, numbers)])
        case 3:
            return d.node("LpNormalization", [x], axis=axis, p=d.random.choice((1, 2, 2)))
    given = {"axis": axis} if d.chance(0.8) else {}
    return d.node(d.random.choice(("Softmax", "Softmax", "LogSoftmax")), [x], **given)


def choose(d: Drawing, x: str) -> list[str]:
    """Where one is less than another."""
    fitting = [name for name in d.floats if _broadcasts(d.shape(name), d.shape(x))]
    a, b = d.random.choice(fitting), d.random.choice(fitting)
    less = d.node("Less", [x, a])
    return d.node("Where", [*less, x, b])


def other_function(d: Drawing, x: str) -> list[str]:
    """Reductions, sums along an axis, and the largest: what is rare in networks."""
    axis = d.random.randrange(len(d.shape(x)))
    match d.random.randrange(4):
        case 0:
            return d.node(
                "CumSum",
                [x, d.constant(np.int64(axis))],
                exclusive=axis % 2,
                reverse=d.random.choice((0, 1)),
            )
        case 1:
            count = d.constant(np.array([1], INT64))
            return d.node("TopK", [x, count], 2, axis=axis)[:1]
        case 2:
            return d.node("Einsum", [x], equation="ab...->ba...")
    return d.node(d.random.choice(("ReduceL2", "ReduceL1", "ReduceSumSquare")), [x])


def _broadcasts(shape: Sequence[int], to: Sequence[int]) -> bool:
    pairs = zip(reversed(shape), reversed(to), strict=False)
    return len(shape) <= len(to) and all(a in (1, b) for a, b in pairs)
