"""What stands for each tensor of a model while it is imported.

A QDQ model computes on float tensors that were just dequantised and will be quantised at once.
While the importer walks the model each float tensor is one of the values below; ``quantize`` turns
it into an integer operator of the graph IR.  Zero points are those of int8: of uint8 less 128.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....graph.ir import GraphBuilder
from ....graph.operators.integer.rules import Pads, Pair
from ....graph.operators.movement import Concatenate, Reshape, Transpose

__all__ = [
    "F32",
    "NCHW_TO_NHWC",
    "Accumulated",
    "Array",
    "Averaged",
    "Floating",
    "Function",
    "Integer",
    "Joined",
    "Real",
    "RealConstant",
    "Softmaxed",
    "Sum",
    "Value",
    "identity_order",
    "join_tensors",
    "permuted",
    "to_model_order",
    "to_nhwc",
]

Array = NDArray[Any]
F32 = np.float32
NCHW_TO_NHWC = (0, 2, 3, 1)


@dataclass(frozen=True, slots=True)
class Integer:
    """A tensor of the graph, int8.

    permutation: dimension ``i`` of what is stored is dimension ``permutation[i]`` of the model's.
    unsigned: the model's tensor is uint8, 128 more than what is stored.
    """

    name: str
    permutation: tuple[int, ...]
    unsigned: bool = False


@dataclass(frozen=True, slots=True)
class Floating:
    """A float32 tensor of the graph, before it is quantised; ``permutation`` as of ``Integer``."""

    name: str
    permutation: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Real:
    """``(tensor - zero_point) * scale``, per tensor."""

    tensor: Integer
    scale: np.float32
    zero_point: int


@dataclass(frozen=True, slots=True)
class RealConstant:
    """``(values - zero_points) * scales`` along ``axis``: weights and biases."""

    values: Array
    scales: NDArray[np.float32]
    zero_points: NDArray[np.int64]
    axis: int


@dataclass(frozen=True, slots=True)
class Accumulated:
    """int32 tensor times ``x_scale * w_scales``, then a clip to ``low..high`` in real units.

    w_scales: one, or one a channel (the stored tensor's last dimension).
    """

    tensor: Integer
    x_scale: np.float32
    w_scales: NDArray[np.float32]
    low: float = -np.inf
    high: float = np.inf


@dataclass(frozen=True, slots=True)
class Sum:
    """Sum of two dequantised tensors, then a clip."""

    a: Real
    b: Real
    low: float = -np.inf
    high: float = np.inf


@dataclass(frozen=True, slots=True)
class Averaged:
    """Average over windows of a dequantised tensor, padded with zeros that count, or do not.

    permutation: the model's dimensions as batch, height, width, channels.
    rounds_mean: the zero point is added to the mean before it is rounded (AveragePool), not after
    (GlobalAveragePool).  keeps: height and width stay as dimensions of size 1.
    """

    real: Real
    permutation: tuple[int, ...]
    kernel: Pair
    strides: Pair
    pads: Pads
    rounds_mean: bool
    keeps: bool = True
    counts: bool = True


@dataclass(frozen=True, slots=True)
class Joined:
    """Dequantised tensors one after the other along dimension ``axis`` of the model."""

    parts: tuple[Real, ...]
    axis: int


@dataclass(frozen=True, slots=True)
class Softmaxed:
    """Softmax over the last dimension of a dequantised tensor."""

    real: Real


@dataclass(frozen=True, slots=True)
class Function:
    """A function of each element of a dequantised tensor: float32[256], by the int8 value."""

    real: Real
    values: NDArray[np.float32]


Value = (
    Integer
    | Floating
    | Real
    | RealConstant
    | Accumulated
    | Sum
    | Averaged
    | Joined
    | Softmaxed
    | Function
)


def identity_order(rank: int) -> tuple[int, ...]:
    """The permutation that moves nothing."""
    return tuple(range(rank))


def join_tensors(
    graph: GraphBuilder, tensors: Sequence[Integer], axis: int, stem: str, origin: str
) -> Integer:
    """Tensors one after the other along dimension ``axis`` of the model."""
    rank = len(tensors[0].permutation)
    order = NCHW_TO_NHWC if rank == len(NCHW_TO_NHWC) else identity_order(rank)
    names = tuple(permuted(graph, tensor, order, origin) for tensor in tensors)
    name = graph.node(Concatenate(order.index(axis)), names, stem, origin)
    return Integer(name, order, all(tensor.unsigned for tensor in tensors))


def to_nhwc(graph: GraphBuilder, tensor: Integer, origin: str) -> str:
    """The model's NCHW tensor, stored as NHWC."""
    return permuted(graph, tensor, NCHW_TO_NHWC, origin)


def to_model_order(graph: GraphBuilder, tensor: Integer | Floating, origin: str) -> str:
    """The tensor in the model's own order of dimensions."""
    return permuted(graph, tensor, identity_order(len(tensor.permutation)), origin)


def permuted(
    graph: GraphBuilder, tensor: Integer | Floating, wanted: tuple[int, ...], origin: str
) -> str:
    """The tensor stored in the order ``wanted``; a reshape when only dimensions of size 1 move."""
    if tensor.permutation == wanted:
        return tensor.name
    step = tuple(tensor.permutation.index(axis) for axis in wanted)
    shape = graph.types[tensor.name].shape
    moved = [axis for axis in step if shape[axis] != 1]
    if moved == sorted(moved):
        target = tuple(shape[axis] for axis in step)
        if target == shape:
            return tensor.name
        return _moved(graph, Reshape(target), tensor.name, origin)
    return _moved(graph, Transpose(step), tensor.name, origin)


def _moved(graph: GraphBuilder, operator: Reshape | Transpose, name: str, origin: str) -> str:
    """``operator`` of the tensor ``name``; the one that is there, if there is one."""
    for node in graph.nodes:
        if node.inputs == (name,) and node.operator == operator:
            return node.output
    return graph.node(operator, (name,), name, origin)
