"""Integer operators (NHWC) as general ones that give the same bytes.

    Requantize(acc, scale)  ->  Cast(uint8, int32(rint(clip(float32(acc) * scale))) + zero_point)

Tensors of int8 are kept as uint8, *raised*: 128 more.  Dense layers and convolutions become
products of unsigned and signed bytes, summed in int32, as CPUs have them.  Other sums of products
are computed in float32 where no partial sum can reach 2**24, so that all are exact in any order,
and in int32 otherwise.  Images become NCHW: a tensor is kept in the order it is computed in, and
converted when an operator wants the other one.  Every node becomes nodes of other kinds, so the
pass ends.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import assert_never

import numpy as np

from dovetail.isa.frozen import frozen

from ....dtypes import DType
from ...ir import Array, Graph, Node
from ...operators.assembly import Append, Assemble
from ...operators.elementwise import Binary, BinaryFunction
from ...operators.indexing import Gather
from ...operators.integer.conversions import Dequantize, Quantize, Shift128
from ...operators.integer.fixed_point import (
    AddFixed,
    AverageFixed,
    MultiplyFixed,
    RequantizeFixed,
    RequantizeReal,
)
from ...operators.integer.norm import RowNorm
from ...operators.integer.products import Conv2d, Dense, RowProducts
from ...operators.integer.residual import RequantizeAdd
from ...operators.integer.scaled_sum import ScaledSum, ScalesOfWords
from ...operators.integer.softmax import RowSoftmax
from ...operators.integer.tensor_norm import TensorNorm
from ...operators.integer.values import Add, Lookup, Multiply, Requantize, Softmax, WeightedAdd
from ...operators.integer.windows import AveragePool2d, MaxPool2d, Pad, Upsample2d
from ...operators.movement import Concatenate, Reshape, Slice, Transpose
from ...operators.table import INTEGER
from .fixed_point import average, pair, requantize, requantize_real, weighted
from .norm import row_norm, tensor_norm
from .products import conv2d, dense, largest_sum, row_products
from .raised_bytes import F32, RAISE, RaisedBytes
from .ratios import add, multiply
from .residual import requantize_add
from .scaled_sum import scaled_sum, scales_of_words
from .softmax import row_softmax, softmax
from .windows import window

__all__ = ["ExpandIntegers", "is_integer"]

TO_NCHW, TO_NHWC = (0, 3, 1, 2), (0, 2, 3, 1)
MOVES = (Append, Assemble, Concatenate, Slice, Reshape, Transpose)


def is_integer(graph: Graph) -> bool:
    """True if all nodes are integer operators, or move elements."""
    return all(isinstance(node.operator, (*INTEGER, *MOVES)) for node in graph.nodes)


@frozen
class ExpandIntegers:
    """See the module's docstring."""

    name: str = "expand_integers"

    def run(self, graph: Graph) -> Graph:
        """The graph of general operators, with the same inputs and outputs; itself if it is one."""
        if not any(isinstance(node.operator, INTEGER) for node in graph.nodes):
            return graph
        expanding = _Expanding(graph)
        for node in graph.nodes:
            expanding.visit(node)
        return expanding.build()


