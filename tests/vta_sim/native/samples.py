"""Native functions for the tests of their translation; each is also plain Python."""

from dovetail.isa.instructions import Fold, Gemm
from dovetail.vta_sim.native.language import Int8s, Int64s, Levels, Record

LIMIT = 5


class Sample(Record):
    numbers: Int64s
    small: Int8s
    total: int


class Outer(Record):
    inner: Sample
    count: int


def divide(a: int, b: int) -> int:
    return (a // b) * 1000 + a % b


def bits(a: int, b: int) -> int:
    return ((a & b) | 1) ^ (a << 3) + (b >> 2) - ~a


def compare(a: int, b: int) -> int:
    if a == b or (a < 0 and not b < 0):
        return -1
    if a > LIMIT:
        return 10 if a >= b else 20
    return min(a, b, LIMIT) * max(a, b) + (a != b)


def flags(a: int, b: int) -> int:
    return 10 * _flag(a < b) + _flag(b > a + 1)


def _flag(first: bool) -> int:
    total = 0
    for _number in range(2):
        total += 2 if first else 1
        first = False
    return total


def skip(a: int, b: int) -> int:
    total = 0
    for k in range(a, b):
        if k == 3:
            continue
        if k > 7:
            break
        total += _twice(k)
    while total > 9:
        total -= 10
    return total


def _twice(k: int) -> int:
    return 2 * k


def guard(s: Sample, n: int) -> int:
    place = 0
    while place < n and s.numbers[place] != LIMIT:
        s.total += s.numbers[place]
        s.small[place] = s.numbers[place]
        place += 1
    return place


def nested(o: Outer) -> int:
    o.count += 1
    o.inner.total = o.inner.numbers[0] = o.count
    return o.inner.total + Fold.MAX


def fields(row: Gemm) -> int:
    return row.wgt_address * 1000 + _sum(row.extent) + row.reduction


def _sum(levels: Levels) -> int:
    total = 0
    for level in range(6):
        total += levels[level]
    return total


def wrong_statement(a: int) -> int:
    with a:  # type: ignore[attr-defined]
        return a


def wrong_expression(a: int) -> int:
    return len([a])


def wrong_annotation(a: str) -> int:
    return int(a)


def wrong_name(s: Sample) -> int:
    return s.missing  # type: ignore[attr-defined, no-any-return]


def wrong_variable(a: int) -> int:
    return missing  # type: ignore[name-defined, no-any-return]  # noqa: F821


def wrong_operator(a: int) -> int:
    return a**2


def wrong_sign(a: int) -> int:
    return +a


def wrong_index(a: int) -> int:
    return a[0]  # type: ignore[index, no-any-return]


def wrong_condition(s: Sample) -> int:
    return s.numbers < 3  # type: ignore[operator, no-any-return]


def wrong_sum(s: Sample) -> int:
    return s.numbers + 3  # type: ignore[operator, no-any-return]


def wrong_choice(s: Sample) -> int:
    return s.numbers if s.total else 3  # type: ignore[return-value]


def wrong_keyword(a: int) -> int:
    return _twice(k=a)


def wrong_function(a: int) -> int:
    return abs(a)


def wrong_count(a: int) -> int:
    return _twice(a, a)  # type: ignore[call-arg]


def wrong_kind(s: Sample) -> int:
    k = 1
    k = s.numbers  # type: ignore[assignment]
    return k + s.total


def wrong_range(a: int) -> int:
    for _number in range(a, 9, 2):
        a += 1
    return a


def wrong_field(row: Gemm) -> int:
    return row.missing  # type: ignore[attr-defined, no-any-return]
