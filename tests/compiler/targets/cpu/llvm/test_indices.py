"""Index arithmetic that is done while code is written, against all values of operands."""

from itertools import combinations_with_replacement, product

import pytest

from dovetail.compiler.dtypes import DType
from dovetail.compiler.graph.operators.functions import BinaryFunction as B
from dovetail.compiler.targets.cpu.llvm.context import Context
from dovetail.compiler.targets.cpu.llvm.emitter import Emitter, ModuleText
from dovetail.compiler.targets.cpu.llvm.indices import index_arithmetic
from dovetail.compiler.targets.cpu.llvm.target import host_cpu
from dovetail.compiler.targets.llvm.values import Linear, Operand, Value, constant

I64 = DType.INT64


def number(value: int) -> Value:
    return constant(value, I64)


def found(function: B, left: Operand, right: Operand) -> object:
    """A known value, the base and stride of lanes, or what else there is."""
    result = index_arithmetic(Emitter(ModuleText(host_cpu())), function, left, right)
    match result:
        case Value(constant=known) if known is not None:
            return known
        case Linear(base=base, stride=stride):
            return (base.ref if base.constant is None else base.constant), stride
    return result


def between(low: int, high: int, multiple: int = 1) -> Value:
    return Value(f"%from{low}", I64, 1, None, low, high, multiple)


def test_bounds_decide_a_comparison_that_is_the_same_for_all_values() -> None:
    ranges = list(combinations_with_replacement(range(4), 2))
    for (a, c), (b, d) in product(ranges, ranges):
        pairs = [(x, y) for x in range(a, c + 1) for y in range(b, d + 1)]
        for function, results in (
            (B.LT, {x < y for x, y in pairs}),
            (B.LE, {x <= y for x, y in pairs}),
            (B.EQ, {True, False}),
        ):
            wanted = results.pop() if len(results) == 1 else None
            assert found(function, between(a, c), between(b, d)) == wanted
    unknown = Value("%a", I64)
    assert found(B.LT, unknown, between(1, 2)) is None
    assert found(B.LE, between(1, 2), unknown) is None


def test_nothing_is_written_for_known_numbers_and_neutral_ones() -> None:
    x = between(3, 9)
    for function in (B.ADD, B.SUB):
        assert found(function, x, number(0)) is x
        assert found(function, x, number(1)) is None
    for function in (B.MUL, B.FLOORDIV):
        assert found(function, x, number(1)) is x
        assert found(function, x, number(2)) is None
    assert found(B.ADD, number(0), x) is found(B.MUL, number(1), x) is x
    assert found(B.SUB, number(0), x) is found(B.FLOORDIV, number(1), x) is None
    assert found(B.MUL, number(0), x) == found(B.MUL, x, number(0)) == 0
    assert found(B.MOD, x, number(1)) is None
    assert found(B.FLOORDIV, number(-7), number(2)) == -4
    less = index_arithmetic(Emitter(ModuleText(host_cpu())), B.LT, number(2), number(3))
    assert less == constant(True, DType.BOOL)
    assert found(B.LT, Value("%v", I64, 4), Value("%w", I64, 4)) is None


def test_lanes_stay_a_base_and_a_stride() -> None:
    a, b = Linear(number(5), 2, 8), Linear(number(3), -2, 8)
    assert found(B.ADD, a, b) == 8
    assert found(B.SUB, a, b) == (2, 4)
    assert found(B.SUB, number(9), a) == (4, -2)
    assert found(B.MUL, a, number(3)) == found(B.MUL, number(3), a) == (15, 6)
    assert found(B.MUL, a, number(0)) == 0
    assert found(B.MUL, a, b) is None
    assert found(B.MUL, a, between(2, 3)) is None
    assert found(B.ADD, a, Value("%v", I64, 8)) is None
    assert found(B.MAX, a, number(3)) is None


@pytest.mark.parametrize(
    ("base", "stride", "by", "most"),
    [
        (number(5), 1, 8, 3),
        (number(0), 2, 8, 4),
        (number(-3), 1, 8, 3),
        (between(0, 80, 8), 1, 4, 4),
        (between(0, 80, 4), 1, 8, 4),
        (between(0, 80, 4), 3, 8, 2),
        (between(0, 80, 3), 1, 8, 0),
        (number(0), -1, 8, 0),
        (number(0), 1, -8, 0),
        (number(0), 1, 0, 0),
    ],
)
def test_lanes_of_one_quotient_are_divided_at_once(
    base: Value, stride: int, by: int, most: int
) -> None:
    for lanes in (2, 3, 4, 5):
        lane = Linear(base, stride, lanes)
        quotient, rest = (found(each, lane, number(by)) for each in (B.FLOORDIV, B.MOD))
        if lanes > most:
            assert quotient is rest is None
        elif base.constant is None:
            assert isinstance(quotient, Value)
            assert isinstance(rest, tuple)
            assert rest[1] == stride
        else:
            at = int(base.constant)
            assert {(at + stride * n) // by for n in range(lanes)} == {quotient}
            assert rest == (at % by, stride)


def test_bounds_decide_comparisons_of_lanes_with_a_limit() -> None:
    """Lanes ``base``, ``base + 1``, ... with one number; if not, a vector of bits is written."""
    for low, high in combinations_with_replacement(range(-2, 7), 2):
        lanes, limit = Linear(number(0), 1, 4), between(low, high)
        for function, flipped in product((B.LT, B.LE), (False, True)):
            results = {
                (y < x or (function is B.LE and x == y))
                if flipped
                else (x < y or (function is B.LE and x == y))
                for x in range(4)
                for y in range(low, high + 1)
            }
            sides = (limit, lanes) if flipped else (lanes, limit)
            result = found(function, *sides)
            if len(results) == 1:
                assert result is results.pop()
            else:
                assert isinstance(result, Value)
                assert (result.dtype, result.lanes) == (DType.BOOL, 4)
    e = Emitter(ModuleText(host_cpu()))
    index_arithmetic(e, B.LT, Linear(number(0), 1, 4), between(-2, 6))
    held = [line.partition("llvm.")[2] for line in e.lines if "llvm." in line]
    assert [each[:4] for each in held] == ["smax", "smin"]
    assert [each.rpartition(", ")[2] for each in held] == ["i64 0)", "i64 4)"]
    assert found(B.LT, Linear(number(0), 1, 4), Value("%a", I64)) is None
    assert found(B.LT, Linear(number(0), 2, 4), between(0, 3)) is None
    assert found(B.EQ, Linear(number(0), 1, 4), between(0, 3)) is None


def test_lanes_in_a_register_have_the_bounds_of_base_and_stride() -> None:
    context = Context(Emitter(ModuleText(host_cpu())), "f")
    found = context.materialize(Linear(between(3, 5), -2, 4))
    assert (found.lanes, found.low, found.high) == (4, -3, 5)
    found = context.materialize(Linear(between(3, 5), 2, 4))
    assert (found.lanes, found.low, found.high) == (4, 3, 11)
    found = context.materialize(Linear(number(0), 3, 4))
    assert (found.ref, found.low, found.high) == ("<i64 0, i64 3, i64 6, i64 9>", 0, 9)
    for low, high in ((None, None), (0, None), (None, 9)):
        found = context.materialize(Linear(Value("%a", I64, 1, None, low, high), 2, 4))
        assert (found.lanes, found.low, found.high) == (4, None, None)
    scalar = between(3, 5)
    assert context.materialize(scalar) is context.materialize(scalar, 1) is scalar
    assert context.materialize(scalar, 4).lanes == 4
    assert context.materialize(Linear(scalar, 0, 4)).lanes == 4
