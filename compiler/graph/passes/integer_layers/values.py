"""Values that represent the tensors of a graph while its integer layers are recognised.

A quantised model computes on real tensors that were just dequantised and will be quantised at once.
While the pass walks the graph each tensor is one of the values below; ``quantize`` turns a real one
into an integer operator.  Zero points are those of int8: of uint8 less 128.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.frozen import frozen

from ...ir import Node
from ...operators.elementwise import BinaryFunction
from ...operators.integer.products import Conv2d, ConvTranspose2d, Dense, RowProducts
from ...operators.integer.rules import Pads, Pair
from ...operators.windows import WindowReduce

__all__ = [
    "F32",
    "NCHW_TO_NHWC",
    "Accumulated",
    "Added",
    "Array",
    "Averaged",
    "ByChannel",
    "Codes",
    "Combination",
    "Floating",
    "Foreign",
    "Function",
    "Integer",
    "Joined",
    "Masked",
    "Moved",
    "Multiplied",
    "Pending",
    "Products",
    "Real",
    "RealConstant",
    "Resampled",
    "Softmaxed",
    "Sum",
    "Totals",
    "Value",
    "WindowSums",
    "identity_order",
    "int8_limits",
]

Array = NDArray[Any]
F32 = np.float32
NCHW_TO_NHWC = (0, 2, 3, 1)


@frozen
class Integer:
    """A tensor of the new graph, int8.

    permutation: dimension ``i`` of what is stored is dimension ``permutation[i]`` of the model's.
    unsigned: the model's tensor is uint8, 128 more than what is stored.
    """

    name: str
    permutation: tuple[int, ...]
    unsigned: bool = False


@frozen
class Floating:
    """A float32 input, before it is quantised; ``permutation`` as of ``Integer``."""

    name: str
    permutation: tuple[int, ...]


@frozen
class Foreign:
    """A tensor that no integer layer computes or reads, and why."""

    reason: str


@frozen
class Real:
    """``(tensor - zero_point) * scale``, per tensor."""

    tensor: Integer
    scale: np.float32
    zero_point: int


@frozen(eq=False)
class ByChannel:
    """``(tensor - zero_point) * scales``, a scale for each channel, quantised or dequantised.

    scales: float32[C].  zeros: zero points in the model, of int8, int64[C].
    """

    tensor: Integer
    scales: Array
    zeros: Array
    zero_point: int


@frozen(eq=False)
class RealConstant:
    """``(values - zero_points) * scales`` along ``axis``: weights and biases.

    scales, zero_points: one, or one an index of ``axis``.
    """

    values: Array
    scales: NDArray[np.float32]
    zero_points: NDArray[np.int64]
    axis: int

    def real(self) -> Array:
        """float32, in the shape of ``values``."""
        shape = [1] * self.values.ndim
        if self.scales.size > 1:
            shape[self.axis] = -1
        scales, zeros = self.scales.reshape(shape), self.zero_points.reshape(shape)
        found = (self.values.astype(np.int64) - zeros).astype(F32) * scales
        return np.asarray(found.reshape(self.values.shape))


@frozen(eq=False)
class Accumulated:
    """Sum of products of ``x`` and constant ``weights``, and ``bias``; then a clip to
    ``low..high`` in real units.

    x, weights: tensors of the new graph.  bias: float64[O], in steps of the sum.
    w_scales: one, or one a channel.
    permutation, channel: as of ``Integer``, of the sum, less the height of rows; the model's
    dimension of its channels.
    origin: the model's node.  stem: what its tensors' names begin with.
    """

    operator: Conv2d | ConvTranspose2d | Dense
    x: str
    weights: str
    bias: Array
    x_scale: np.float32
    w_scales: NDArray[np.float32]
    permutation: tuple[int, ...]
    channel: int
    stem: str
    origin: str
    low: float = -np.inf
    high: float = np.inf


@frozen(eq=False)
class Added:
    """Sum of products and a dequantised tensor of its shape, then a clip."""

    value: Accumulated
    other: Real
    low: float = -np.inf
    high: float = np.inf


@frozen
class Products:
    """Products of each row of ``x`` with each row of ``y``, tensors of the new graph.

    operator: RowProducts.  scale: of one step of a sum.  stem, origin: as of ``Accumulated``.
    """

    operator: RowProducts
    x: str
    y: str
    scale: np.float32
    stem: str
    origin: str


@frozen
class Sum:
    """Sum of two dequantised tensors, then a clip."""

    a: Real
    b: Real
    low: float = -np.inf
    high: float = np.inf


@frozen
class Multiplied:
    """Product of two dequantised tensors, then a clip; ``b`` is repeated to the shape of ``a``."""

    a: Real
    b: Real
    low: float = -np.inf
    high: float = np.inf


@frozen
class WindowSums:
    """Sums of windows of a dequantised image, not divided yet.

    groups: elements of the image that one of the model is the mean of.  of_rows: the image is one
    pixel high, and rows in the model.
    """

    real: Real
    operator: WindowReduce
    groups: int = 1
    of_rows: bool = False


@frozen
class Totals:
    """Sums over ``axes`` of a dequantised tensor, not divided yet; they stay as 1 if ``keeps``.

    groups: elements of the tensor that one of the model is the mean of.
    """

    real: Real
    axes: tuple[int, ...]
    keeps: bool
    groups: int = 1


@frozen
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


@frozen(eq=False)
class Resampled:
    """``rows @ image @ columns.T`` of a dequantised image, channel by channel.

    rows: float[rows, H].  columns: float[columns, W].
    """

    real: Real
    rows: Array
    columns: Array


@frozen
class Joined:
    """Dequantised tensors one after the other along dimension ``axis`` of the model."""

    parts: tuple[Real, ...]
    axis: int


@frozen
class Masked:
    """A dequantised tensor where a condition of the model's holds, else ``other``."""

    real: Real
    condition: str
    other: float


