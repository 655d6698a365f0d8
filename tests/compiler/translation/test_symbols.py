"""Symbols are equal where the functions of bytes that they stand for are, and nowhere else."""

import numpy as np
import pytest

from dovetail.compiler.translation.symbols import (
    BYTES,
    PRIME,
    Array,
    Symbols,
    apply_table,
    balanced,
    constants,
    digest,
    fresh,
    function,
    integers,
    is_constant,
    of_pairs,
    words_of,
)

RNG = np.random.default_rng(6)
A, B = (fresh(balanced(RNG.integers(0, PRIME, 3))) for _ in range(2))
FIRST, SECOND = (RNG.integers(-128, 128, 256) for _ in range(2))
SUM, OTHER = RNG.integers(-128, 128, (2, 256, 256))


def same(x: Symbols, y: Symbols) -> bool:
    return all(
        np.array_equal(getattr(x, name), getattr(y, name)) for name in ("values", "roots", "tables")
    )


def test_tables_one_after_the_other_are_one() -> None:
    assert same(apply_table(apply_table(A, FIRST), SECOND), apply_table(A, SECOND[FIRST + 128]))
    assert not same(apply_table(A, FIRST), apply_table(A, SECOND))
    assert same(apply_table(A, BYTES), A)
    each = apply_table(A, np.stack([FIRST, SECOND, BYTES]))
    for place, table in enumerate((FIRST, SECOND, BYTES)):
        assert each.values[place] == apply_table(A, table).values[place]


def test_a_table_of_one_byte_is_known() -> None:
    known = apply_table(A, np.full(256, 7))
    assert same(known, constants(np.full(3, 7)))
    assert is_constant(known).all()
    assert not is_constant(A).any()
    assert not is_constant(integers(np.arange(3))).any()
    ends = constants(np.array([-128, 0, 127]))
    assert same(apply_table(ends, FIRST), constants(FIRST[[0, 128, 255]]))


def test_a_function_of_two_bytes_does_not_depend_on_their_order() -> None:
    found = of_pairs(SUM, A, B)
    assert same(found, of_pairs(SUM.T, B, A))
    assert not same(found, of_pairs(SUM, B, A))
    assert not same(found, of_pairs(OTHER, A, B))
    assert same(of_pairs(SUM, A, A), apply_table(A, np.diagonal(SUM)))


def test_a_byte_may_be_turned_in_all_its_bits() -> None:
    turned = apply_table(A, -1 - BYTES)
    assert same(of_pairs(SUM[::-1], turned, B), of_pairs(SUM, A, B))
    assert same(of_pairs(SUM[::-1].T, B, turned), of_pairs(SUM, A, B))


@pytest.mark.parametrize("byte", [-128, -3, 0, 127])
def test_a_function_of_a_byte_and_a_known_one_is_a_table(byte: int) -> None:
    known = constants(np.full(3, byte))
    assert same(of_pairs(SUM, A, known), apply_table(A, SUM[:, byte + 128]))
    assert same(of_pairs(SUM, known, A), apply_table(A, SUM[byte + 128]))
    assert same(of_pairs(SUM, known, known), constants(np.full(3, SUM[byte + 128, byte + 128])))


def test_a_function_of_functions_of_two_bytes_is_one_of_these() -> None:
    whole = OTHER[SUM + 128, SUM.T + 128]
    found = of_pairs(OTHER, of_pairs(SUM, A, B), of_pairs(SUM.T, A, B))
    assert same(found, of_pairs(whole, A, B))


def test_functions_without_meaning_tell_their_operands_apart() -> None:
    x, y = A.values, B.values
    found = function(3, x, y)
    assert np.array_equal(found, function(3, x.copy(), y))
    for other in (function(3, y, x), function(4, x, y), function(3, x), function(3, x, y, 0)):
        assert not np.any(found == other)
    assert (np.abs(found) <= PRIME // 2).all()


def test_names_of_functions_are_of_all_bytes_of_arrays() -> None:
    long = np.zeros(5000, np.int64)
    other: Array = long.copy()
    other[2500] = 1
    assert digest(long) == digest(long.copy())
    assert len({digest(long), digest(other), digest("a", 1), digest(1, "a"), digest("a", 2)}) == 5
    assert 0 <= digest("a") < 1 << 64


def test_words_are_of_four_bytes_from_the_lowest_on() -> None:
    known = constants(np.array([1, 2, 3, -4, 0, 0, 0, 127]))
    assert words_of(known).tolist() == [0x01 + 0x200 + 0x30000 + (-4 << 24), 127 << 24]
    mixed = fresh(np.array([1, 2, 3, -4]))
    turned = fresh(np.array([2, 1, 3, -4]))
    assert words_of(mixed) != words_of(turned)


def test_integers_are_elements_of_the_field() -> None:
    assert balanced(np.array([0, PRIME, PRIME + 5, -1, PRIME // 2, PRIME // 2 + 1])).tolist() == [
        *(0, 0, 5, -1, PRIME // 2, -(PRIME // 2)),
    ]
