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
from .contractions import write_contract, write_convolution, write_transposed_convolution
from .elementwise import write_binary, write_cast, write_multiply_add, write_unary, write_where
from .movement import (
    write_concatenate,
    write_expand,
    write_gather,
    write_gather_elements,
    write_gather_nd,
    write_iota,
    write_pad,
    write_reshape,
    write_scatter_elements,
    write_scatter_nd,
    write_slice,
    write_tile,
    write_transpose,
)
from .quantization import write_dequantize, write_quantize
from .reductions import (
    write_arg_reduce,
    write_cumulative,
    write_determinant,
    write_reduce,
    write_softmax,
    write_sort,
    write_windows,
)
from .writing import Writing

__all__ = ["WRITERS", "Writer"]

Writer = Callable[[Writing, Any], str | tuple[str, ...]]
"""Adds ONNX's nodes for one node of the graph; gives the names of its results."""

WRITERS: Mapping[type, Writer] = {
    ArgReduce: write_arg_reduce,
    Binary: write_binary,
    Cast: write_cast,
    Concatenate: write_concatenate,
    Contract: write_contract,
    Convolution: write_convolution,
    Cumulative: write_cumulative,
    DequantizeLinear: write_dequantize,
    Determinant: write_determinant,
    Expand: write_expand,
    Gather: write_gather,
    GatherElements: write_gather_elements,
    GatherNd: write_gather_nd,
    Iota: write_iota,
    MultiplyAdd: write_multiply_add,
    PadTensor: write_pad,
    QuantizeLinear: write_quantize,
    Reduce: write_reduce,
    Reshape: write_reshape,
    ScatterElements: write_scatter_elements,
    ScatterNd: write_scatter_nd,
    Slice: write_slice,
    SoftmaxRows: write_softmax,
    Sort: write_sort,
    Tile: write_tile,
    TransposedConvolution: write_transposed_convolution,
    Transpose: write_transpose,
    Unary: write_unary,
    Where: write_where,
    WindowReduce: write_windows,
}