@frozen
class Softmaxed:
    """Softmax over the last dimension of a dequantised tensor."""

    real: Real


@frozen(eq=False)
class Codes:
    """``(values - zero_point) * scale`` by the int8 value of a tensor, as those of ``Function``."""

    values: Array
    scale: np.float32
    zero_point: int
    unsigned: bool


@frozen(eq=False)
class Combination:
    """The sum or product of two operands that are functions of one tensor, then a clip.

    ONNX Runtime has an operator of its own for these, which rounds in another way than floats do.
    """

    function: BinaryFunction
    a: Codes
    b: Codes
    low: float = -np.inf
    high: float = np.inf


@frozen(eq=False)
class Function:
    """A function of each element of a stored tensor: its results by the int8 value, float32[256].

    axis: the model's dimension of channels that have functions of their own; then values are
    float32[C, 256].  combination: the same, where its quantisation is not that of ``values``.
    """

    tensor: Integer
    values: Array
    axis: int | None = None
    combination: Combination | None = None


Pending = (
    Accumulated
    | Added
    | Products
    | Sum
    | Multiplied
    | Averaged
    | Resampled
    | Joined
    | Masked
    | Softmaxed
)
"""Values that are computed when they are quantised."""


@frozen
class Moved:
    """A value that the model's nodes ``moves`` move before it is quantised; ours move its bytes."""

    value: Pending
    moves: tuple[Node, ...]


Value = (
    Integer
    | Floating
    | Foreign
    | Real
    | RealConstant
    | Accumulated
    | Added
    | Products
    | Sum
    | Multiplied
    | WindowSums
    | Totals
    | Averaged
    | Resampled
    | Joined
    | Masked
    | Softmaxed
    | Function
    | ByChannel
    | Moved
)


def identity_order(rank: int) -> tuple[int, ...]:
    """The permutation that moves nothing."""
    return tuple(range(rank))


def int8_limits(low: float, high: float, scale: np.float32, zero_point: int) -> tuple[int, int]:
    """Limits of real numbers, infinite ones among them, in int8."""
    with np.errstate(over="ignore"):
        steps = [np.rint(F32(limit) / scale) + zero_point for limit in (low, high)]
    least, most = (int(step) for step in np.clip(steps, -128, 127))
    return least, max(most, least)
