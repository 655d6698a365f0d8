"""Metal's shading language, as text: nothing here compiles it.

Source: Metal Shading Language Specification (Apple), version 3.2.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from ....dtypes import DType
from ....errors import GraphError
from ....loops.expressions import Expr, Unary
from ....loops.expressions import UnaryFunction as U
from ....loops.rewrite import map_expr, map_statement
from ..kernels import Kernel
from ..maths import expanded
from .clike import CLike

__all__ = ["Metal"]

MOST_BUFFERS = 31


class Metal(CLike):
    """See ``Dialect``.  A kernel's parameters are buffers, each bound where it begins."""

    name = "metal"
    barrier = "threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);"
    unroll = "#pragma unroll"
    device = "device "
    shared = "threadgroup "
    words: ClassVar[Mapping[str, str]] = {
        "as_float": "as_type<float>",
        "as_int": "as_type<int>",
        "as_uint": "as_type<uint>",
    }

    def type(self, dtype: DType) -> str:
        """As ``Dialect``.  Raises GraphError for float64, which Metal has not."""
        if dtype not in self.types:
            raise GraphError(f"Metal has no {dtype}")
        return self.types[dtype]

    def head(self) -> str:
        return (
            "#include <metal_stdlib>\nusing namespace metal;\n"
            "#pragma METAL fp math_mode(safe)\n#pragma METAL fp contract(off)"
        )

    def prepare(self, kernel: Kernel) -> Kernel:
        """As ``Dialect``.  Raises GraphError for more buffers than there may be."""
        if len(kernel.parameters) > MOST_BUFFERS:
            count = len(kernel.parameters)
            raise GraphError(f"a kernel of {count} buffers; Metal's has {MOST_BUFFERS}")
        return replace(kernel, body=map_statement(kernel.body, lambda e: map_expr(e, _plain)))

    def kernel(self, name: str, kernel: Kernel, shared: Sequence[str], lines: Sequence[str]) -> str:
        count = len(kernel.parameters)
        given = [f"device char *p{number} [[buffer({number})]]" for number in range(count)]
        given.append("uint block_number [[threadgroup_position_in_grid]]")
        given.append("uint thread_number [[thread_position_in_threadgroup]]")
        head = f"kernel void {name}({', '.join(given)}) {{"
        return "\n".join((head, *(f"  {each}" for each in shared), *lines, "}"))

    def numbers(self, kernel: Kernel) -> list[str]:
        block, thread = (f"const long {n}_id = {n}_number;" for n in ("block", "thread"))
        shape = kernel.geometry
        return [block] * (shape.blocks > 1) + [thread] * (shape.threads > 1)

    def _bits(self, target: str, source: str, text: str) -> str:
        return f"as_type<{target}>({text})"


def _plain(expr: Expr) -> Expr:
    """The one function of analysis that Metal has not, as arithmetic."""
    return expanded(expr) if isinstance(expr, Unary) and expr.function is U.ERF else expr
