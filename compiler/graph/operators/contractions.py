"""Sums of products: contraction over labelled, possibly sliding axes, and N-D convolution.

Everything else that multiplies and sums is built of them: matrix products, transposed convolution,
Fourier transforms, attention.
"""

from collections.abc import Sequence
from math import prod
from typing import Any, ClassVar

import numpy as np

from dovetail.isa.frozen import frozen

from ...dtypes import DType
from ...errors import GraphError
from ..types import TensorType
from .protocol import Array, Fusion, Opaque, require, require_inputs

__all__ = [
    "Axis",
    "Contract",
    "Convolution",
    "Determinant",
    "PixelConvolution",
    "contract",
    "output_size",
]

Axis = tuple[tuple[int, int], ...]
"""(label, step) pairs: the index on this axis is the sum of ``step * label``."""


@frozen
class Contract:
    """``result[output] = sum(prod(operand[axes]))`` over the labels that ``output`` lacks.

    Label i runs over ``sizes[i]`` values.  Matrix product: ``y[m, n] = sum(a[m, k] * b[k, n])``;
    convolution: ``y[n, o, p] = sum(x[n, c, p * 2 + k] * w[o, c, k])``.  An axis of the output may
    have several labels too: of sizes 8 and 16, ``((0, 16), (1, 1))`` is one dimension of 128.
    Operands are converted to ``dtype`` first, and products and sums are of that type; integers
    wrap.  The order of a sum is not defined.  No index is out of range; what an operand has beyond
    is not read.
    """

    sizes: tuple[int, ...]
    operands: tuple[tuple[Axis, ...], ...]
    output: tuple[Axis, ...]
    dtype: DType

    fusion: ClassVar[Fusion] = Fusion.CONTRACTION

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", DType(self.dtype))
        used = {label for axes in self.operands for axis in axes for label, _ in axis}
        if not self.operands or len(set(self.kept)) != len(self.kept):
            raise GraphError(f"{self}: required an operand, and different labels of the output")
        if not (used | set(self.kept)) <= set(range(len(self.sizes))):
            raise GraphError(f"{self}: required labels below {len(self.sizes)}")
        if any(step < 1 for axes in self.operands for axis in axes for _, step in axis):
            raise GraphError(f"{self}: required steps of at least 1")
        for axis in self.output:
            steps = [
                prod(self.sizes[x] for x, _ in axis[place + 1 :]) for place in range(len(axis))
            ]
            if [step for _, step in axis] != steps:
                raise GraphError(f"{self}: required steps {steps} in {axis} of the output")

    @property
    def kept(self) -> tuple[int, ...]:
        """The labels of the output, in order."""
        return tuple(label for axis in self.output for label, _ in axis)

    @property
    def summed(self) -> tuple[int, ...]:
        """The labels that are summed over."""
        return tuple(label for label in range(len(self.sizes)) if label not in self.kept)

    def extent(self, axis: Axis) -> int:
        """The number of indices that are read on an axis, gaps included."""
        if any(self.sizes[label] == 0 for label, _ in axis):
            return 0
        return sum(step * (self.sizes[label] - 1) for label, step in axis) + 1

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """The sizes of the output's labels.

        Raises GraphError for another number of operands, another rank, or an operand that is too
        small.
        """
        require_inputs(self, inputs, len(self.operands))
        for axes, kind in zip(self.operands, inputs, strict=True):
            require(self, len(axes) == kind.rank, kind, f"{len(axes)} dimensions")
            needed = tuple(self.extent(axis) for axis in axes)
            fits = all(size >= need for size, need in zip(kind.shape, needed, strict=True))
            require(self, fits, kind, f"at least {list(needed)}")
        return (TensorType(self._shape(), self.dtype),)

    def _shape(self) -> tuple[int, ...]:
        return tuple(prod(self.sizes[label] for label, _ in axis) for axis in self.output)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """By ``numpy.einsum`` over strided views with one dimension for each label."""
        narrow = self.dtype in (DType.FLOAT16, DType.BFLOAT16)
        computing = np.dtype(np.float32) if narrow else self.dtype.numpy
        arguments: list[Any] = []
        for axes, array in zip(self.operands, inputs, strict=True):
            arguments += self._view(axes, array.astype(computing))
        present = {label for labels in arguments[1::2] for label in labels}
        ones = [label for label in range(len(self.sizes)) if label not in present]
        arguments += [np.ones([self.sizes[label] for label in ones], computing), ones]
        summed = np.einsum(*arguments, list(self.kept), optimize=True)
        return (np.asarray(summed).reshape(self._shape()).astype(self.dtype.numpy),)

    def _view(self, axes: tuple[Axis, ...], array: Array) -> tuple[Array, list[int]]:
        strides: dict[int, int] = {}
        for axis, stride in zip(axes, array.strides, strict=True):
            for label, step in axis:
                strides[label] = strides.get(label, 0) + step * stride
        shape = tuple(self.sizes[label] for label in strides)
        view = np.lib.stride_tricks.as_strided(array, shape, tuple(strides.values()))
        return view, list(strides)


