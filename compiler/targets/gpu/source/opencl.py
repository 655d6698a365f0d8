"""OpenCL C, 1.2 and later, with float64."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from ....dtypes import DType
from ..kernels import Kernel
from .clike import CLike

__all__ = ["OpenCl"]


class OpenCl(CLike):
    """See ``Dialect``.  A kernel's parameters are pairs: where a memory begins, and how many bytes
    behind it the buffer does.
    """

    name = "opencl"
    barrier = "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);"
    unroll = "#pragma unroll"
    types: ClassVar[Mapping[DType, str]] = {**CLike.types, DType.FLOAT64: "double"}
    device = "__global "
    shared = "__local "

    def head(self) -> str:
        return "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n#pragma OPENCL FP_CONTRACT OFF"

    def kernel(self, name: str, kernel: Kernel, shared: Sequence[str], lines: Sequence[str]) -> str:
        count = len(kernel.parameters)
        given = [f"__global char *p{number}, ulong o{number}" for number in range(count)]
        head = f"__kernel void {name}({', '.join(given)}) {{"
        return "\n".join((head, *(f"  {each}" for each in shared), *lines, "}"))

    def numbers(self, kernel: Kernel) -> list[str]:
        block = "const long block_id = get_group_id(0);"
        thread = "const long thread_id = get_local_id(0);"
        shape = kernel.geometry
        return [block] * (shape.blocks > 1) + [thread] * (shape.threads > 1)

    def place(self, number: int) -> str:
        return f"(p{number} + o{number})"
