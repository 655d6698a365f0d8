"""Softmax of bytes over the last dimension: exponentials by a table, and their quotients."""

import numpy as np

from dovetail.runtime import host

from ....dtypes import DType
from ...ir import Array
from ...operators.elementwise import BinaryFunction
from ...operators.indexing import Gather
from ...operators.integer.softmax import RowSoftmax, exponential_table
from ...operators.integer.values import Softmax
from ...operators.movement import Reshape, Slice
from ...operators.reductions import Cumulative, Reduce, ReduceFunction
from .raised_bytes import F32, RaisedBytes

__all__ = ["row_softmax", "softmax"]


def softmax(new: RaisedBytes, x: str, operator: Softmax) -> str:
    """A table of floats; their sum from left to right."""
    kind = new.builder.types[x]
    size = kind.shape[-1]
    values = _exponentials(new, x, host.exponentials(size, operator.x_scale, operator.scale))
    totals = new.emit(Cumulative(ReduceFunction.SUM, 1), values)
    total = new.emit(Slice((0, size - 1), (1, 1), (kind.elements // size, 1)), totals)
    steps = np.floor(F32(1) / F32(operator.scale))
    scaled = new.binary(BinaryFunction.MUL, values, steps)
    quotient = new.binary(BinaryFunction.DIV, scaled, total)
    return _result(new, x, quotient, operator.zero_point)


def row_softmax(new: RaisedBytes, x: str, operator: RowSoftmax) -> str:
    """A table of integers, summed in any order."""
    values = _exponentials(new, x, exponential_table(operator.x_scale))
    total = new.emit(Reduce(ReduceFunction.SUM, (1,), True), values)
    steps = new.constant(np.array(operator.steps, F32))
    scale = new.binary(BinaryFunction.DIV, steps, new.cast(total, DType.FLOAT32))
    quotient = new.binary(BinaryFunction.MUL, new.cast(values, DType.FLOAT32), scale)
    return _result(new, x, quotient, operator.zero_point)


def _exponentials(new: RaisedBytes, x: str, table: Array) -> str:
    """An entry of ``table`` for each element, the last one for the largest of its row.

    The result has two dimensions: rows, and their elements.
    """
    kind = new.builder.types[x]
    size = kind.shape[-1]
    rows = new.emit(Reshape((kind.elements // size, size)), x)
    wide = new.cast(rows, DType.INT64)
    top = new.emit(Reduce(ReduceFunction.MAX, (1,), True), wide)
    place = new.binary(BinaryFunction.ADD, new.binary(BinaryFunction.SUB, wide, top), 255)
    return new.emit(Gather(0), new.constant(table), place)


def _result(new: RaisedBytes, x: str, quotient: str, zero_point: int) -> str:
    """Bytes in the shape of ``x``."""
    bytes_ = new.saturated(quotient, zero_point, -128, 127)
    return new.emit(Reshape(new.builder.types[x].shape), bytes_)
