"""Sums of scaled terms: products of float32, and whole numbers of it."""

from dovetail.isa.requantize import WIDE_LIMIT

from ....dtypes import DType
from ...operators.elementwise import BinaryFunction, Bitcast
from ...operators.integer.scaled_sum import FRACTION_BITS, ScaledSum, ScalesOfWords
from ...operators.movement import Concatenate, Reshape, Slice, Transpose
from .raised_bytes import RaisedBytes

__all__ = ["scaled_sum", "scales_of_words"]


def scaled_sum(new: RaisedBytes, x: str, factors: str, operator: ScaledSum) -> str:
    """``ScaledSum`` of int32 and float32, raised."""
    *outer, size = new.builder.types[x].shape
    given, channels = size // operator.terms, size // operator.terms * operator.repeats

    def part(name: str, first: int, count: int) -> str:
        starts, steps = (*(0 for _ in outer), first), (1,) * (len(outer) + 1)
        return new.emit(Slice(starts, steps, (*outer, count)), name)

    total = ""
    for number in range(operator.terms):
        term = new.cast(part(x, number * given, given), DType.FLOAT32)
        if operator.repeats > 1:
            term = new.emit(Concatenate(len(outer)), *[term] * operator.repeats)
        scaled = new.binary(BinaryFunction.MUL, term, part(factors, number * channels, channels))
        whole = new.rounded(scaled, 0, -WIDE_LIMIT, WIDE_LIMIT)
        total = new.binary(BinaryFunction.ADD, total, whole) if total else whole
    steps_of = new.binary(BinaryFunction.MUL, total, 2.0**-FRACTION_BITS)
    return new.saturated(steps_of, operator.zero_point, -128, 127)


def scales_of_words(new: RaisedBytes, x: str, operator: ScalesOfWords) -> str:
    """``ScalesOfWords`` of raised bytes, float32."""
    words = new.builder.types[x].elements // (8 * operator.lanes)
    rows = new.emit(Reshape((words, 8, operator.lanes)), x)
    upper = new.emit(Slice((0, 4, 0), (1, 1, 1), (words, 4, operator.lanes)), rows)
    parts = new.emit(Reshape((words * operator.lanes, 4)), upper)
    low = new.binary(BinaryFunction.AND, new.centred(parts, 0, DType.INT32), 255)
    total = ""
    for place in range(4):
        part = new.emit(Slice((0, place), (1, 1), (words * operator.lanes, 1)), low)
        moved = new.binary(BinaryFunction.SHL, part, 8 * place) if place else part
        total = new.binary(BinaryFunction.OR, total, moved) if total else moved
    bits = new.emit(Bitcast(DType.FLOAT32), total)
    size = words // operator.pixels, operator.pixels, operator.lanes
    apart = new.emit(Transpose((1, 0, 2)), new.emit(Reshape(size), bits))
    return new.emit(Reshape((1, 1, operator.pixels, size[0] * operator.lanes)), apart)
