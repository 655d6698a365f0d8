"""Every operator, by name."""

from collections.abc import Mapping

from . import (
    assembly,
    attention,
    contractions,
    elementwise,
    indexing,
    movement,
    quantization,
    recurrent,
    reductions,
    repetition,
    rows,
    selection,
    sorting,
    transposed,
    windows,
    winograd,
)
from .integer import conversions, fixed_point, norm, products, scaled_sum, softmax, values
from .integer import windows as integer_windows
from .protocol import TensorOperator

__all__ = ["INTEGER", "OPERATORS"]

INTEGER: tuple[type[TensorOperator], ...] = (
    products.Conv2d,
    products.ConvTranspose2d,
    products.Dense,
    products.RowProducts,
    fixed_point.AddFixed,
    fixed_point.AverageFixed,
    fixed_point.MultiplyFixed,
    fixed_point.RequantizeFixed,
    fixed_point.RequantizeReal,
    integer_windows.AveragePool2d,
    integer_windows.MaxPool2d,
    integer_windows.Pad,
    integer_windows.Upsample2d,
    values.Add,
    values.Lookup,
    values.Multiply,
    values.Requantize,
    norm.RowNorm,
    softmax.RowSoftmax,
    scaled_sum.ScaledSum,
    scaled_sum.ScalesOfWords,
    values.Softmax,
    values.WeightedAdd,
    conversions.Dequantize,
    conversions.Quantize,
    conversions.Shift128,
)
"""Operators of integer layers."""

_ALL: tuple[type[TensorOperator], ...] = (
    *INTEGER,
    assembly.Append,
    assembly.Assemble,
    attention.Attention,
    contractions.Contract,
    contractions.Convolution,
    contractions.Determinant,
    contractions.PixelConvolution,
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
    rows.SoftmaxRows,
    selection.SuppressOverlaps,
    sorting.Positions,
    sorting.Sort,
    transposed.TransposedConvolution,
    windows.WindowArgMax,
    windows.WindowReduce,
    winograd.Winograd,
)

OPERATORS: Mapping[str, type[TensorOperator]] = {each.__name__: each for each in _ALL}
