"""What kernels of layers have in common: their loops, windows, finish and parameters."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..graph.fuse import Layer
from ..graph.ir import Graph
from ..graph.ops import Requantize
from .activation import Activation
from .ir import (
    Affine,
    Buffer,
    Fold,
    Kernel,
    Loop,
    LoopKind,
    Product,
    Ref,
    Requantized,
    Scope,
    Stage,
    Value,
    var,
)

__all__ = [
    "Array",
    "LoweredLayer",
    "finish_of",
    "outer_loops",
    "requantized",
    "window_of",
    "windowed",
]

Array = NDArray[np.generic]


@dataclass(frozen=True, slots=True)
class LoweredLayer:
    """A kernel, its constants by buffer name, and the activations it reads and writes.

    inexact_pairs: of a residual add: operand pairs (of 65,536) whose result differs from the float
    formula.
    """

    kernel: Kernel
    constants: dict[str, Array] = field(compare=False)
    inputs: tuple[Activation, ...]
    output: Activation
    inexact_pairs: int = 0


def outer_loops(output: Activation, lane: str = "l") -> tuple[Loop, ...]:
    return (
        Loop("c", output.blocks),
        Loop("y", output.height),
        Loop("x", output.width),
        Loop(lane, output.lanes, LoopKind.LANE),
    )


def _blocked(values: Array, output: Activation, fill: float = 0) -> Array:
    """One value a channel of ``output`` as [blocks, lanes]."""
    padded = np.full(output.blocks * output.lanes, fill, values.dtype)
    padded[output.channel_places] = values
    return padded.reshape(-1, output.lanes)


def requantized(
    graph: Graph, layer: Layer, bias: Array, output: Activation
) -> tuple[Requantized, dict[str, Array]]:
    """The finish of a sum for each channel, indexed by ``c`` and ``l``, and its constants."""
    node = next(n for n in layer.nodes if isinstance(n.operator, Requantize))
    operator = node.operator
    assert isinstance(operator, Requantize)
    constants = {
        "bias": _blocked(bias.astype(np.int32), output),
        "scale": _blocked(graph.constants[node.inputs[1]].astype(np.float32), output, 1),
    }
    return finish_of(
        constants, "c", "l", operator.zero_point, operator.low, operator.high
    ), constants


def finish_of(
    constants: dict[str, Array], block: str, lane: str, zero_point: int, low: int, high: int
) -> Requantized:
    shape = constants["bias"].shape
    index = (var(block) if shape[0] > 1 else Affine(), var(lane))
    bias = Ref(Buffer("bias", shape, "int32", Scope.PAR), index)
    scale = Ref(Buffer("scale", shape, "float32", Scope.PAR), index)
    return Requantized(bias, scale, zero_point, low, high)


def window_of(
    x: Activation,
    strides: tuple[int, int],
    before: tuple[int, int],
    dilations: tuple[int, int] = (1, 1),
) -> Ref:
    (sy, sx), (top, left), (dy, dx) = strides, before, dilations
    row = var("y") * sy + var("ky") * dy + -top
    return x.at(var("c"), row, var("x") * sx + var("kx") * dx + -left, var("l"))


def windowed(
    layer: Layer,
    x: Activation,
    output: Activation,
    kernel: tuple[int, int],
    fold: Fold,
    value: Value,
    finish: Requantized | None,
    constants: dict[str, Array],
) -> LoweredLayer:
    """One stage over the windows of ``x``."""
    inner = (Loop("ky", kernel[0]), Loop("kx", kernel[1]))
    place = (var("c"), var("y"), var("x"), var("l"))
    loops, reduction = (*outer_loops(output), *inner), frozenset({"ky", "kx"})
    stage = Stage("finish", loops, reduction, output.at(*place), fold, value, finish)
    macs = output.height * output.width * output.channels * kernel[0] * kernel[1]
    kernel_ = Kernel(layer.name, (stage,), macs if isinstance(value, Product) else 0)
    return LoweredLayer(kernel_, constants, (x,), output)
