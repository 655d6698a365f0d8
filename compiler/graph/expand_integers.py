"""Integer operators (NHWC, one meaning each) as general ones, byte for byte.

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
from typing import Any, assert_never

import numpy as np

from ..dtypes import DType
from .bounds import accumulator_bound
from .ir import Array, Graph, GraphBuilder, Node
from .operators.assembly import Assemble
from .operators.contractions import Convolution, contract
from .operators.elementwise import (
    Binary,
    BinaryFunction,
    Bitcast,
    Cast,
    MultiplyAdd,
    Unary,
    UnaryFunction,
)
from .operators.indexing import Gather
from .operators.movement import Concatenate, Expand, PadTensor, Reshape, Slice, Transpose
from .operators.protocol import TensorOperator
from .operators.reductions import Cumulative, Reduce, ReduceFunction
from .operators.windows import WindowFunction, WindowReduce
from .ops import (
    Add,
    AveragePool2d,
    Conv2d,
    Dense,
    Dequantize,
    Lookup,
    MaxPool2d,
    Pad,
    Quantize,
    Requantize,
    Shift128,
    Softmax,
    Upsample2d,
)

__all__ = ["ExpandIntegers"]

EXACT_IN_FLOAT32 = 1 << 24
FEWEST_CHANNELS = 8
"""For dot products of bytes, which fill up to 16 channels."""
DOT_LANES = 16
"""Results of a dot product of bytes."""
NEIGHBOURS = 4
"""Products that a dot product of bytes sums."""
PIXEL_CHANNELS = 4
"""An image's, at most, that dot products of bytes sum for a pixel at a time."""
RAISE = 128
TO_NCHW, TO_NHWC = (0, 3, 1, 2), (0, 2, 3, 1)
F32 = np.float32
Number = float | np.floating[Any]


@dataclass(frozen=True, slots=True)
class ExpandIntegers:
    """See the module's docstring."""

    name: str = "expand_integers"

    def run(self, graph: Graph) -> Graph:
        """The graph of general operators, with the same inputs and outputs."""
        expanding = _Expanding(graph)
        for node in graph.nodes:
            expanding.visit(node)
        return expanding.build()


