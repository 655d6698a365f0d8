"""Plain C, of 2011 and later, for one thread."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from ....dtypes import DType
from ....errors import GraphError
from ..kernels import Kernel
from .clike import CLike

__all__ = ["PlainC"]

HEAD = """\
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <tgmath.h>"""


class PlainC(CLike):
    """See ``Dialect``.  A kernel is a function, and its parameters are pointers."""

    name = "c"
    barrier = ""
    types: ClassVar[Mapping[DType, str]] = {
        DType.BOOL: "bool",
        **{
            DType(f"{sign}int{bits}"): f"{sign}int{bits}_t"
            for sign in ("", "u")
            for bits in (8, 16, 32, 64)
        },
        DType.FLOAT16: "float",
        DType.BFLOAT16: "float",
        DType.FLOAT32: "float",
        DType.FLOAT64: "double",
    }
    stored: ClassVar[Mapping[DType, str]] = {
        DType.BOOL: "uint8_t",
        DType.FLOAT16: "uint16_t",
        DType.BFLOAT16: "uint16_t",
    }
    long = "LL"
    function = "static inline"
    words: ClassVar[Mapping[str, str]] = {
        "ushort": "uint16_t",
        "uint": "uint32_t",
        "long": "int64_t",
        "ulong": "uint64_t",
        "as_float": "dv_float_of_uint32_t",
        "as_int": "dv_int32_t_of_float",
        "as_uint": "dv_uint32_t_of_float",
    }

    def __init__(self) -> None:
        super().__init__()
        for target, source in (("float", "uint32_t"), ("int32_t", "float"), ("uint32_t", "float")):
            self._bits(target, source, "")

    def head(self) -> str:
        return HEAD

    def prepare(self, kernel: Kernel) -> Kernel:
        """As ``Dialect``.  Raises GraphError for blocks and threads, which C has not."""
        if kernel.geometry.blocks * kernel.geometry.threads > 1:
            raise GraphError("C has no blocks and threads; required loops that are bound to none")
        return kernel

    def kernel(self, name: str, kernel: Kernel, shared: Sequence[str], lines: Sequence[str]) -> str:
        given = ", ".join(f"void *p{number}" for number in range(len(kernel.parameters)))
        return "\n".join((f"static void {name}({given}) {{", *lines, "}"))

    def numbers(self, kernel: Kernel) -> list[str]:
        return []

    def _bits(self, target: str, source: str, text: str) -> str:
        name = f"dv_{target}_of_{source}"
        self.functions[name] = (
            f"static inline {target} {name}({source} a) {{\n"
            f"  {target} r;\n  memcpy(&r, &a, sizeof r);\n  return r;\n}}"
        )
        return f"{name}({text})"
