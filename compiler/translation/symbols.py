"""Values that stand for every value: elements of a field instead of bytes.

Inputs are random elements of the field of PRIME elements.  Sums and products are computed in the
field, so two polynomials of the inputs that differ are equal by chance only, once in PRIME / degree
cases (the lemma of Schwartz and Zippel).  What is not a polynomial is a function without meaning,
a hash of its operands: equal for equal operands, and nearly never otherwise.  (Random
interpretation: Gulwani and Necula, POPL 2003.)
"""

import hashlib
from collections.abc import Callable
from functools import cache
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.frozen import frozen
from dovetail.isa.instructions import Rounding
from dovetail.isa.requantize import requantize, requantize_fixed

__all__ = [
    "BYTES",
    "NOT_A_BYTE",
    "PRIME",
    "TABLES",
    "Array",
    "Parameters",
    "Symbols",
    "apply_table",
    "balanced",
    "constants",
    "digest",
    "fresh",
    "function",
    "integers",
    "is_constant",
    "mapped",
    "of_pairs",
    "words_of",
    "write",
]

Array = NDArray[Any]

PRIME = (1 << 31) - 1
"""Elements are int64 in -2**30 .. 2**30 here, so that small integers stand for themselves."""

BYTES = np.arange(-128, 128)
NOT_A_BYTE = -1
"""In place of a table, for integers."""
PAIRS = 1 << 16
"""Pairs of two bytes."""
TURNED = -1 - BYTES
"""Each byte with all bits turned."""


@frozen
class Symbols:
    """A tensor of symbols; the arrays are of one shape.

    values: int64, elements of the field.  A byte, or an integer that depends on one byte alone, is
    a table of 256 integers applied to a root; one that depends on two bytes is a table of PAIRS
    applied to a root that stands for both.  roots: int64, elements of the field.  tables: int64,
    numbers of tables; NOT_A_BYTE for other integers.
    """

    values: Array
    roots: Array
    tables: Array

    def moved(self, move: Callable[[Array], Array]) -> "Symbols":
        """With all arrays moved alike."""
        return Symbols(move(self.values), move(self.roots), move(self.tables))


@frozen
class Parameters:
    """Words of PAR for results, however they are rounded: int32 and float32.

    made: where VECTOR has written them: there the words of bias and scale are elements of the field
    that stand for what depends on the inputs.
    """

    bias: Array
    scale: Array
    rounding: Rounding = Rounding.FLOAT
    made: Array | bool = False

    @property
    def meaning(self) -> Callable[..., Array]:
        """Effect of the finish on known integers."""
        return requantize_fixed if self.rounding is Rounding.FIXED else requantize


def write(memory: Symbols, places: Array, x: Symbols) -> None:
    """Change ``memory`` in place."""
    memory.values[places] = x.values
    memory.roots[places] = x.roots
    memory.tables[places] = x.tables


def balanced(x: Array) -> Array:
    """Integers as elements of the field."""
    half = PRIME >> 1
    return (x.astype(np.int64) + half) % PRIME - half