@dataclass(slots=True)
class _Expanding:
    graph: Graph
    builder: GraphBuilder = field(default_factory=GraphBuilder)
    plain: dict[str, str] = field(default_factory=dict)
    """Tensors of ``graph`` in the new one, those of int8 raised."""
    images: dict[str, str] = field(default_factory=dict)
    """The same in NCHW."""
    summands: frozenset[str] = frozenset()
    """Tensors of ``graph`` that are kept in float32: each is read by a sum alone."""
    origin: str = ""

    def __post_init__(self) -> None:
        for name in self.graph.inputs:
            self.builder.input(name, self.graph.types[name])
        self.summands = _last_summands(self.graph)

    def build(self) -> Graph:
        """The new graph, its outputs called as before."""
        for name in self.graph.outputs:
            self.origin = name
            result = self.tensor(name)
            if self.graph.types[name].dtype == DType.INT8:
                lowered = self.emit(Bitcast(DType.INT8), result)
                result = self.binary(BinaryFunction.XOR, lowered, -128)
            self.builder.export(result, name)
        return self.builder.build(self.graph.outputs)

    def emit(self, operator: TensorOperator, *inputs: str) -> str:
        """Add a node."""
        return self.builder.node(operator, inputs, self.origin, self.origin)

    def constant(self, value: Array) -> str:
        """Add a constant."""
        return self.builder.constant(f"{self.origin}.constant", value)

    def tensor(self, name: str) -> str:
        """A tensor of the old graph in its own order."""
        if name not in self.plain:
            is_int8 = self.graph.types[name].dtype == DType.INT8
            if name in self.graph.constants:
                array = self.graph.constants[name]
                if is_int8:
                    array = (array ^ np.int8(-128)).view(np.uint8)
                self.plain[name] = self.builder.constant(name, array)
            elif name in self.graph.inputs:
                self.plain[name] = self.raised(name) if is_int8 else name
            else:
                self.plain[name] = self.emit(Transpose(TO_NHWC), self.images[name])
        return self.plain[name]

    def image(self, name: str) -> str:
        """A tensor of four dimensions in NCHW."""
        if name not in self.images:
            self.images[name] = self.emit(Transpose(TO_NCHW), self.tensor(name))
        return self.images[name]

    def any_order(self, name: str) -> tuple[str, bool]:
        """A tensor in the order that it is there in, and whether that is NCHW."""
        if name in self.images:
            return self.images[name], True
        return self.tensor(name), False

    def visit(self, node: Node) -> None:
        """Expand one node."""
        self.origin, operator = node.origin, node.operator
        match operator:
            case Conv2d():
                self.images[node.output] = self.conv2d(node, operator)
            case MaxPool2d() | AveragePool2d() | Pad() | Upsample2d():
                self.images[node.output] = self.window(node, operator)
            case Requantize() | Add() | Lookup() | Shift128() | Quantize() | Dequantize():
                self.elementwise(node, operator)
            case Dense():
                self.plain[node.output] = self.dense(node, operator)
            case Softmax():
                self.plain[node.output] = self.softmax(self.tensor(node.inputs[0]), operator)
            case Assemble():
                self.images[node.output] = self.assemble(node, operator)
            case Transpose() if node.inputs[0] in self.images:
                self.transpose(node, operator)
            case Concatenate() | Slice() if any(name in self.images for name in node.inputs):
                inputs = (self.image(name) for name in node.inputs)
                self.images[node.output] = self.emit(_in_nchw(operator), *inputs)
            case Concatenate() | Slice():
                inputs = (self.tensor(name) for name in node.inputs)
                self.plain[node.output] = self.emit(operator, *inputs)
            case Reshape() | Transpose():
                x = self.tensor(node.inputs[0])
                self.plain[node.output] = self.emit(operator, x)
            case _:
                raise TypeError(
                    f"node {node.origin!r}: {type(operator).__name__} is no integer one"
                )

    def elementwise(
        self, node: Node, operator: Requantize | Add | Lookup | Shift128 | Quantize | Dequantize
    ) -> None:
        """An operator that takes its operands in either order."""
        x, is_image = self.any_order(node.inputs[0])
        match operator:
            case Requantize():
                result = self.requantize(x, node, is_image, operator)
            case Add():
                y = self.image(node.inputs[1]) if is_image else self.tensor(node.inputs[1])
                result = self.add(x, y, operator)
            case Lookup():
                place = self.cast(x, DType.INT64)
                result = self.emit(Gather(0), self.tensor(node.inputs[1]), place)
            case Shift128():
                result = x
            case Quantize(scale=scale, zero_point=zero_point):
                quotient = self.binary(BinaryFunction.DIV, x, F32(scale))
                result = self.saturated(quotient, zero_point, -128, 127)
            case Dequantize(scale=scale, zero_point=zero_point):
                wide = self.cast(self.centred(x, zero_point, DType.INT32), DType.FLOAT32)
                result = self.binary(BinaryFunction.MUL, wide, F32(scale))
            case _:
                assert_never(operator)
        (self.images if is_image else self.plain)[node.output] = result

    def binary(self, function: BinaryFunction, x: str, other: Number | str) -> str:
        """An element-wise operator; a number takes the dtype of ``x``."""
        if not isinstance(other, str):
            kind = self.builder.types[x].dtype
            other = self.constant(np.asarray(other).astype(kind.numpy))
        return self.emit(Binary(function), x, other)

    def cast(self, x: str, dtype: DType) -> str:
        """A conversion."""
        return self.emit(Cast(dtype), x)

    def centred(self, x: str, zero_point: int, dtype: DType) -> str:
        """What raised bytes stand for, less ``zero_point``, in ``dtype``."""
        return self.moved(self.cast(x, dtype), -(zero_point + RAISE))

    def moved(self, x: str, offset: int) -> str:
        """``x + offset``."""
        return self.binary(BinaryFunction.ADD, x, offset) if offset else x

    def rounded(self, x: str, zero_point: int, low: int, high: int) -> str:
        """``clip(rint(x), low - zero_point, high - zero_point)``; limits first: they are whole."""
        x = self.binary(BinaryFunction.MAX, x, low - zero_point)
        x = self.binary(BinaryFunction.MIN, x, high - zero_point)
        return self.emit(Unary(UnaryFunction.RINT), x)

    def saturated(self, x: str, zero_point: int, low: int, high: int) -> str:
        """``clip(rint(x) + zero_point, low, high)``, raised."""
        whole = self.cast(self.rounded(x, zero_point, low, high), DType.INT32)
        return self.cast(self.moved(whole, zero_point + RAISE), DType.UINT8)

    def conv2d(self, node: Node, operator: Conv2d) -> str:
        """In NCHW, OIHW; padding is 0 once the zero point is subtracted."""
        weights, bias = (self.graph.constants[name] for name in node.inputs[1:])
        outputs, inputs = weights.shape[0], weights.shape[3]
        fill = inputs <= PIXEL_CHANNELS or inputs >= FEWEST_CHANNELS
        dense = operator.groups == 1 and fill
        depthwise = inputs == 1 and operator.groups == outputs and operator.dilations[1] == 1
        if (dense or depthwise) and outputs >= FEWEST_CHANNELS and not operator.weight_zero_point:
            return self.bytes_conv2d(node, operator, weights, bias)
        weights = weights.astype(np.int32) - operator.weight_zero_point
        dtype = self.exact(weights, bias, operator.zero_point)
        top, left, bottom, right = operator.pads
        convolution = Convolution(
            operator.strides,
            operator.dilations,
            ((top, bottom), (left, right)),
            (1, 1),
            operator.groups,
            dtype,
        )
        x = self.centred(self.image(node.inputs[0]), operator.zero_point, dtype)
        w = self.constant(weights.transpose(0, 3, 1, 2).astype(dtype.numpy))
        b = self.constant(bias.reshape(-1, 1, 1).astype(dtype.numpy))
        return self.binary(BinaryFunction.ADD, self.emit(convolution, x, w), b)

    def bytes_conv2d(self, node: Node, operator: Conv2d, weights: Array, bias: Array) -> str:
        """Products of unsigned bytes u = x + 128 and signed ones, less those of the offset.

        Kernels of single channels get columns of zeros: as many neighbours as are summed at a time.
        """
        zero_point, groups = operator.zero_point + RAISE, operator.groups
        top, left, bottom, right = operator.pads
        more = -weights.shape[2] % NEIGHBOURS if groups > 1 else 0
        weights, right = np.pad(weights, ((0, 0), (0, 0), (0, more), (0, 0))), right + more
        x = self.image(node.inputs[0])
        if any((top, left, bottom, right)):
            fill = self.constant(np.asarray(zero_point, np.uint8))
            x = self.emit(PadTensor((0, 0, top, left), (0, 0, bottom, right)), x, fill)
        convolution = Convolution(
            operator.strides, operator.dilations, ((0, 0), (0, 0)), (1, 1), groups, DType.INT32
        )
        w = self.constant(weights.transpose(0, 3, 1, 2))
        offset = bias - zero_point * weights.astype(np.int64).sum(axis=(1, 2, 3))
        b = self.constant(offset.astype(np.int32).reshape(-1, 1, 1))
        return self.binary(BinaryFunction.ADD, self.emit(convolution, x, w), b)

    def raised(self, x: str) -> str:
        """int8 plus 128, as uint8."""
        return self.emit(Bitcast(DType.UINT8), self.binary(BinaryFunction.XOR, x, -128))

    def dense(self, node: Node, operator: Dense) -> str:
        """A product with the transposed weights."""
        weights, bias = (self.graph.constants[name] for name in node.inputs[1:])
        outputs, inputs = weights.shape
        if operator.weight_zero_point == 0 and inputs % 4 == 0 and outputs >= FEWEST_CHANNELS:
            zero_point = operator.zero_point + RAISE
            x = self.tensor(node.inputs[0])
            offset = bias - zero_point * weights.astype(np.int64).sum(axis=1)
            more = -outputs % DOT_LANES
            total = self.product(x, np.pad(weights, ((0, more), (0, 0))), DType.INT32)
            offset = np.pad(offset.astype(np.int32), (0, more))
            total = self.binary(BinaryFunction.ADD, total, self.constant(offset))
            return self.leading(total, outputs) if more else total
        weights = weights.astype(np.int32) - operator.weight_zero_point
        dtype = self.exact(weights, bias, operator.zero_point)
        x = self.centred(self.tensor(node.inputs[0]), operator.zero_point, dtype)
        total = self.product(x, weights.astype(dtype.numpy), dtype)
        b = self.constant(bias.astype(dtype.numpy))
        return self.binary(BinaryFunction.ADD, total, b)

    def leading(self, x: str, count: int) -> str:
        """The first ``count`` of the last dimension."""
        shape = (*self.builder.types[x].shape[:-1], count)
        return self.emit(Slice((0,) * len(shape), (1,) * len(shape), shape), x)

    def product(self, x: str, weights: Array, dtype: DType) -> str:
        """``x @ weights.T``, summed in ``dtype``."""
        w = self.constant(np.ascontiguousarray(weights.T))
        rank = len(self.builder.types[x].shape)
        leading = tuple(range(rank - 1))
        kinds = (self.builder.types[x], self.builder.types[w])
        labels = ((*leading, rank), (rank, rank + 1))
        product = contract(kinds, labels, (*leading, rank + 1), dtype)
        return self.emit(product, x, w)

    def exact(self, weights: Array, bias: Array, zero_point: int) -> DType:
        """The dtype that sums of products are exact in."""
        bound = accumulator_bound(weights, bias, zero_point)
        return DType.FLOAT32 if bound < EXACT_IN_FLOAT32 else DType.INT32

    def requantize(self, x: str, node: Node, is_image: bool, operator: Requantize) -> str:
        """Scales belong to the channels.  What is only added to is not made bytes before."""
        factors = self.graph.constants[node.inputs[1]]
        aligned = self.constant(factors.reshape(-1, 1, 1) if is_image else factors)
        if self.builder.types[x].dtype != DType.FLOAT32:
            x = self.cast(x, DType.FLOAT32)
        product = self.binary(BinaryFunction.MUL, x, aligned)
        limits = operator.zero_point, operator.low, operator.high
        if node.output in self.summands:
            return self.moved(self.rounded(product, *limits), operator.zero_point + RAISE)
        return self.saturated(product, *limits)

    def add(self, a: str, b: str, operator: Add) -> str:
        """Two multiplications that add, each rounded once."""
        ra, rb = F32(operator.a_ratio), F32(operator.b_ratio)
        shift = 128 if operator.unsigned else 0
        product = np.float64(F32(np.float64(rb) * (operator.b_zero_point + shift)))
        start = F32(np.float64(ra) * (operator.a_zero_point + shift) + product)
        offset = self.constant(np.asarray(F32(operator.zero_point + shift) - start))
        inner = self.emit(
            MultiplyAdd(), self.shifted(b, shift), self.constant(np.asarray(rb)), offset
        )
        total = self.emit(
            MultiplyAdd(), self.shifted(a, shift), self.constant(np.asarray(ra)), inner
        )
        return self.saturated(total, -shift, operator.low, operator.high)

    def shifted(self, x: str, shift: int) -> str:
        """What raised bytes stand for, plus ``shift``, in float32, where it is exact."""
        if self.builder.types[x].dtype != DType.FLOAT32:
            x = self.cast(x, DType.FLOAT32)
        return self.moved(x, shift - RAISE)

    def window(self, node: Node, operator: MaxPool2d | AveragePool2d | Pad | Upsample2d) -> str:
        """Pools, borders and repeated pixels of images."""
        x = self.image(node.inputs[0])
        match operator:
            case Pad(pads=(top, left, bottom, right), value=value):
                fill = self.constant(np.asarray(value + RAISE, np.uint8))
                return self.emit(PadTensor((0, 0, top, left), (0, 0, bottom, right)), x, fill)
            case Upsample2d(factors=(down, across)):
                _, channels, height, width = self.builder.types[x].shape
                apart = self.emit(Reshape((1, channels, height, 1, width, 1)), x)
                wide = self.emit(Expand((1, channels, height, down, width, across)), apart)
                return self.emit(Reshape((1, channels, height * down, width * across)), wide)
            case MaxPool2d(kernel=kernel, strides=strides, pads=(top, left, bottom, right)):
                pads = ((top, bottom), (left, right))
                return self.emit(
                    WindowReduce((2, 3), kernel, strides, (1, 1), pads, WindowFunction.MAX), x
                )
            case AveragePool2d(kernel=kernel, strides=strides):
                x = self.windows(x, operator, self.graph.types[node.output].shape[1:3])
                wide = self.centred(x, operator.x_zero_point, DType.INT32)
                pool = WindowReduce(
                    (2, 3), kernel, strides, (1, 1), ((0, 0), (0, 0)), WindowFunction.ADD
                )
                total = self.cast(self.emit(pool, wide), DType.FLOAT32)
                scaled = self.binary(BinaryFunction.MUL, total, F32(operator.scale))
                return self.saturated(scaled, operator.zero_point, -128, 127)
            case _:
                assert_never(operator)

    def windows(self, x: str, operator: AveragePool2d, count: tuple[int, ...]) -> str:
        """The part of an image that a pool's windows lie in, ``count`` down and across."""
        if operator.size is None and not any(operator.start):
            return x
        size = (
            (each - 1) * stride + taps
            for each, stride, taps in zip(count, operator.strides, operator.kernel, strict=True)
        )
        shape = (1, self.builder.types[x].shape[1], *size)
        return self.emit(Slice((0, 0, *operator.start), (1, 1, 1, 1), shape), x)

    def assemble(self, node: Node, operator: Assemble) -> str:
        """The operands' pixels one after the other, then each by its place there."""
        shapes = [self.graph.types[name].shape[1:3] for name in node.inputs]
        channels = self.graph.types[node.output].shape[3]
        rows = [
            self.emit(Reshape((1, channels, height * width)), self.image(name))
            for name, (height, width) in zip(node.inputs, shapes, strict=True)
        ]
        pixels = self.emit(Concatenate(2), *rows)
        found = self.emit(Gather(2), pixels, self.constant(operator.order(shapes)))
        return self.emit(Reshape((1, channels, *operator.size)), found)

    def softmax(self, x: str, operator: Softmax) -> str:
        """A table of exponentials; their sum from left to right."""
        kind = self.builder.types[x]
        size = kind.shape[-1]
        step = float(F32(operator.x_scale))
        room = np.log(float(F32(np.finfo(F32).max) / F32(size))) - 5
        shift = max(0.0, room) / step
        with np.errstate(under="ignore"):
            table = np.exp((np.arange(256) - 255 + shift) * step).astype(F32)
        rows = self.emit(Reshape((kind.elements // size, size)), x)
        wide = self.cast(rows, DType.INT64)
        top = self.emit(Reduce(ReduceFunction.MAX, (1,), True), wide)
        place = self.binary(BinaryFunction.SUB, wide, top)
        values = self.emit(
            Gather(0), self.constant(table), self.binary(BinaryFunction.ADD, place, 255)
        )
        totals = self.emit(Cumulative(ReduceFunction.SUM, 1), values)
        total = self.emit(Slice((0, size - 1), (1, 1), (kind.elements // size, 1)), totals)
        steps = np.floor(F32(1) / F32(operator.scale))
        scaled = self.binary(BinaryFunction.MUL, values, steps)
        quotient = self.binary(BinaryFunction.DIV, scaled, total)
        result = self.saturated(quotient, operator.zero_point, -128, 127)
        return self.emit(Reshape(kind.shape), result)

    def transpose(self, node: Node, operator: Transpose) -> None:
        """Of an image that is there in NCHW: often nothing is left to do."""
        order = tuple(TO_NHWC[axis] for axis in operator.permutation)
        x = self.images[node.inputs[0]]
        if order == tuple(range(4)):
            self.plain[node.output] = self.emit(Reshape(self.builder.types[x].shape), x)
        else:
            self.plain[node.output] = self.emit(Transpose(order), x)


def _last_summands(graph: Graph) -> frozenset[str]:
    """Of the operands of each sum the one requantised last, where nothing else reads it.

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
