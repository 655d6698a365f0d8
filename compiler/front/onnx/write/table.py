"""Every operator of graphs that ONNX has, and what writes it."""

from collections.abc import Callable, Mapping
from typing import Any

from ....graph.operators.contractions import Contract, Convolution, Determinant
from ....graph.operators.elementwise import Binary, Cast, MultiplyAdd, Unary, Where
from ....graph.operators.indexing import (
    Gather,
    GatherElements,
    GatherNd,
    ScatterElements,
    ScatterNd,
)
from ....graph.operators.movement import (
    Concatenate,
    Expand,
    Iota,
    PadTensor,
    Reshape,
    Slice,
    Tile,
    Transpose,
)
from ....graph.operators.quantization import DequantizeLinear, QuantizeLinear
from ....graph.operators.reductions import ArgReduce, Cumulative, Reduce
from ....graph.operators.rows import SoftmaxRows
from ....graph.operators.sorting import Sort
from ....graph.operators.transposed import TransposedConvolution
from ....graph.operators.windows import WindowReduce
from . import contractions, elementwise, movement, quantization, reductions
from .writing import Writing

__all__ = ["WRITERS", "Writer"]

Writer = Callable[[Writing, Any], str | tuple[str, ...]]
"""Adds ONNX's nodes for one node of the graph; gives the names of its results."""

WRITERS: Mapping[type, Writer] = {
    ArgReduce: reductions.write_arg_reduce,
    Binary: elementwise.write_binary,
    Cast: elementwise.write_cast,
    Concatenate: movement.write_concatenate,
    Contract: contractions.write_contract,
    Convolution: contractions.write_convolution,
    Cumulative: reductions.write_cumulative,
    DequantizeLinear: quantization.write_dequantize,
    Determinant: reductions.write_determinant,
    Expand: movement.write_expand,
    Gather: movement.write_gather,
    GatherElements: movement.write_gather_elements,
    GatherNd: movement.write_gather_nd,
    Iota: movement.write_iota,
    MultiplyAdd: elementwise.write_multiply_add,
    PadTensor: movement.write_pad,
    QuantizeLinear: quantization.write_quantize,
    Reduce: reductions.write_reduce,
    Reshape: movement.write_reshape,
    ScatterElements: movement.write_scatter_elements,
    ScatterNd: movement.write_scatter_nd,
    Slice: movement.write_slice,
    SoftmaxRows: reductions.write_softmax,
    Sort: reductions.write_sort,
    Tile: movement.write_tile,
    TransposedConvolution: contractions.write_transposed_convolution,
    Transpose: movement.write_transpose,
    Unary: elementwise.write_unary,
    Where: elementwise.write_where,
    WindowReduce: reductions.write_windows,
}