def _mixed(x: Array) -> Array:
    """A permutation of uint64 without pattern: what SplitMix64 ends with (Steele et al., 2014)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def function(name: int, *operands: Array | int) -> Array:
    """A function without meaning, of ``operands`` in their order; ``name``: any 64 bits."""
    total: Array = np.array(name & (1 << 64) - 1, np.uint64)
    with np.errstate(over="ignore"):
        for each in operands:
            found = np.asarray(each).astype(np.int64).view(np.uint64)
            total = _mixed(total * np.uint64(3) + found)
    return balanced((total >> np.uint64(2)).astype(np.int64))


def digest(*parts: object) -> int:
    """A name for ``function``: of texts, numbers and the bytes of arrays."""
    whole = hashlib.sha256()
    for part in parts:
        whole.update(part.tobytes() if isinstance(part, np.ndarray) else repr(part).encode())
    return int.from_bytes(whole.digest()[:8], "little")


class _Tables:
    """Every table of 256 or PAIRS integers that was seen, by number; the first is the identity,
    then follow those of one byte alone.
    """

    def __init__(self) -> None:
        self.rows: list[Array] = []
        self.names: list[int] = []
        self.constant: list[bool] = []
        self._numbers: dict[bytes, int] = {}

    def number(self, table: Array) -> int:
        row = np.asarray(table, np.int64)
        found = self._numbers.setdefault(row.tobytes(), len(self.rows))
        if found == len(self.rows):
            self.rows.append(row)
            self.names.append(digest(row))
            self.constant.append(bool((row == row[0]).all()))
        return found


TABLES = _Tables()
IDENTITY = TABLES.number(BYTES)
_FIRST = TABLES.number(np.full(256, -128))
for _byte in BYTES:
    TABLES.number(np.full(256, _byte))


def mapped(roots: Array, tables: Array) -> Symbols:
    """Bytes: the tables of these numbers applied to roots."""
    names = np.array(TABLES.names, np.uint64).view(np.int64)[tables]
    values = function(0, names, roots)
    constant = (tables >= _FIRST) & (tables < _FIRST + 256)
    values = np.where(tables == IDENTITY, roots, np.where(constant, tables - _FIRST - 128, values))
    return Symbols(values, np.where(constant, 0, roots), tables)


def fresh(values: Array) -> Symbols:
    """Bytes that are elements of the field themselves."""
    return mapped(values, np.full(values.shape, IDENTITY))


def constants(x: Array) -> Symbols:
    """Known bytes."""
    small = x.astype(np.int64)
    return Symbols(small, np.zeros_like(small), small + _FIRST + 128)


def words_of(x: Symbols) -> Array:
    """Words of four bytes each, from the lowest on: [..., 4 * N] to int64[..., N].

    Known bytes are the word itself, others one of 31 bits that stands for them.
    """
    values, known = (each.reshape(*each.shape[:-1], -1, 4) for each in (x.values, is_constant(x)))
    own = np.ascontiguousarray(values.astype(np.int8)).view("<i4")[..., 0]
    made = function(digest("word"), *np.moveaxis(values, -1, 0))
    return np.where(known.all(axis=-1), own, made)


def integers(values: Array) -> Symbols:
    """Elements of the field that stand for sums."""
    values = balanced(values)
    return Symbols(values, values.copy(), np.full(values.shape, NOT_A_BYTE))


@cache
def _composed(first: int, second: int) -> int:
    return TABLES.number(TABLES.rows[second][TABLES.rows[first] + 128])


def apply_table(x: Symbols, table: Array) -> Symbols:
    """Bytes, replaced by the elements of ``table`` int8[256], or int8[C, 256] for the last axis."""
    rows = [TABLES.number(each) for each in np.atleast_2d(table)]
    second = np.broadcast_to(np.array(rows), x.tables.shape)
    count = len(TABLES.rows)
    pairs, places = np.unique(x.tables * count + second, return_inverse=True)
    found = [_composed(int(pair) // count, int(pair) % count) for pair in pairs]
    return mapped(x.roots, np.array(found, np.int64)[places.reshape(x.tables.shape)])


def of_pairs(table: Array, a: Symbols, b: Symbols) -> Symbols:
    """A function of two bytes: ``table`` int8[256, 256], by ``a`` and ``b``.

    Which of the two comes first has no influence, nor whether a byte or -1 less it is one of them:
    a difference is a sum.  A function of two functions of the same pair is one of that pair, and
    one of a byte and a known one is a table of that byte.
    """
    turned = np.array([row[0] >= 0 for row in TABLES.rows])
    kinds = turned[a.tables] * 2 + turned[b.tables]
    made = Symbols(*(np.empty(kinds.shape, np.int64) for _ in range(3)))
    for kind in np.unique(kinds):
        places, own = kinds == kind, table
        first, second = (x.moved(itemgetter(places)) for x in (a, b))
        if kind & 2:
            own, first = own[::-1], apply_table(first, TURNED)
        if kind & 1:
            own, second = own[:, ::-1], apply_table(second, TURNED)
        write(made, places, _of_pairs(own, first, second))
    return made


def _of_pairs(table: Array, a: Symbols, b: Symbols) -> Symbols:
    """``of_pairs`` of bytes whose tables begin below 0."""
    wide = np.array([len(row) == PAIRS for row in TABLES.rows])
    nested = (a.roots == b.roots) & wide[a.tables] & wide[b.tables]
    swapped, same = a.values > b.values, a.values == b.values
    low, high = np.minimum(a.values, b.values), np.maximum(a.values, b.values)
    roots = np.where(same, a.values, function(digest("pair"), low, high))
    numbers = [TABLES.number(each.reshape(-1)) for each in (table, table.T)]
    tables = np.where(swapped, numbers[1], numbers[0])
    tables = np.where(same, TABLES.number(np.diagonal(table)), tables)
    if nested.any():
        cases, places = np.unique(
            np.stack([a.tables[nested], b.tables[nested]]), axis=1, return_inverse=True
        )
        rows = [table[tuple(TABLES.rows[number] + 128 for number in case)] for case in cases.T]
        found = np.array([TABLES.number(each) for each in rows])
        roots[nested], tables[nested] = a.roots[nested], found[places.reshape(-1)]
    made = mapped(roots, tables)
    known = is_constant(b)
    _of_known(made, table, a, b, known)
    _of_known(made, table.T, b, a, is_constant(a) & ~known)
    return made


def _of_known(made: Symbols, table: Array, x: Symbols, other: Symbols, known: Array) -> None:
    """Make ``made`` the function of ``x`` that ``table`` is, where ``other`` is known."""
    for number in np.unique(other.tables[known]):
        byte = TABLES.rows[number][0]
        places = known & (other.tables == number)
        write(made, places, apply_table(x.moved(itemgetter(places)), table[:, byte + 128]))


def is_constant(x: Symbols) -> Array:
    """True for elements that are known integers."""
    return np.array(TABLES.constant)[x.tables] & (x.tables != NOT_A_BYTE)
