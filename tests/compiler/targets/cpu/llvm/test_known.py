"""Bounds of integers, against all the values that operands can have."""

import itertools
import operator
import random
from collections.abc import Callable

import numpy as np
import pytest

from dovetail.compiler.dtypes import DType
from dovetail.compiler.graph.operators.functions import BinaryFunction as B
from dovetail.compiler.targets.cpu.llvm.conversions import convert
from dovetail.compiler.targets.cpu.llvm.emitter import Emitter, ModuleText
from dovetail.compiler.targets.cpu.llvm.known import bounded, fold
from dovetail.compiler.targets.cpu.llvm.target import host_cpu
from dovetail.compiler.targets.llvm.values import Value

MEANINGS: dict[B, Callable[[int, int], int]] = {
    B.ADD: lambda a, b: a + b,
    B.SUB: lambda a, b: a - b,
    B.MUL: lambda a, b: a * b,
    B.MIN: min,
    B.MAX: max,
    B.FLOORDIV: lambda a, b: a // b,
    B.MOD: lambda a, b: a % b,
}
POSITIVE = (B.FLOORDIV, B.MOD)
"""Functions of whose operands a sign tells nothing."""
LEAST, MOST = -128, 127
INTEGERS = [dtype for dtype in DType if not dtype.is_float and dtype is not DType.BOOL]


@pytest.mark.parametrize("function", MEANINGS)
def test_bounds_are_those_of_all_values(function: B) -> None:
    rng = random.Random(str(function))
    for _ in range(60):
        least = 0 if function in POSITIVE else -14
        (a, c), (b, d) = (sorted(rng.choices(range(least, 15), k=2)) for _ in range(2))
        b, d = (max(b, 1), max(d, 1)) if function in POSITIVE else (b, d)
        own, other = Value("%a", DType.INT8, 1, None, a, c), Value("%b", DType.INT8, 1, None, b, d)
        found = bounded(function, own, other, Value("%c", DType.INT8))
        values = [MEANINGS[function](x, y) for x in range(a, c + 1) for y in range(b, d + 1)]
        wanted: tuple[int | None, int | None] = min(values), max(values)
        if function is B.MOD:
            wanted = 0, min(c, d - 1)
        elif wanted[0] < LEAST or wanted[1] > MOST:
            wanted = None, None
        assert (found.low, found.high) == wanted


@pytest.mark.parametrize("function", POSITIVE)
def test_nothing_is_known_of_quotients_by_or_of_what_may_be_negative(function: B) -> None:
    for low, divisor, known in ((0, 1, True), (-1, 1, False), (0, 0, False)):
        a = Value("%a", DType.INT8, 1, None, low, 5)
        b = Value("%b", DType.INT8, 1, None, divisor, 3)
        found = bounded(function, a, b, Value("%c", DType.INT8))
        assert (found.low is not None) is known


def test_a_factor_of_both_operands_is_one_of_the_result() -> None:
    a = Value("%a", DType.INT64, 1, None, 0, 9, multiple=12)
    b = Value("%b", DType.INT64, 1, None, 1, 9, multiple=18)
    wanted = dict.fromkeys(MEANINGS, 1) | {B.ADD: 6, B.SUB: 6, B.MUL: 216}
    for function, multiple in wanted.items():
        assert bounded(function, a, b, Value("%c", DType.INT64)).multiple == multiple


COMPARISONS = {B.LT: operator.lt, B.LE: operator.le, B.EQ: operator.eq, B.NE: operator.ne}


def test_known_integers_are_folded() -> None:
    for a, b in itertools.product((-128, -3, 0, 1, 2, 127), repeat=2):
        for function, meaning in (MEANINGS | COMPARISONS).items():
            wanted = None if function in POSITIVE and not b else meaning(a, b)
            if wanted is not None and function not in COMPARISONS:
                wanted = int(np.int64(wanted).astype(np.int8))
            assert fold(function, a, b, DType.INT8) == wanted
    assert fold(B.POW, 2, 3, DType.INT8) is None


@pytest.mark.parametrize("source", INTEGERS)
def test_a_conversion_keeps_bounds_that_fit(source: DType) -> None:
    e, of = Emitter(ModuleText(host_cpu())), np.iinfo(str(source))
    for dtype in INTEGERS:
        to = np.iinfo(str(dtype))
        least, most = int(max(of.min, to.min)), int(min(of.max, to.max))
        for low, high, fits in (
            (least, most, True),
            (least, most + 1, most + 1 <= to.max),
            (least - 1, most, least - 1 >= to.min),
        ):
            found = convert(e, Value("%a", source, 1, None, low, high), dtype)
            known = (low, high) if fits or source is dtype else (None, None)
            assert (found.low, found.high) == known
        if source is not dtype and source.bytes < 8:
            found = convert(e, Value("%a", source), dtype)
            whole = to.min <= of.min and of.max <= to.max
            assert (found.low, found.high) == ((of.min, of.max) if whole else (None, None))
