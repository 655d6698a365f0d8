"""A model of one operator, of operands that are drawn."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .build import Op, Tensor, write

__all__ = [
    *("BYTES", "Case", "Const", "F", "IMAGE", "In", "Out", "Operands", "State"),
    *("case", "floats", "i32", "restart", "rng", "weights"),
]

Array = NDArray[Any]


@dataclass
class _Draw:
    """Where random values come from."""

    generator: np.random.Generator = field(default_factory=lambda: np.random.default_rng(22))


_DRAW = _Draw()


def rng() -> np.random.Generator:
    """The generator of values."""
    return _DRAW.generator


def restart() -> None:
    """Draw the same values again."""
    _DRAW.generator = np.random.default_rng(22)


@dataclass(frozen=True)
class Case:
    """A model and inputs.  dtype: the element type under which the table lists it."""

    kind: str
    dtype: str
    content: bytes
    inputs: tuple[Array, ...]


@dataclass(frozen=True)
class In:
    """An operand that is given.  low, high: limits of its values; scale: how it is quantised.

    Of bytes without limits all 256 are there, if there is room.
    """

    shape: tuple[int, ...]
    dtype: str = "float32"
    low: float = -3.0
    high: float = 3.0
    scale: float = 0.0
    zero: int = 0

    def draw(self) -> Array:
        """Random values."""
        if self.dtype == "bool":
            return rng().integers(0, 2, self.shape).astype(bool)
        if self.dtype.startswith("float"):
            return rng().uniform(self.low, self.high, self.shape).astype(self.dtype)
        info = np.iinfo(self.dtype)
        full = (self.low, self.high) == (-3.0, 3.0)
        low, high = (info.min, info.max) if full and info.bits < 32 else (self.low, self.high)
        if full and info.bits == 8 and prod(self.shape) >= 256:
            return (
                rng().permuted(np.resize(np.arange(low, high + 1), self.shape)).astype(self.dtype)
            )
        if full and info.bits >= 32:
            low, high = -50, 50
        return rng().integers(int(low), int(high), self.shape, endpoint=True).astype(self.dtype)


@dataclass(frozen=True)
class Const:
    """An operand that the file has.  axis: of ``scales``."""

    data: Array
    scales: tuple[float, ...] = ()
    zeros: tuple[int, ...] = ()
    axis: int = 0


@dataclass(frozen=True)
class State:
    """An operand that LiteRT keeps from one run to the next."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    scale: float = 0.0
    zero: int = 0


@dataclass(frozen=True)
class Out:
    """A result; its shape is LiteRT's business where it is left out."""

    dtype: str = "float32"
    scale: float = 0.0
    zero: int = 0
    shape: tuple[int, ...] = ()


EMPTY: Mapping[str, Any] = {}


def case(
    kind: str,
    operands: list[In | Const | State | None],
    outputs: list[Out],
    table: str = "",
    options: Mapping[str, Any] = EMPTY,
    label: str = "",
    version: int = 1,
    custom: bytes = b"",
    between: Sequence[Out] = (),
) -> Case:
    """A model of one operator.  between: its intermediate tensors."""
    tensors: list[Tensor] = []
    inputs: list[int] = []
    given: list[Array] = []
    numbers: list[int] = []
    for each in operands:
        if each is None:
            numbers.append(-1)
            continue
        numbers.append(len(tensors))
        name = f"x{len(tensors)}"
        match each:
            case In():
                inputs.append(len(tensors))
                given.append(each.draw())
                quantised = ((each.scale,), (each.zero,)) if each.scale else ((), ())
                tensors.append(Tensor(name, each.shape, each.dtype, None, *quantised))
            case State():
                quantised = ((each.scale,), (each.zero,)) if each.scale else ((), ())
                tensors.append(Tensor(name, each.shape, each.dtype, None, *quantised, 0, True))
            case Const():
                tensors.append(
                    Tensor(
                        name, each.data.shape, str(each.data.dtype), each.data, each.scales,
                        each.zeros, each.axis,
                    )
                )  # fmt: skip
    results = []
    for place, out in enumerate(outputs):
        results.append(len(tensors))
        quantised = ((out.scale,), (out.zero,)) if out.scale else ((), ())
        tensors.append(Tensor(f"y{place}", out.shape, out.dtype, None, *quantised))
    places = tuple(range(len(tensors), len(tensors) + len(between)))
    for place, each in zip(places, between, strict=True):
        tensors.append(
            Tensor(f"between{place}", (0,), each.dtype, None, (each.scale,), (each.zero,))
        )
    op = Op(kind, tuple(numbers), tuple(results), table, options, version, custom, places)
    content = write(tensors, [op], inputs, results)
    first = next((e for e in operands if isinstance(e, In)), None)
    return Case(kind, label or (first.dtype if first else "float32"), content, tuple(given))


def i32(*values: int) -> Const:
    """A constant list of integers."""
    return Const(np.asarray(values, np.int32))


def floats(*shape: int) -> Const:
    """Random constant floats."""
    return Const(rng().standard_normal(shape).astype(np.float32))


F = Out()
IMAGE = In((1, 7, 6, 4))
BYTES = (("int8", 3), ("uint8", 120))
Operands = list[In | Const | State | None]


def weights(dtype: str, shape: tuple[int, ...], axis: int, scale: float) -> tuple[Const, Const]:
    """Weights and bias; int8 with a scale for each output."""
    outputs = shape[axis] if axis >= 0 else shape[0]
    bias = rng().integers(-900, 900, outputs).astype(np.int32)
    if dtype == "uint8":
        w = Const(rng().integers(0, 256, shape).astype(np.uint8), (0.07,), (117,))
        return w, Const(bias, (scale * 0.07,), (0,))
    data = rng().integers(-127, 128, shape).astype(np.int8)
    if axis < 0:
        return Const(data, (0.07,), (0,)), Const(bias, (scale * 0.07,), (0,))
    scales = tuple(rng().uniform(0.005, 0.1, outputs).astype(np.float32).tolist())
    return Const(data, scales, (0,) * outputs, axis), Const(
        bias, tuple(s * scale for s in scales), (0,) * outputs
    )