def contract(
    inputs: Sequence[TensorType],
    operands: Sequence[Sequence[int]],
    output: Sequence[int],
    dtype: DType,
) -> Contract:
    """A contraction that indexes each axis by one label, as einsum does.

    Raises GraphError for another rank, and for two sizes of one label.
    """
    sizes: dict[int, int] = {}
    for kind, labels in zip(inputs, operands, strict=True):
        if len(labels) != len(kind.shape):
            raise GraphError(f"contraction of {kind}; its operand has {len(labels)} labels")
        for label, size in zip(labels, kind.shape, strict=True):
            if sizes.setdefault(label, size) != size:
                raise GraphError(
                    f"contraction: sizes {sizes[label]} and {size} of one label; required equal"
                )
    missing = set(output) - set(sizes)
    if missing:
        raise GraphError(f"contraction: output labels {sorted(missing)} are of no operand")
    number = {label: position for position, label in enumerate(sizes)}
    return Contract(
        tuple(sizes.values()),
        tuple(tuple(((number[label], 1),) for label in labels) for labels in operands),
        tuple(((number[label], 1),) for label in output),
        dtype,
    )


@frozen
class Convolution:
    """``y[n, o, p] = sum(x'[n, c, p * stride + k * dilation - pad] * w[o, c, k])``, N-D.

    x: [N, C, *spatial], w: [O, C / groups, *kernel] to dtype[N, O, *result].  x' is x with
    ``expansion - 1`` zeros between neighbours, and zeros outside; a negative pad cuts.  Operands
    are converted to ``dtype`` first; integers wrap.  With ``expansions`` this is the gradient of a
    strided convolution, which ONNX calls transposed.
    """

    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[tuple[int, int], ...]
    """First, last, of each spatial dimension."""
    expansions: tuple[int, ...]
    groups: int
    dtype: DType

    fusion: ClassVar[Fusion] = Fusion.CONTRACTION

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", DType(self.dtype))
        rank = len(self.strides)
        if not len(self.dilations) == len(self.pads) == len(self.expansions) == rank:
            raise GraphError(f"{self}: required attributes of one length")
        if min((1, self.groups, *self.strides, *self.dilations, *self.expansions)) < 1:
            raise GraphError(
                f"{self}: required groups, strides, dilations and expansions of at least 1"
            )

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """Raises GraphError for ranks, channels or groups that do not fit, or no position."""
        x, w = require_inputs(self, inputs, 2)
        rank = len(self.strides)
        require(self, x.rank == w.rank == rank + 2, f"{x} and {w}", f"{rank + 2} dimensions")
        channels = w.shape[1] * self.groups
        fits = x.shape[1] == channels and w.shape[0] % self.groups == 0
        require(
            self,
            fits,
            f"{x} and {w}",
            f"{channels} channels, and outputs a multiple of {self.groups}",
        )
        sizes = tuple(
            output_size((size - 1) * expansion + 1, kernel, stride, dilation, pads)
            for size, expansion, kernel, stride, dilation, pads in zip(
                x.shape[2:],
                self.expansions,
                w.shape[2:],
                self.strides,
                self.dilations,
                self.pads,
                strict=True,
            )
        )
        return (TensorType((x.shape[0], w.shape[0], *sizes), self.dtype),)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Windows of the expanded and padded input, contracted with the weights."""
        narrow = self.dtype in (DType.FLOAT16, DType.BFLOAT16)
        computing = np.dtype(np.float32) if narrow else self.dtype.numpy
        x, w = (array.astype(computing) for array in inputs)
        rank = len(self.strides)
        padded = self._pad(x)
        extents = tuple(
            (size - 1) * dilation + 1
            for size, dilation in zip(w.shape[2:], self.dilations, strict=True)
        )
        axes = tuple(range(2, 2 + rank))
        windows = np.lib.stride_tricks.sliding_window_view(padded, extents, axis=axes)
        steps = tuple(slice(None, None, stride) for stride in self.strides)
        taps = tuple(slice(None, None, dilation) for dilation in self.dilations)
        windows = windows[(slice(None), slice(None), *steps, *taps)]
        grouped = windows.reshape(x.shape[0], self.groups, w.shape[1], *windows.shape[2:])
        weights = w.reshape(self.groups, w.shape[0] // self.groups, *w.shape[1:])
        places, kernel = [*range(10, 10 + rank)], [*range(20, 20 + rank)]
        summed = np.einsum(
            grouped, [0, 1, 3, *places, *kernel], weights, [1, 2, 3, *kernel], [0, 1, 2, *places],
            optimize=True,
        )  # fmt: skip
        shape = (x.shape[0], w.shape[0], *summed.shape[3:])
        return (summed.reshape(shape).astype(self.dtype.numpy),)

    def _pad(self, x: Array) -> Array:
        sizes = [
            (size - 1) * expansion + 1
            for size, expansion in zip(x.shape[2:], self.expansions, strict=True)
        ]
        expanded = np.zeros((*x.shape[:2], *sizes), x.dtype)
        expanded[(slice(None), slice(None), *(slice(None, None, n) for n in self.expansions))] = x
        grown = [(max(first, 0), max(last, 0)) for first, last in self.pads]
        padded = np.pad(expanded, [(0, 0), (0, 0), *grown])
        cut = tuple(
            slice(max(-first, 0), padded.shape[axis + 2] - max(-last, 0))
            for axis, (first, last) in enumerate(self.pads)
        )
        return np.asarray(padded[(slice(None), slice(None), *cut)])


@frozen
class PixelConvolution:
    """``convolution`` of images with their channels last.

    x: [N, *spatial, C], w: [O, *kernel, C / groups] to dtype[N, *result, O].
    """

    convolution: Convolution

    fusion: ClassVar[Fusion] = Fusion.CONTRACTION

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """Raises GraphError as the convolution does."""
        require_inputs(self, inputs, 2)
        given = tuple(
            TensorType((*each.shape[:1], *each.shape[-1:], *each.shape[1:-1]), each.dtype)
            for each in inputs
        )
        (found,) = self.convolution.result(given)
        return (TensorType((found.shape[0], *found.shape[2:], found.shape[1]), found.dtype),)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """The convolution's result, with its channels last."""
        (found,) = self.convolution.evaluate([np.moveaxis(each, -1, 1) for each in inputs])
        return (np.ascontiguousarray(np.moveaxis(found, 1, -1)),)


def output_size(size: int, kernel: int, stride: int, dilation: int, pads: tuple[int, int]) -> int:
    """The number of windows.

    Raises GraphError when not one fits.
    """
    room = size + sum(pads) - (kernel - 1) * dilation - 1
    if room < 0:
        raise GraphError(
            f"a window of {(kernel - 1) * dilation + 1} on {size + sum(pads)}; required at most "
            "that; add pads"
        )
    return room // stride + 1


@frozen
class Determinant(Opaque):
    """The determinants of the last two dimensions, square; float[..., M, M] to float[...]."""

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """Raises GraphError when they are not square, or not float."""
        (x,) = require_inputs(self, inputs, 1)
        fits = x.rank >= 2 and x.shape[-1] == x.shape[-2] and x.dtype.is_float
        require(self, fits, x, "square float matrices")
        return (TensorType(x.shape[:-2], x.dtype),)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """By ``numpy.linalg.det``."""
        (x,) = inputs
        wide = x.astype(np.float64) if prod(x.shape) else np.ones((*x.shape[:-2], 1, 1))
        return (np.asarray(np.linalg.det(wide)).astype(x.dtype),)
