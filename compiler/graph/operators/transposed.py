"""Transposed convolution, the gradient of a strided one.  Source: ONNX, ConvTranspose."""

from collections.abc import Sequence

import numpy as np

from dovetail.isa.frozen import frozen

from ...dtypes import DType
from ...errors import GraphError
from ..types import TensorType
from .contractions import Convolution
from .protocol import Array, Opaque, require, require_inputs

__all__ = ["TransposedConvolution"]


@frozen
class TransposedConvolution(Opaque):
    """Each element of ``x`` times the kernel, added up ``strides`` apart, N-D.

    x: [N, C, *spatial], w: [C, O / groups, *kernel] to dtype[N, O, *result].
    pads: rows cut off first and last, of each spatial dimension; negative ones add rows of zeros.
    added: rows more at the end.
    """

    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[tuple[int, int], ...]
    added: tuple[int, ...]
    groups: int
    dtype: DType

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", DType(self.dtype))
        rank = len(self.strides)
        if not len(self.dilations) == len(self.pads) == len(self.added) == rank:
            raise GraphError(f"{self}: required attributes of one length")

    def as_convolution(self, kernel: tuple[int, ...]) -> Convolution:
        """The convolution of ``x`` spread by the strides; its weights are flipped."""
        around = tuple(
            ((size - 1) * dilation - first, (size - 1) * dilation - last + more)
            for size, dilation, (first, last), more in zip(
                kernel, self.dilations, self.pads, self.added, strict=True
            )
        )
        ones = (1,) * len(self.strides)
        return Convolution(ones, self.dilations, around, self.strides, self.groups, self.dtype)

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """Raises GraphError for ranks, channels or groups that do not fit, or no result."""
        x, w = require_inputs(self, inputs, 2)
        rank = len(self.strides) + 2
        require(self, x.rank == w.rank == rank, f"{x} and {w}", f"{rank} dimensions")
        fits = w.shape[0] == x.shape[1] and self.groups >= 1 and not w.shape[0] % self.groups
        require(self, fits, f"{x} and {w}", f"{x.shape[1]} channels in {self.groups} groups")
        turned = (w.shape[1] * self.groups, w.shape[0] // self.groups, *w.shape[2:])
        return self.as_convolution(w.shape[2:]).result((x, TensorType(turned, w.dtype)))

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """As that convolution."""
        x, w = inputs
        channels, outputs, *kernel = w.shape
        flipped = np.flip(w, tuple(range(2, w.ndim)))
        apart = flipped.reshape(self.groups, channels // self.groups, outputs, *kernel)
        turned = apart.swapaxes(1, 2).reshape(self.groups * outputs, -1, *kernel)
        return self.as_convolution(tuple(kernel)).evaluate([x, turned])
