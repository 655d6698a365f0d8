"""Parts of modules that are machine code for a CPU."""

from typing import ClassVar, NamedTuple

from dovetail.isa.frozen import frozen

from ..errors import ModuleError
from ..manifest import Content
from ..tensors import TensorSignature
from .program import ProgramCode

__all__ = ["Constant", "CpuPart"]

WIDTHS = {"bool": 1, "bfloat16": 2}
"""Bytes of the element types whose name does not tell."""


class Constant(NamedTuple):
    """An array in the constants' bytes: element type, shape, and first byte."""

    dtype: str
    shape: tuple[int, ...]
    offset: int

    @property
    def bytes(self) -> int:
        """Its size."""
        count = 1
        for size in self.shape:
            count *= size
        bits = "".join(each for each in self.dtype if each.isdigit())
        return count * (WIDTHS.get(self.dtype) or int(bits) // 8)


@frozen
class CpuPart:
    """Machine code for a CPU.

    program: the code, for the CPU ``cpu`` that has ``flags`` (of ``/proc/cpuinfo``).
    constants: arrays in ``data``.  kernels: the model's nodes that each call computes.
    numbers_only: inputs that must not hold NaN.
    """

    kind: ClassVar[str] = "cpu"
    target: ClassVar[str] = "cpu"

    inputs: tuple[TensorSignature, ...]
    outputs: tuple[TensorSignature, ...]
    program: ProgramCode
    constants: tuple[Constant, ...]
    data: Content
    cpu: str
    flags: tuple[str, ...]
    kernels: tuple[tuple[str, ...], ...]
    numbers_only: tuple[str, ...]

    def __post_init__(self) -> None:
        """Raises ModuleError for constants outside their bytes, and inputs that do not exist."""
        for each in self.constants:
            TensorSignature("constant", each.shape, each.dtype)
            if min((*each.shape, each.offset)) < 0 or each.offset + each.bytes > len(self.data):
                raise ModuleError(
                    f"a constant of {each.bytes} bytes at {each.offset} of {len(self.data)}"
                )
        names = {tensor.name for tensor in self.inputs}
        for name in self.numbers_only:
            if name not in names:
                raise ModuleError(f"no input {name!r}, which must not hold NaN")
        for tensor in (*self.inputs, *self.outputs):
            if min(tensor.shape, default=0) < 0:
                raise ModuleError(f"machine code for tensor {tensor}")
