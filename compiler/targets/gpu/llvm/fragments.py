"""Fragments of matrices in registers: their products, results of their rows, and conversions.

Source: PTX ISA 8.5, 9.7.14.5 (mma, ldmatrix), 9.7.8.6 (shfl.sync), 9.7.3.20 (ex2), 9.7.9.21 (cvt).
"""

from collections.abc import Mapping

from ....dtypes import DType
from ....errors import GraphError
from ....loops.affine import linear
from ....loops.ir import Invoke, Region
from ..fragments import FRAGMENT_PRODUCTS, NARROWED, PAIRS, POWER, ROW_RESULTS
from .expressions import Expressions
from .tensor_cores import CHUNK, as_factor, load_matrices, multiply

__all__ = ["emit_fragment"]

EXCHANGE = "llvm.nvvm.shfl.sync.bfly.f32"
EXP2 = "llvm.nvvm.ex2.approx.ftz.f"
NARROW: Mapping[DType, tuple[str, str]] = {
    DType.FLOAT16: ("llvm.nvvm.ff2f16x2.rn", "<2 x half>"),
    DType.BFLOAT16: ("llvm.nvvm.ff2bf16x2.rn", "<2 x bfloat>"),
}
ALL, LAST = "-1", "31"
"""All threads of a warp take part in an exchange, and may read from the last one."""


def emit_fragment(x: Expressions, call: Invoke) -> None:
    """The instructions of one of ``FRAGMENTS``.  Raises GraphError for another layout."""
    name = call.intrinsic
    if name in FRAGMENT_PRODUCTS:
        _product(x, call)
    elif name in ROW_RESULTS:
        _of_row(x, call)
    elif name in POWER:
        value = x.e.op(f"load float, {_place(x, call.operands[0])}")
        found = x.e.call(EXP2, "float", ("float", value))
        x.e.line(f"store float {found}, {_place(x, call.operands[1])}")
    elif name in NARROWED:
        source, target = call.operands
        low, high = (x.e.op(f"load float, {_place(x, source, each)}") for each in (0, 1))
        function, kind = NARROW[target.buffer.dtype]
        value = x.e.call(function, kind, ("float", high), ("float", low))
        x.e.line(f"store {kind} {value}, {_place(x, target)}, align 4")
    else:
        assert name in PAIRS
        for region in call.operands:
            _require_even(region)
        value = x.e.op(f"load i32, {_place(x, call.operands[0])}, align 4")
        x.e.line(f"store i32 {value}, {_place(x, call.operands[1])}, align 4")


def _product(x: Expressions, call: Invoke) -> None:
    """A register of the first factor holds two neighbours of one half of the rows and columns."""
    left, right, sums = call.operands
    e = x.e
    turned = FRAGMENT_PRODUCTS[call.intrinsic].name.startswith("product_of_columns")
    first = [*x.evaluate(*left.start[:-3])]
    a = []
    for h, i in ((0, 0), (0, 1), (1, 0), (1, 1)):
        kind, place = x.place(left.buffer, (*first, str(h), str(i), "0"))
        a.append(e.op(f"load i32, {kind} {place}, align 4"))
    b = load_matrices(x, right, (8, CHUNK) if turned else (CHUNK, 8), turned)
    dtype = left.buffer.dtype
    multiply(x, dtype, dtype, [as_factor(x, dtype, each) for each in (*a, *b)], sums)


def _of_row(x: Expressions, call: Invoke) -> None:
    source, target = (_place(x, each) for each in call.operands)
    e = x.e
    value = e.op(f"load float, {source}")
    for distance in ("1", "2"):
        given = ("i32", ALL), ("float", value), ("i32", distance), ("i32", LAST)
        other = e.call(EXCHANGE, "float", *given, convergent=True)
        if call.intrinsic == "row_sum":
            value = e.op(f"fadd float {value}, {other}")
        else:
            value = e.call("llvm.maximum.f32", "float", ("float", value), ("float", other))
    e.line(f"store float {value}, {target}")


def _place(x: Expressions, region: Region, last: int = 0) -> str:
    """A pointer, with its type, to the region's first element, or the next one in its row."""
    start = region.start if not last else (*region.start[:-1], region.start[-1] + last)
    return " ".join(x.place(region.buffer, tuple(x.evaluate(*start))))


def _require_even(region: Region) -> None:
    form = linear(region.start[-1])
    if any(each % 2 for each in (form.constant, *form.terms.values(), region.buffer.shape[-1])):
        raise GraphError(f"{region.buffer.name}: a thread reads pairs; required even places")
