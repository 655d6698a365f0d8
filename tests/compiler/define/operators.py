"""A small graph of every operator that loops can be written for."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.compiler.dtypes import DType
from dovetail.compiler.graph.operators.attention import Attention
from dovetail.compiler.graph.operators.contractions import (
    Convolution,
    Determinant,
    PixelConvolution,
    contract,
)
from dovetail.compiler.graph.operators.elementwise import (
    Binary,
    Bitcast,
    Cast,
    MultiplyAdd,
    Unary,
    Where,
)
from dovetail.compiler.graph.operators.functions import BinaryFunction, UnaryFunction
from dovetail.compiler.graph.operators.indexing import (
    Gather,
    GatherElements,
    GatherNd,
    ScatterElements,
    ScatterFunction,
    ScatterNd,
)
from dovetail.compiler.graph.operators.integer_winograd import IntegerWinograd
from dovetail.compiler.graph.operators.movement import (
    Concatenate,
    Expand,
    Iota,
    PadMode,
    PadTensor,
    Reshape,
    Slice,
    Transpose,
)
from dovetail.compiler.graph.operators.protocol import TensorOperator
from dovetail.compiler.graph.operators.recurrent import Cell, Nonlinearity, Recurrence
from dovetail.compiler.graph.operators.reductions import (
    ArgReduce,
    Cumulative,
    Reduce,
    ReduceFunction,
)
from dovetail.compiler.graph.operators.rows import NormalizedRows, SoftmaxRows
from dovetail.compiler.graph.operators.selection import SuppressOverlaps
from dovetail.compiler.graph.operators.sorting import Positions, Sort
from dovetail.compiler.graph.operators.windows import WindowArgMax, WindowFunction, WindowReduce
from dovetail.compiler.graph.operators.winograd import Winograd
from dovetail.compiler.graph.types import TensorType

__all__ = ["CASES", "Case"]

Case = tuple[TensorOperator, Sequence[NDArray[Any]]]

RNG = np.random.default_rng(0)


def _floats(*shape: int) -> NDArray[Any]:
    return RNG.standard_normal(shape).astype(np.float32)


def _whole(dtype: str, most: int, *shape: int) -> NDArray[Any]:
    return RNG.integers(0, most, shape).astype(dtype)


WINDOW = ((2, 3), (3, 2), (2, 1), (1, 2), ((1, 1), (0, 1)))
TANH = (Nonlinearity.TANH, 0.0, 0.0)
SIGMOID = (Nonlinearity.SIGMOID, 0.0, 0.0)
BOXES = np.sort(RNG.random((1, 6, 2, 2), np.float32), axis=2).reshape(1, 6, 4)
SCORES = _floats(1, 2, 6)
PRODUCT = contract(
    (TensorType((3, 5), "float32"), TensorType((5, 4), "float32")),
    ((0, 1), (1, 2)),
    (0, 2),
    DType.FLOAT32,
)


def _recurrence(cell: Cell, gates: int, *activations: Any) -> Case:
    state = [_floats(2, 3), _floats(2, 3)] if cell is Cell.LSTM else [_floats(2, 3)]
    lengths = np.array([3, 2])
    last = {
        Cell.RNN: [],
        Cell.GRU: [_floats(3)],
        Cell.LSTM: [_floats(9)],
    }[cell]
    inputs = [_floats(3, 2, 3 * gates), _floats(3, 3 * gates), state[0], lengths]
    return Recurrence(cell, activations, float("inf")), [*inputs, *state[1:], *last]


CASES: tuple[Case, ...] = (
    (
        Attention((0, 1, 3), (0, 2, 3), (0, 2, 4), (0, 1, 2), (1, 0, 4), 0.5, True, True, -9.0),
        [
            *(_floats(1, 33, 2), _floats(1, 35, 2), _floats(1, 35, 2), _floats(33, 35)),
            _whole("bool", 2, 1, 1, 35),
        ],
    ),
    (Unary(UnaryFunction.EXP), [_floats(3, 4)]),
    (Binary(BinaryFunction.DIV), [_whole("int32", 9, 3, 4), _whole("int32", 3, 4)]),
    (Where(), [_whole("bool", 2, 3, 4), _floats(3, 4), _floats(4)]),
    (MultiplyAdd(), [_floats(3, 4), _floats(4), _floats(3, 1)]),
    (Cast(DType.INT8), [_floats(3, 4) * 50]),
    (Bitcast(DType.INT32), [_floats(3, 4)]),
    (Gather(1), [_floats(3, 4), np.array([[3, -1], [0, 2]])]),
    (GatherElements(0), [_floats(3, 4), _whole("int64", 3, 2, 4)]),
    (GatherNd(), [_floats(3, 4, 2), _whole("int64", 3, 5, 2)]),
    (
        ScatterElements(1, ScatterFunction.ADD),
        [_floats(3, 4), _whole("int64", 4, 3, 2), _floats(3, 2)],
    ),
    (ScatterNd(), [_floats(3, 4), np.array([[2], [0]]), _floats(2, 4)]),
    (Reshape((6, 2)), [_floats(3, 4)]),
    (Transpose((1, 2, 0)), [_floats(3, 4, 2)]),
    (Expand((3, 4)), [_floats(3, 1)]),
    (Slice((1, 3), (1, -2), (2, 2)), [_floats(3, 4)]),
    (Concatenate(1), [_floats(3, 2), _floats(3, 3)]),
    (PadTensor((1, 0), (0, 2)), [_floats(3, 4), np.float32(7)]),
    (PadTensor((1, 2), (1, 2), PadMode.REFLECT), [_floats(3, 4), np.float32(0)]),
    (Iota((3, 4), 1), []),
    (PRODUCT, [_floats(3, 5), _floats(5, 4)]),
    (
        Convolution((2, 1), (1, 1), ((1, 0), (1, 2)), (1, 1), 2, DType.FLOAT32),
        [_floats(1, 4, 5, 4), _floats(2, 2, 3, 3)],
    ),
    (
        PixelConvolution(Convolution((2, 1), (1, 1), ((1, 0), (1, 2)), (1, 1), 2, DType.FLOAT32)),
        [_floats(1, 5, 4, 4), _floats(2, 3, 3, 2)],
    ),
    (Determinant(), [_floats(2, 3, 3)]),
    (Reduce(ReduceFunction.MAX, (1,), True), [_floats(3, 4, 2)]),
    (ArgReduce(ReduceFunction.MIN, 1), [_whole("int8", 4, 3, 6)]),
    (Cumulative(ReduceFunction.SUM, 0, reverse=True), [_floats(4, 3)]),
    (NormalizedRows(1e-5, True), [_floats(3, 7)]),
    (NormalizedRows(1e-5, False), [_floats(2, 2, 5)]),
    (SoftmaxRows(), [_floats(3, 5)]),
    (
        SuppressOverlaps(2),
        [BOXES, -np.sort(-SCORES), np.argsort(-SCORES), np.float32(0.2), np.float32(-0.5)],
    ),
    (Sort(3), [_floats(2, 70)]),
    (Sort(5, descending=True), [_floats(1, 300)]),
    (Positions(4), [_whole("bool", 2, 9)]),
    (WindowReduce(*WINDOW, WindowFunction.MAX), [_floats(1, 2, 6, 7)]),
    (WindowReduce(*WINDOW, WindowFunction.ADD), [_whole("uint8", 9, 1, 2, 6, 7)]),
    (WindowArgMax(*WINDOW), [_floats(1, 2, 6, 7)]),
    (Winograd(2, 3, 5), [_floats(1, 2, 6, 8, 4), _floats(16, 2, 2, 4, 4)]),
    (
        IntegerWinograd(4, 7, 5),
        [_whole("uint8", 9, 1, 1, 10, 10, 4), _whole("int16", 9, 36, 1, 1, 2, 4, 2)],
    ),
    _recurrence(Cell.RNN, 1, TANH),
    _recurrence(Cell.GRU, 3, SIGMOID, TANH),
    _recurrence(Cell.LSTM, 4, SIGMOID, TANH, TANH),
)
