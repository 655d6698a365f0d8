"""Operations of a warp's threads on matrices in registers, as intrinsics.

A fragment is 16 rows of 16 elements, 8 in each thread: row r and column n are ``[g, t, h, i, j]``

    r = 8 i + g,  n = 8 h + 2 t + j,  thread 4 g + t of the warp.

Sums of a product are laid out so, and so may the first factor be: what one gives, the next takes.

    product_of_rows_KIND:  c[t] += sum(float32(a[r, k]) * float32(b[n, k]) over k in 16)
    product_of_columns_KIND:  c[t] += sum(float32(a[r, k]) * float32(b[k, n]) over k in 16)

a: a fragment; b: 16 rows of 16 elements in shared memory; c: a fragment of sums.

    row_maximum:  m[g, t] = max(p[g, u] over u in 4);  row_sum: the sum, likewise

are of the four threads that have parts of a row; each gets the result.  One thread alone does

    power_of_two:  y = 2 ** x, at most 2 units in the last place from it, and 0 below 2 ** -126
    narrow_KIND:  d[i] = KIND(s[i]) over i in 2;  pair_KIND:  d[i] = s[i] over i in 2

Source: PTX ISA 8.5 (NVIDIA), 9.7.14.5 (mma.m16n8k16, ldmatrix), 9.7.8.6 (shfl.sync), 9.7.3.20
(ex2), 9.7.9.21 (cvt).
"""

from collections.abc import Mapping

from ...dtypes import DType
from ...loops.expressions import Binary, BinaryFunction, Buffer, Cast, Constant, Variable
from ...loops.intrinsic import Intrinsic, by_name
from ...loops.ir import Function, Store, Update, block, loops

__all__ = ["FRAGMENTS", "FRAGMENT_PRODUCTS", "NARROWED", "PAIRS", "POWER", "ROW_RESULTS"]

SIDE = 16
LANES = (8, 4)
F32 = DType.FLOAT32
HALVES = (DType.FLOAT16, DType.BFLOAT16)


def _product(dtype: DType, columns: bool) -> Intrinsic:
    name = f"product_of_{'columns' if columns else 'rows'}_{dtype}"
    left, right = Buffer("a", (*LANES, 2, 2, 2), dtype), Buffer("b", (SIDE, SIDE), dtype)
    sums = Buffer("c", (*LANES, 2, 2, 2), F32)
    i, g, h, t, j, p, u, q = map(Variable, "ightjpuq")
    n, k = h * 8 + t * 2 + j, p * 8 + u * 2 + q
    factors = Cast(F32, left[g, u, p, i, q]), Cast(F32, right[k, n] if columns else right[n, k])
    value = Binary(BinaryFunction.MUL, *factors)
    update = Update(sums, (g, t, h, i, j), BinaryFunction.ADD, value)
    nest = loops(tuple(zip("ightjpuq", (2, 8, 2, 4, 2, 2, 4, 2), strict=True)), update)
    return Intrinsic(name, Function(name, (left, right), (sums,), nest))


def _of_row(name: str, function: BinaryFunction) -> Intrinsic:
    part, whole = Buffer("p", LANES, F32), Buffer("m", LANES, F32)
    g, t, u = map(Variable, "gtu")
    more = loops((("u", LANES[1] - 1),), Update(whole, (g, t), function, part[g, u + 1]))
    nest = loops((("g", LANES[0]), ("t", LANES[1])), block(Store(whole, (g, t), part[g, 0]), more))
    return Intrinsic(name, Function(name, (part,), (whole,), nest))


def _power() -> Intrinsic:
    name, given, found, i = "power_of_two", Buffer("x", (1,), F32), Buffer("y", (1,), F32), "i"
    value = Binary(BinaryFunction.POW, Constant(2.0, F32), given[Variable(i)])
    nest = loops(((i, 1),), Store(found, (Variable(i),), value))
    return Intrinsic(name, Function(name, (given,), (found,), nest))


def _two(name: str, source: DType, target: DType) -> Intrinsic:
    given, found, i = Buffer("s", (2,), source), Buffer("d", (2,), target), Variable("i")
    value = given[i] if source is target else Cast(target, given[i])
    nest = loops((("i", 2),), Store(found, (i,), value))
    return Intrinsic(name, Function(name, (given,), (found,), nest))


FRAGMENT_PRODUCTS: Mapping[str, Intrinsic] = by_name(
    *(_product(each, columns) for each in HALVES for columns in (False, True))
)
ROW_RESULTS: Mapping[str, Intrinsic] = by_name(
    _of_row("row_maximum", BinaryFunction.MAX), _of_row("row_sum", BinaryFunction.ADD)
)
POWER: Mapping[str, Intrinsic] = by_name(_power())
NARROWED: Mapping[str, Intrinsic] = by_name(*(_two(f"narrow_{each}", F32, each) for each in HALVES))
PAIRS: Mapping[str, Intrinsic] = by_name(*(_two(f"pair_{each}", each, each) for each in HALVES))
FRAGMENTS: Mapping[str, Intrinsic] = {
    **FRAGMENT_PRODUCTS,
    **ROW_RESULTS,
    **POWER,
    **NARROWED,
    **PAIRS,
}
