"""A graph for several images at once, in which weights serve all of them where that is free.

Each image is computed by itself up to some layers, and from these on all images are side by side:

    int8[1, H, W, C] of N images  ->  int8[1, H, N * W, C]

A layer may work on images side by side if none of its windows reaches from one into the next: dense
layers, 1x1 convolutions, global pools, and what works on single elements.  Its weights are loaded
once.  These are the last layers of most networks, and those with the most weights for their work.
"""

from dataclasses import dataclass, field

from dovetail.isa.frozen import replace

from ...errors import UnsupportedOperatorError
from ...graph.ir import Graph, GraphBuilder, Node
from ...graph.operators.assembly import Assemble
from ...graph.operators.integer.conversions import Dequantize, Quantize, Shift128
from ...graph.operators.integer.products import Conv2d
from ...graph.operators.integer.values import Lookup, Softmax
from ...graph.operators.integer.windows import AveragePool2d, MaxPool2d
from ...graph.operators.movement import Concatenate, Reshape, Transpose
from ...graph.operators.protocol import TensorOperator
from ...graph.partition import Refusal
from ...graph.replicate import batched_type, image_of
from ...graph.types import TensorType
from .capabilities import image_size
from .cut import Chain, Cut, cut_graph
from .operators import AnyAdd, AnyMultiply, AnyRequantize

__all__ = ["batch_graph"]

ELEMENTWISE = (Quantize, Dequantize, Shift128, Softmax)
"""The host's operators that are the same for any number of images."""

CHANNELS = 3
"""The dimension of channels."""


def batch_graph(graph: Graph, images: int) -> Graph:
    """A graph that ``prepare_graph`` made, for ``images`` images.

    The first dimension of inputs and outputs, which is 1, becomes ``images``.
    Raises UnsupportedOperatorError for a tensor of the host whose first dimension is another, and
    as ``fuse``.
    """
    found = cut_graph(graph)
    if isinstance(found, Refusal):
        raise UnsupportedOperatorError(found.reason)
    return graph if images == 1 else _Batch(graph, found, images).graph()


