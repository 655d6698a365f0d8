"""Sums, products and finishes of symbols: what the units compute, of every value at once."""

from collections.abc import Callable, Iterable

import numpy as np

from dovetail.isa.instructions import Rounding
from dovetail.isa.requantize import FIXED_BIAS_BITS, low_bits, requantize

from ..errors import TranslationError
from .symbols import (
    BYTES,
    NOT_A_BYTE,
    PRIME,
    TABLES,
    Array,
    Parameters,
    Symbols,
    apply_table,
    balanced,
    constants,
    digest,
    fresh,
    function,
    integers,
    is_constant,
    mapped,
    write,
)

__all__ = ["chosen", "joined", "largest", "linear", "multiplied", "requantized", "saturated"]

SMALL = 1 << 16
FAR = 1 << 30
"""A bias that is no smaller, as lanes without a channel have, makes the same byte of all sums of up
to half of it, in most cases; larger sums are not looked at.
"""
PARTS = 8192
"""Terms of a sum of products of small and large elements that float64 holds exactly."""


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
    found = [TABLES.number(TABLES.rows[table] * by + more) for table, by, more in cases.T]
    made.roots[alone] = roots
    made.tables[alone] = np.array(found)[places.reshape(-1)]
    return made


def saturated(x: Symbols, low: int, high: int) -> Symbols:
    """The bytes of ``clip(x, low, high)``, of bytes or integers."""
    known = x.tables != NOT_A_BYTE
    numbers, places = np.unique(x.tables[known], return_inverse=True)
    found = [TABLES.number(np.clip(TABLES.rows[number], low, high)) for number in numbers]
    tables = np.full(x.tables.shape, TABLES.number(np.clip(BYTES, low, high)))
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
            TABLES.number(
                parameters.meaning(
                    TABLES.rows[table].astype(np.int32),
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
