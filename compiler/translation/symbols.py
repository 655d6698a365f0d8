"""Values that stand for every value: elements of a field instead of bytes.

Inputs are random elements of the field of PRIME elements.  Sums and products are computed in the
field, so two polynomials of the inputs that differ are equal by chance only, once in PRIME / degree
cases (the lemma of Schwartz and Zippel).  What is not a polynomial is a function without meaning,
a hash of its operands: equal for equal operands, and nearly never otherwise.  (Random
interpretation: Gulwani and Necula, POPL 2003.)
"""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.instructions import Rounding
from dovetail.isa.requantize import FIXED_BIAS_BITS, low_bits, requantize, requantize_fixed

from ..errors import TranslationError

__all__ = [
    *("BYTES", "NOT_A_BYTE", "Array", "Parameters", "Symbols", "apply_table", "balanced"),
    *(
        "chosen",
        "constants",
        "digest",
        "fresh",
        "function",
        "integers",
        "is_constant",
        "joined",
        "largest",
    ),
    *("linear", "multiplied", "of_pairs", "requantized", "saturated", "words_of", "write"),
]

Array = NDArray[Any]

PRIME = (1 << 31) - 1
"""Elements are int64 in -2**30 .. 2**30 here, so that small integers stand for themselves."""

BYTES = np.arange(-128, 128)
NOT_A_BYTE = -1
"""In place of a table, for integers."""
PAIRS = 1 << 16
"""Pairs of two bytes."""
SMALL = 1 << 16
FAR = 1 << 30
"""A bias that is no smaller, as lanes without a channel have, makes the same byte of all sums of up
to half of it, in most cases; larger sums are not looked at.
"""
PARTS = 8192
"""Terms of a sum of products of small and large elements that float64 holds exactly."""


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class Parameters:
    """What PAR holds for results, whichever way they are rounded: int32 and float32.

    made: where VECTOR has written them: there the words of bias and scale are elements of the field
    that stand for what depends on the inputs.
    """

    bias: Array
    scale: Array
    rounding: Rounding = Rounding.FLOAT
    made: Array | bool = False

    @property
    def meaning(self) -> Callable[..., Array]:
        """What the finish does with known integers."""
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


_TABLES = _Tables()
IDENTITY = _TABLES.number(BYTES)
_FIRST = _TABLES.number(np.full(256, -128))
for _byte in BYTES:
    _TABLES.number(np.full(256, _byte))


