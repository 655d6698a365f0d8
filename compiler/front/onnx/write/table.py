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
    Transpose,
)
from ....graph.operators.quantization import DequantizeLinear, QuantizeLinear
from ....graph.operators.reductions import ArgReduce, Cumulative, Reduce
from ....graph.operators.repetition import Repeat
from ....graph.operators.rows import SoftmaxRows
from ....graph.operators.sorting import Sort
from ....graph.operators.transposed import TransposedConvolution
from ....graph.operators.windows import WindowReduce
from .contractions import write_contract, write_convolution, write_transposed_convolution
from .control import write_repeat
from .elementwise import write_binary, write_multiply_add, write_unary, write_where
from .movement import (
    write_gather,
    write_gather_elements,
    write_gather_nd,
    write_pad,
    write_scatter_elements,
    write_scatter_nd,
    write_slice,
)
from .quantization import write_quantization
from .reductions import (
    write_arg_reduce,
    write_cumulative,
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
    Cast: lambda w, operator: w.cast(w.node.inputs[0], operator.dtype),
    Concatenate: lambda w, operator: w.emit("Concat", *w.node.inputs, axis=operator.axis),
    Contract: write_contract,
    Convolution: write_convolution,
    Cumulative: write_cumulative,
    DequantizeLinear: write_quantization,
    Determinant: lambda w, operator: w.emit("Det", w.node.inputs[0]),
    Expand: lambda w, operator: w.emit("Expand", w.node.inputs[0], w.integers(operator.shape)),
    Gather: write_gather,
    GatherElements: write_gather_elements,
    GatherNd: write_gather_nd,
    Iota: lambda w, operator: w.constant(operator.evaluate(())[0]),
    MultiplyAdd: write_multiply_add,
    PadTensor: write_pad,
    QuantizeLinear: write_quantization,
    Reduce: write_reduce,
    Repeat: write_repeat,
    Reshape: lambda w, operator: w.reshaped(w.node.inputs[0], operator.shape),
    ScatterElements: write_scatter_elements,
    ScatterNd: write_scatter_nd,
    Slice: write_slice,
    SoftmaxRows: write_softmax,
    Sort: write_sort,
    TransposedConvolution: write_transposed_convolution,
    Transpose: lambda w, operator: w.transposed(w.node.inputs[0], operator.permutation),
    Unary: write_unary,
    Where: write_where,
    WindowReduce: write_windows,
}