@dataclass(slots=True)
class _Expanding:
    graph: Graph
    new: RaisedBytes = field(default_factory=RaisedBytes)
    plain: dict[str, str] = field(default_factory=dict)
    """Tensors of ``graph`` in the new one, those of int8 raised."""
    images: dict[str, str] = field(default_factory=dict)
    """The same in NCHW."""
    summands: frozenset[str] = frozenset()
    """Tensors of ``graph`` that are kept in float32: each is read by a sum alone."""

    def __post_init__(self) -> None:
        for name in self.graph.inputs:
            self.new.builder.input(name, self.graph.types[name])
        self.summands = _last_summands(self.graph)

    def build(self) -> Graph:
        """The new graph, its outputs called as before."""
        results = []
        for name in self.graph.outputs:
            self.new.origin = name
            results.append(self.lowered(name))
        self.new.builder.export(results, self.graph.outputs)
        return self.new.builder.build(self.graph.outputs)

    def tensor(self, name: str) -> str:
        """A tensor of the old graph in its own order."""
        if name not in self.plain:
            is_int8 = self.graph.types[name].dtype == DType.INT8
            if name in self.graph.constants:
                array = self.graph.constants[name]
                if is_int8:
                    array = (array ^ np.int8(-128)).view(np.uint8)
                self.plain[name] = self.new.builder.constant(name, array)
            elif name in self.graph.inputs:
                self.plain[name] = self.new.raised(name) if is_int8 else name
            else:
                self.plain[name] = self.new.emit(Transpose(TO_NHWC), self.images[name])
        return self.plain[name]

    def image(self, name: str) -> str:
        """A tensor of four dimensions in NCHW."""
        if name not in self.images:
            self.images[name] = self.new.emit(Transpose(TO_NCHW), self.tensor(name))
        return self.images[name]

    def any_order(self, name: str) -> tuple[str, bool]:
        """A tensor in the order that it is there in, and whether that is NCHW."""
        if name in self.images:
            return self.images[name], True
        return self.tensor(name), False

    def visit(self, node: Node) -> None:
        """Expand one node."""
        self.new.origin, operator = node.origin, node.operator
        match operator:
            case Conv2d():
                weights, bias = self.weights_of(node)
                x = self.image(node.inputs[0])
                self.images[node.output] = conv2d(self.new, x, operator, weights, bias)
            case MaxPool2d() | AveragePool2d() | Pad() | Upsample2d():
                x, count = self.image(node.inputs[0]), self.graph.types[node.output].shape[1:3]
                self.images[node.output] = window(self.new, x, operator, count)
            case AverageFixed():
                x = self.image(node.inputs[0])
                self.images[node.output] = average(self.new, x, operator)
            case (
                Requantize()
                | RequantizeFixed()
                | RequantizeReal()
                | RequantizeAdd()
                | AddFixed()
                | MultiplyFixed()
                | Add()
                | WeightedAdd()
                | Multiply()
                | Lookup()
                | Shift128()
                | Quantize()
                | Dequantize()
            ):
                self.elementwise(node, operator)
            case Dense():
                weights, bias = self.weights_of(node)
                x = self.tensor(node.inputs[0])
                self.plain[node.output] = dense(self.new, x, operator, weights, bias)
            case RowProducts():
                x, y = (self.tensor(name) for name in node.inputs)
                self.plain[node.output] = row_products(self.new, x, y, operator)
            case Softmax():
                self.plain[node.output] = softmax(self.new, self.tensor(node.inputs[0]), operator)
            case RowNorm():
                x, *parameters = node.inputs
                given = (self.graph.constants[name] for name in parameters)
                self.plain[node.output] = row_norm(self.new, self.tensor(x), operator, *given)
            case TensorNorm():
                x = self.tensor(node.inputs[0])
                self.plain[node.output] = tensor_norm(self.new, x, operator)
            case RowSoftmax():
                self.plain[node.output] = row_softmax(
                    self.new, self.tensor(node.inputs[0]), operator
                )
            case ScaledSum():
                x, factors = (self.tensor(name) for name in node.inputs)
                self.plain[node.output] = scaled_sum(self.new, x, factors, operator)
            case ScalesOfWords():
                x = self.tensor(node.inputs[0])
                self.plain[node.output] = scales_of_words(self.new, x, operator)
            case Assemble():
                self.images[node.output] = self.assemble(node, operator)
            case Append(axis=axis, start=start):
                x, y = (self.tensor(name) for name in node.inputs)
                shape = self.graph.types[node.inputs[0]].shape
                kept = (*shape[:axis], start, *shape[axis + 1 :])
                x = self.new.emit(Slice((0,) * len(shape), (1,) * len(shape), kept), x)
                self.plain[node.output] = self.new.emit(Concatenate(axis), x, y)
            case Transpose() if node.inputs[0] in self.images:
                self.transpose(node, operator)
            case Gather(axis=axis) if node.inputs[0] in self.images and self.is_placed(node):
                places = self.new.constant(self.graph.constants[node.inputs[1]])
                own = Gather(TO_NHWC[axis])
                self.images[node.output] = self.new.emit(own, self.image(node.inputs[0]), places)
            case Gather() if self.is_placed(node):
                places = self.new.constant(self.graph.constants[node.inputs[1]])
                x = self.tensor(node.inputs[0])
                self.plain[node.output] = self.new.emit(node.operator, x, places)
            case Concatenate() | Slice() if any(name in self.images for name in node.inputs):
                inputs = (self.image(name) for name in node.inputs)
                self.images[node.output] = self.new.emit(_in_nchw(operator), *inputs)
            case Concatenate() | Slice():
                inputs = (self.tensor(name) for name in node.inputs)
                self.plain[node.output] = self.new.emit(operator, *inputs)
            case Reshape() | Transpose():
                x = self.tensor(node.inputs[0])
                self.plain[node.output] = self.new.emit(operator, x)
            case _:
                self.general(node)

    def is_placed(self, node: Node) -> bool:
        """True if a ``Gather`` takes bytes from known places."""
        x, places = node.inputs
        return self.graph.types[x].dtype == DType.INT8 and places in self.graph.constants

    def general(self, node: Node) -> None:
        """A node that is general already takes and gives tensors as they are."""
        inputs = tuple(self.lowered(name) for name in node.inputs)
        builder = self.new.builder
        results = builder.node_outputs(node.operator, inputs, node.output, node.origin)
        for name, result in zip(node.outputs, results, strict=True):
            is_int8 = builder.types[result].dtype == DType.INT8
            self.plain[name] = self.new.raised(result) if is_int8 else result

    def lowered(self, name: str) -> str:
        """A tensor of the old graph in its own order and element type."""
        if name in self.graph.inputs:
            return name
        if name in self.graph.constants:
            return self.new.builder.constant(name, self.graph.constants[name])
        found = self.tensor(name)
        is_int8 = self.graph.types[name].dtype == DType.INT8
        return self.new.lowered(found) if is_int8 else found

    def weights_of(self, node: Node) -> tuple[Array, Array]:
        """Weights and bias, which are constants."""
        weights, bias = (self.graph.constants[name] for name in node.inputs[1:])
        return weights, bias

    def elementwise(
        self,
        node: Node,
        operator: Requantize
        | RequantizeFixed
        | RequantizeReal
        | RequantizeAdd
        | AddFixed
        | MultiplyFixed
        | Add
        | Multiply
        | WeightedAdd
        | Lookup
        | Shift128
        | Quantize
        | Dequantize,
    ) -> None:
        """An operator that takes its operands in either order."""
        x, is_image = self.any_order(node.inputs[0])
        match operator:
            case Requantize():
                result = self.requantize(x, node, is_image, operator)
            case Add():
                result = add(self.new, x, self.beside(node, is_image), operator)
            case Multiply():
                result = multiply(self.new, x, self.beside(node, is_image), operator)
            case RequantizeFixed():
                factors = (self.aligned(name, is_image) for name in node.inputs[1:])
                result = requantize(self.new, x, operator, *factors)
            case RequantizeReal():
                scale = self.aligned(node.inputs[1], is_image)
                result = requantize_real(self.new, x, operator, scale)
            case RequantizeAdd():
                scale, other = (
                    self.aligned(node.inputs[1], is_image),
                    self.beside(node, is_image, 2),
                )
                result = requantize_add(self.new, x, scale, other, operator)
            case AddFixed() | MultiplyFixed():
                result = pair(self.new, x, self.beside(node, is_image), operator)
            case WeightedAdd():
                result = weighted(self.new, x, self.beside(node, is_image), operator)
            case Lookup():
                result = self.lookup(x, node.inputs[1], is_image)
            case Shift128():
                result = x
            case Quantize(scale=scale, zero_point=zero_point):
                quotient = self.new.binary(BinaryFunction.DIV, x, F32(scale))
                result = self.new.saturated(quotient, zero_point, -128, 127)
            case Dequantize(scale=scale, zero_point=zero_point):
                wide = self.new.cast(self.new.centred(x, zero_point, DType.INT32), DType.FLOAT32)
                result = self.new.binary(BinaryFunction.MUL, wide, F32(scale))
            case _:
                assert_never(operator)
        (self.images if is_image else self.plain)[node.output] = result

    def beside(self, node: Node, is_image: bool, number: int = 1) -> str:
        """The second operand, or that of ``number``, in the order of the first."""
        name = node.inputs[number]
        return self.image(name) if is_image else self.tensor(name)

    def lookup(self, x: str, table: str, is_image: bool) -> str:
        """Rows of the table, where channels have their own, follow each other."""
        place, values = self.new.cast(x, DType.INT64), self.tensor(table)
        if len(shape := self.graph.types[table].shape) == 2:
            values = self.new.emit(Reshape((shape[0] * 256,)), values)
            rows = np.arange(shape[0]) * 256
            first = self.new.constant(rows.reshape(-1, 1, 1) if is_image else rows)
            place = self.new.emit(Binary(BinaryFunction.ADD), place, first)
        return self.new.emit(Gather(0), values, place)

    def aligned(self, name: str, is_image: bool) -> Array:
        """A constant with an element for each channel."""
        array = self.graph.constants[name]
        return array.reshape(-1, 1, 1) if is_image else array

    def requantize(self, x: str, node: Node, is_image: bool, operator: Requantize) -> str:
        """Requantise with a scale for each channel.  A tensor that is only added to something stays
        in float32.
        """
        factors = self.aligned(node.inputs[1], is_image)
        aligned = self.new.constant(factors)
        if self.new.builder.types[x].dtype != DType.FLOAT32:
            x = self.new.cast(x, DType.FLOAT32)
        product = self.new.binary(BinaryFunction.MUL, x, aligned)
        limits = operator.zero_point, operator.low, operator.high
        if node.output in self.summands:
            return self.new.moved(self.new.rounded(product, *limits), operator.zero_point + RAISE)
        bound = largest_sum(self.graph, node.inputs[0]) * float(np.abs(factors).max())
        return self.new.saturated(product, *limits, bound)

    def assemble(self, node: Node, operator: Assemble) -> str:
        """The operands' pixels one after the other, then each by its place there."""
        shapes = [self.graph.types[name].shape[1:3] for name in node.inputs]
        channels = self.graph.types[node.output].shape[3]
        rows = [
            self.new.emit(Reshape((1, channels, height * width)), self.image(name))
            for name, (height, width) in zip(node.inputs, shapes, strict=True)
        ]
        pixels = self.new.emit(Concatenate(2), *rows)
        found = self.new.emit(Gather(2), pixels, self.new.constant(operator.order(shapes)))
        return self.new.emit(Reshape((1, channels, *operator.size)), found)

    def transpose(self, node: Node, operator: Transpose) -> None:
        """A transpose of an image that is there in NCHW: often nothing is left to do."""
        order = tuple(TO_NHWC[axis] for axis in operator.permutation)
        x = self.images[node.inputs[0]]
        if order == tuple(range(4)):
            self.plain[node.output] = self.new.emit(Reshape(self.new.builder.types[x].shape), x)
        else:
            self.plain[node.output] = self.new.emit(Transpose(order), x)


def _last_summands(graph: Graph) -> frozenset[str]:
    """The operand of each sum that is requantised last, where nothing else reads it.

    The sum then follows at once, in the same loops.
    """
    readers = Counter(name for node in graph.nodes for name in node.inputs)
    readers.update(graph.outputs)
    places = {
        node.output: place
        for place, node in enumerate(graph.nodes)
        if isinstance(node.operator, Requantize)
    }
    found = set()
    for node in graph.nodes:
        if isinstance(node.operator, Add):
            last = max(node.inputs, key=lambda name: places.get(name, -1))
            if last in places and readers[last] == 1:
                found.add(last)
    return frozenset(found)


def _in_nchw(operator: Concatenate | Slice) -> Concatenate | Slice:
    """An operator on NHWC tensors as one on NCHW tensors."""
    if isinstance(operator, Concatenate):
        return Concatenate(TO_NCHW.index(operator.axis))
    starts, steps, shape = (
        tuple(values[axis] for axis in TO_NCHW)
        for values in (operator.starts, operator.steps, operator.shape)
    )
    return Slice(starts, steps, shape)