def mapped(roots: Array, tables: Array) -> Symbols:
    """Bytes: the tables of these numbers applied to roots."""
    names = np.array(_TABLES.names, np.uint64).view(np.int64)[tables]
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
    """What four bytes each, from the lowest on, are as a word: [..., 4 * N] to int64[..., N].

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
    return _TABLES.number(_TABLES.rows[second][_TABLES.rows[first] + 128])


def apply_table(x: Symbols, table: Array) -> Symbols:
    """Bytes, replaced by the elements of ``table`` int8[256], or int8[C, 256] for the last axis."""
    rows = [_TABLES.number(each) for each in np.atleast_2d(table)]
    second = np.broadcast_to(np.array(rows), x.tables.shape)
    count = len(_TABLES.rows)
    pairs, places = np.unique(x.tables * count + second, return_inverse=True)
    found = [_composed(int(pair) // count, int(pair) % count) for pair in pairs]
    return mapped(x.roots, np.array(found, np.int64)[places.reshape(x.tables.shape)])


def of_pairs(table: Array, a: Symbols, b: Symbols) -> Symbols:
    """A function of two bytes: ``table`` int8[256, 256], by ``a`` and ``b``.

    Which of the two comes first has no influence.  A function of two functions of the same pair is
    one of that pair, and one of a byte and a known one is a table of that byte.
    """
    wide = np.array([len(row) == PAIRS for row in _TABLES.rows])
    nested = (a.roots == b.roots) & wide[a.tables] & wide[b.tables]
    swapped, same = a.values > b.values, a.values == b.values
    low, high = np.minimum(a.values, b.values), np.maximum(a.values, b.values)
    roots = np.where(same, a.values, function(digest("pair"), low, high))
    numbers = [_TABLES.number(each.reshape(-1)) for each in (table, table.T)]
    tables = np.where(swapped, numbers[1], numbers[0])
    tables = np.where(same, _TABLES.number(np.diagonal(table)), tables)
    if nested.any():
        cases, places = np.unique(
            np.stack([a.tables[nested], b.tables[nested]]), axis=1, return_inverse=True
        )
        rows = [table[tuple(_TABLES.rows[number] + 128 for number in case)] for case in cases.T]
        found = np.array([_TABLES.number(each) for each in rows])
        roots[nested], tables[nested] = a.roots[nested], found[places.reshape(-1)]
    made = mapped(roots, tables)
    known = is_constant(b)
    _of_known(made, table, a, b, known)
    _of_known(made, table.T, b, a, is_constant(a) & ~known)
    return made


def _of_known(made: Symbols, table: Array, x: Symbols, other: Symbols, known: Array) -> None:
    """Make ``made`` the function of ``x`` that ``table`` is, where ``other`` is known."""
    for number in np.unique(other.tables[known]):
        byte = _TABLES.rows[number][0]
        places = known & (other.tables == number)
        write(made, places, apply_table(x.moved(itemgetter(places)), table[:, byte + 128]))


def multiplied(x: Array, weights: Array) -> Array:
    """``x @ weights`` in the field; x [..., K], weights [K, N]."""
    if np.abs(weights).max(initial=0) >= SMALL:
        high = weights >> 16
        low = weights - (high << 16)
        return balanced(multiplied(x, high) * SMALL + multiplied(x, low))
    total = np.zeros((*x.shape[:-1], weights.shape[1]), np.int64)
    # 2**30 * 2**9 * PARTS is below 2**53 for int8 with an offset; larger ones are split further.
    step = PARTS if np.abs(weights).max(initial=0) < 512 else PARTS >> 7
    for start in range(0, len(weights), step):
        part = slice(start, start + step)
        found = x[..., part].astype(np.float64) @ weights[part].astype(np.float64)
        total = balanced(total + found.astype(np.int64))
    return total


def is_constant(x: Symbols) -> Array:
    """Which elements are known integers."""
    return np.array(_TABLES.constant)[x.tables] & (x.tables != NOT_A_BYTE)


def linear(
    x: Symbols, factors: Array, rule: Callable[[Array, Array], Array], added: Array | int = 0
) -> Symbols:
    """The sums of products ``rule(x, factors) + added``.

    Where all operands of a sum, or all but one, are constants or have the factor 0, the sum is a
    table of that byte.  So one that copies a byte, or scales it, is known as what it is.
    rule: linear in both operands, and the same function of them for every element.
    """
    made = integers(rule(x.values, factors) + added)
    constant = is_constant(x)
    used = (factors != 0).astype(np.int64)
    counts = rule(np.where(x.tables == NOT_A_BYTE, 2, np.where(constant, 0, 1)), used)
    alone = counts <= 1
    if not alone.any():
        return made
    values, roots, tables = (
        rule(np.where(constant, 0, each), used)[alone] for each in (x.values, x.roots, x.tables)
    )
    factor = rule(np.where(constant, 0, 1), factors)[alone]
    # A bias may be larger than elements of the field.
    apart = np.broadcast_to(added, made.values.shape)[alone]
    rest = balanced(made.values[alone] - factor * values - apart) + apart
    cases, places = np.unique(np.stack([tables, factor, rest]), axis=1, return_inverse=True)
    found = [_TABLES.number(_TABLES.rows[table] * by + more) for table, by, more in cases.T]
    made.roots[alone] = roots
    made.tables[alone] = np.array(found)[places.reshape(-1)]
    return made


def saturated(x: Symbols, low: int, high: int) -> Symbols:
    """The bytes of ``clip(x, low, high)``, of bytes or integers."""
    known = x.tables != NOT_A_BYTE
    numbers, places = np.unique(x.tables[known], return_inverse=True)
    found = [_TABLES.number(np.clip(_TABLES.rows[number], low, high)) for number in numbers]
    tables = np.full(x.tables.shape, _TABLES.number(np.clip(BYTES, low, high)))
    tables[known] = np.array(found, np.int64)[places]
    roots = np.where(known, x.roots, function(digest("saturate"), x.values))
    return mapped(roots, tables)


def requantized(
    x: Symbols, parameters: Parameters, zero_point: int, low: int, high: int
) -> Symbols:
    """The bytes of VECTOR's finish REQUANTIZE.  parameters: for the last axis or all elements."""
    shape = x.values.shape
    bias, bits = (
        np.ascontiguousarray(np.broadcast_to(each, shape)).view(np.int32).astype(np.int64)
        for each in (parameters.bias, parameters.scale)
    )
    if parameters.rounding is Rounding.FIXED:
        if np.any(parameters.made):
            raise TranslationError("no rule for parameters of rows with the rounding FIXED")
        added, power = low_bits(bias, FIXED_BIAS_BITS), bias >> FIXED_BIAS_BITS & 31
        sums = balanced(x.values + added), bits & 0x7FFFFFFF, power
    else:
        sums = balanced(x.values + bias), bits, np.zeros_like(bits)
    name = digest(parameters.rounding.name, zero_point)
    made = apply_table(fresh(function(name, *sums)), np.clip(BYTES, low, high))
    alone = (x.tables != NOT_A_BYTE) & ~np.broadcast_to(parameters.made, shape)
    if alone.any():
        cases, places = np.unique(
            np.stack([x.tables[alone], bias[alone], bits[alone]]), axis=1, return_inverse=True
        )
        found = [
            _TABLES.number(
                parameters.meaning(
                    _TABLES.rows[table].astype(np.int32),
                    np.array([first], np.int32),
                    np.array([second], np.int32).view(np.float32),
                    *(zero_point, low, high),
                )
            )
            for table, first, second in cases.T
        ]
        write(made, alone, mapped(x.roots[alone], np.array(found)[places.reshape(-1)]))
    far = (np.abs(bias) >= FAR) & ~alone & ~np.broadcast_to(parameters.made, shape)
    if far.any() and parameters.rounding is Rounding.FLOAT:
        words = bias[far].astype(np.int32), bits[far].astype(np.int32).view(np.float32)
        ends = [
            requantize(np.full(len(words[0]), end, np.int32), *words, zero_point, low, high)
            for end in (-FAR // 2, FAR // 2)
        ]
        far[far] = ends[0] == ends[1]
        write(made, far, constants(ends[0][ends[0] == ends[1]]))
    return made


def _rank(values: Array) -> Array:
    """An order of the field's elements in which -128 comes first, for the largest of some."""
    return (values + 128) % PRIME


def chosen(which: Array, x: Symbols, other: Symbols) -> Symbols:
    """``x`` where ``which``, else ``other``."""
    return Symbols(
        np.where(which, x.values, other.values),
        np.where(which, x.roots, other.roots),
        np.where(which, x.tables, other.tables),
    )


def joined(x: Symbols, other: Symbols) -> Symbols:
    """The rows of ``x``, then those of ``other``."""
    fields = ("values", "roots", "tables")
    return Symbols(*(np.concatenate([getattr(x, f), getattr(other, f)]) for f in fields))


def largest(parts: Iterable[Symbols]) -> Symbols:
    """The largest of tensors, element by element."""
    found: Symbols | None = None
    for part in parts:
        if found is None:
            found = part
            continue
        found = chosen(_rank(part.values) > _rank(found.values), part, found)
    assert found is not None
    return found
