"""What a language that looks like C has its own words for."""

from collections.abc import Mapping
from dataclasses import dataclass

from ....dtypes import DType

__all__ = ["OPENCL", "Dialect"]


@dataclass(frozen=True, slots=True)
class Dialect:
    """The words of one language.

    types: of values; float16 and bfloat16 are computed as float32.  stored: of elements in memory,
    where they differ.  unsigned: of as many bits.  kernel, block, thread: what begins a kernel, and
    the numbers of its block and thread.  global_, shared: what a pointer or array there is marked
    with.  barrier: where threads wait.  head: what comes before everything else.
    """

    name: str
    types: Mapping[DType, str]
    stored: Mapping[DType, str]
    kernel: str
    block: str
    thread: str
    global_: str
    shared: str
    barrier: str
    head: str

    def type(self, dtype: DType) -> str:
        """The type of a value."""
        return self.types[dtype]

    def element(self, dtype: DType) -> str:
        """The type of an element in memory."""
        return self.stored.get(dtype, self.types[dtype])


OPENCL = Dialect(
    name="opencl",
    types={
        DType.BOOL: "bool",
        DType.INT8: "char",
        DType.INT16: "short",
        DType.INT32: "int",
        DType.INT64: "long",
        DType.UINT8: "uchar",
        DType.UINT16: "ushort",
        DType.UINT32: "uint",
        DType.UINT64: "ulong",
        DType.FLOAT16: "float",
        DType.BFLOAT16: "float",
        DType.FLOAT32: "float",
        DType.FLOAT64: "double",
    },
    stored={DType.BOOL: "uchar", DType.FLOAT16: "ushort", DType.BFLOAT16: "ushort"},
    kernel="__kernel",
    block="get_group_id(0)",
    thread="get_local_id(0)",
    global_="__global ",
    shared="__local ",
    barrier="barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);",
    head="#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n#pragma OPENCL FP_CONTRACT OFF",
)
"""OpenCL C 1.2 and later, with float64."""