@dataclass(slots=True)
class _Batch:
    source: Graph
    cut: Cut
    images: int
    builder: GraphBuilder = field(init=False)
    copies: dict[tuple[str, int], str] = field(default_factory=dict)
    """Tensors of single images."""
    together: dict[str, str] = field(default_factory=dict)
    """Tensors of all images side by side."""

    def __post_init__(self) -> None:
        constants = dict(self.source.constants)
        kinds = {name: self.source.types[name] for name in constants}
        self.builder = GraphBuilder(constants=constants, types=kinds)

    def graph(self) -> Graph:
        source = self.source
        for name in source.inputs:
            self.builder.input(name, batched_type(name, source.types[name], self.images))
        wide = self.wide()
        for image in range(self.images):
            for node in self.cut.nodes:
                if node.output not in wide:
                    read = tuple(self.copy(name, image) for name in node.inputs)
                    made = self.builder.node(node.operator, read, node.output, node.origin)
                    self.copies[node.output, image] = made
        for node in self.cut.nodes:
            operator = wide.get(node.output)
            if isinstance(operator, Reshape):
                self.together[node.output] = self.beside(node.inputs[0])
            elif operator is not None:
                read = tuple(self.beside(name) for name in node.inputs)
                made = self.builder.node(operator, read, node.output, node.origin)
                self.together[node.output] = made
        results = {chain.last: self.result(chain) for chain in self.cut.results}
        self.builder.export([results[name] for name in source.outputs], source.outputs)
        return self.builder.build(source.outputs)

    def wide(self) -> dict[str, TensorOperator]:
        """The operators of nodes that work on images side by side, by their outputs.

        Only others of them and the host read their results.  Those that read single images are sums
        of products or pools; anything else belongs to the layer before it.
        """
        graph, own = self.source, {node.output: node for node in self.cut.nodes}
        found = {name: made for name, node in own.items() if (made := _wide(graph, node))}
        changed = True
        while changed:
            changed = False
            for name in list(found):
                node = own[name]
                before = [each for each in node.inputs if each in own]
                enters = any(each not in found for each in before)
                layers = [each.output for each in graph.consumers(name) if each.output in own]
                begins = isinstance(node.operator, Conv2d | MaxPool2d | AveragePool2d)
                if any(each not in found for each in layers) or (enters and not begins):
                    del found[name]
                    changed = True
        return found

    def copy(self, name: str, image: int) -> str:
        """A tensor of one image."""
        if name in self.source.constants:
            return name
        if (name, image) not in self.copies:
            chain = next(each for each in self.cut.sources if each.last == name)
            kind = self.source.types[chain.first]
            made = image_of(self.builder, chain.first, kind, image)
            for node in chain.nodes:
                made = self.builder.node(node.operator, (made,), node.output, node.origin)
            self.copies[name, image] = made
        return self.copies[name, image]

    def beside(self, name: str) -> str:
        """A tensor of all images side by side."""
        if name in self.source.constants:
            return name
        if name not in self.together:
            height, width, _ = _size(self.source, name)
            chain = next((each for each in self.cut.sources if each.last == name), None)
            if chain is not None:
                self.together[name] = self.given(chain)
            else:
                starts = tuple((0, image * width) for image in range(self.images))
                whole = Assemble((height, self.images * width), starts, (1, 1))
                parts = tuple(self.image(name, image) for image in range(self.images))
                self.together[name] = self.builder.node(whole, parts, f"{name}/batch", name)
        return self.together[name]

    def image(self, name: str, image: int) -> str:
        """A tensor of one image, with four dimensions."""
        made, shape = self.copy(name, image), (1, *_size(self.source, name))
        if self.builder.types[made].shape == shape:
            return made
        return self.builder.node(Reshape(shape), (made,), f"{name}/pixels", name)

    def given(self, chain: Chain) -> str:
        """An input of the host, images side by side."""
        made = self.on_host(chain, chain.first)
        height, width, channels = _size(self.source, chain.last)
        made = self.reshaped(made, (self.images, height, width, channels))
        if height > 1:
            made = self.builder.node(Transpose((1, 0, 2, 3)), (made,), chain.last, chain.last)
        return self.reshaped(made, (1, height, self.images * width, channels))

    def result(self, chain: Chain) -> str:
        """An output, of what is side by side."""
        made, kind = self.beside(chain.first), self.source.types[chain.first]
        height, width, channels = _size(self.source, chain.first)
        if height > 1:
            made = self.reshaped(made, (height, self.images, width, channels))
            made = self.builder.node(Transpose((1, 0, 2, 3)), (made,), chain.first, chain.first)
        return self.on_host(chain, self.reshaped(made, (self.images, *kind.shape[1:])))

    def on_host(self, chain: Chain, made: str) -> str:
        for node in chain.nodes:
            operator = self.batched(node)
            made = self.builder.node(operator, (made,), node.output, node.origin)
        return made

    def batched(self, node: Node) -> TensorOperator:
        """The operator of the host for all images."""
        operator = node.operator
        before, after = (self.source.types[name] for name in (node.inputs[0], node.output))
        if isinstance(operator, ELEMENTWISE):
            return operator
        if isinstance(operator, Reshape) and _single(before) and _single(after):
            return Reshape((self.images, *operator.shape[1:]))
        if isinstance(operator, Transpose) and operator.permutation[0] == 0:
            return operator
        raise UnsupportedOperatorError(
            f"node {node.origin!r}: {operator} does not keep the first dimension, of images; "
            "required for a batch; compile it with a batch of 1"
        )

    def reshaped(self, name: str, shape: tuple[int, ...]) -> str:
        if self.builder.types[name].shape == shape:
            return name
        return self.builder.node(Reshape(shape), (name,), f"{name}/batch", name)


def _single(kind: TensorType) -> bool:
    return bool(kind.shape) and kind.shape[0] == 1


def _size(graph: Graph, name: str) -> tuple[int, int, int]:
    """Height, width and channels of an image."""
    found = image_size(graph.types[name].shape)
    assert found is not None
    return found


def _wide(graph: Graph, node: Node) -> TensorOperator | None:
    """The operator of ``node`` for images side by side; None where windows span two."""
    operator = node.operator
    sizes = [image_size(graph.types[name].shape) for name in node.inputs]
    x, y = sizes[0], image_size(graph.types[node.output].shape)
    if x is None or y is None:
        return None
    if isinstance(operator, Conv2d | MaxPool2d | AveragePool2d):
        if isinstance(operator, Conv2d):
            rows, columns = graph.types[node.inputs[1]].shape[1:3]
            span, moved = operator.span((rows, columns))[1], any(operator.pads)
        elif isinstance(operator, MaxPool2d):
            span, moved = operator.kernel[1], any(operator.pads)
        else:
            span, moved = operator.kernel[1], any(operator.start) or operator.size is not None
        across = _stride(x[1], y[1], span, operator.strides[1])
        if across is None or moved:
            return None
        return replace(operator, strides=(operator.strides[0], across))
    if isinstance(operator, AnyAdd | AnyMultiply):
        return operator if sizes[0] == sizes[1] else None
    joins = isinstance(operator, Concatenate) and operator.axis == CHANNELS
    return operator if joins or isinstance(operator, AnyRequantize | Lookup | Reshape) else None


def _stride(width: int, windows: int, span: int, stride: int) -> int | None:
    """The columns from window to window with which images side by side have ``windows`` each."""
    stride = width if windows == 1 else stride
    return stride if span <= stride and windows * stride == width else None
