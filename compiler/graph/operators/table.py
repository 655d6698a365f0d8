"""Every general operator, by name."""

from collections.abc import Mapping

from . import (
    assembly,
    contractions,
    elementwise,
    indexing,
    movement,
    quantization,
    recurrent,
    reductions,
    repetition,
    selection,
    sorting,
    transposed,
    windows,
    winograd,
)
from .protocol import TensorOperator

__all__ = ["TENSOR_OPERATORS"]

_ALL: tuple[type[TensorOperator], ...] = (
    assembly.Assemble,
    contractions.Contract,
    contractions.Convolution,
    contractions.Determinant,
    elementwise.Binary,
    elementwise.Bitcast,
    elementwise.MultiplyAdd,
    elementwise.Cast,
    elementwise.Unary,
    elementwise.Where,
    indexing.Gather,
    indexing.GatherElements,
    indexing.GatherNd,
    indexing.ScatterElements,
    indexing.ScatterNd,
    movement.Concatenate,
    movement.Expand,
    movement.Iota,
    movement.PadTensor,
    movement.Reshape,
    movement.Slice,
    movement.Tile,
    movement.Transpose,
    quantization.DequantizeLinear,
    quantization.QuantizeLinear,
    recurrent.Recurrence,
    reductions.ArgReduce,
    reductions.Cumulative,
    reductions.Reduce,
    repetition.Repeat,
    selection.SuppressOverlaps,
    sorting.Positions,
    sorting.Sort,
    transposed.TransposedConvolution,
    windows.WindowArgMax,
    windows.WindowReduce,
    winograd.Winograd,
)

TENSOR_OPERATORS: Mapping[str, type[TensorOperator]] = {each.__name__: each for each in _ALL}
