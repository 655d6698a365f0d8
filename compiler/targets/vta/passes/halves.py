"""Two halves of an image in one word, in the first layers, where these have few channels.

Words have more lanes than such layers have channels.  The upper half of the image takes some of
them, the lower half, upside down, some others, so that the vector unit finishes, and folds, the
pixels of both at once:

    Conv2d(x: C channels), depthwise Conv2d, ..., Conv2d  ->
        h = Halves(x), by the host
        y = Conv2d(h: 2 * C channels, each from its half), depthwise Conv2d, ...
        Assemble(Conv2d(y, upper half), Conv2d(y, lower half), the latter turned)

Upside down, the lower half meets the image's border where the upper one does.  Both have some rows
beyond the middle, which the windows of later layers reach: what those need is computed twice.  The
kernels of the lower half are turned upside down too.

The layers between are those whose windows see the same from both sides: one row apart, with as many
rows of padding above as below.  The first convolution may have any, since the host puts its rows
together.  A pass over its own result finds no layer with few channels at an input, so it ends.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from dovetail.isa.frozen import frozen, replace

from ....graph.ir import Array, Graph, GraphBuilder, Node
from ....graph.operators.assembly import Assemble, Halves
from ....graph.operators.integer.conversions import Quantize, Shift128
from ....graph.operators.integer.products import Conv2d
from ....graph.operators.integer.residual import RequantizeAdd
from ....graph.operators.integer.values import Lookup
from ....graph.operators.movement import Reshape, Transpose
from ....graph.passes.eliminate_dead import EliminateDead
from ..operators import AnyAdd, AnyRequantize
from .split_groups import is_depthwise

__all__ = ["TwoHalves"]

BEFORE = (Quantize, Shift128, Transpose, Reshape)
"""The host's operators before the first layer."""

LEAST_SAVED = 2000
"""Words that the vector unit has less to go through, at least: smaller images gain nothing."""

ROOM = 0.75
"""Part of ACT that results may take; the others are for rows of the image, and for later layers."""


@frozen
class _Layer:
    """A convolution, and what makes bytes of its sums: a requantisation, and perhaps a table."""

    conv: Node
    finish: tuple[Node, ...]

    @property
    def operator(self) -> Conv2d:
        """The convolution's operator."""
        assert isinstance(self.conv.operator, Conv2d)
        return self.conv.operator

    @property
    def output(self) -> str:
        """Its bytes."""
        return self.finish[-1].output

    @property
    def reach(self) -> int:
        """Rows beyond its own pixel that a window of a layer with symmetric windows sees."""
        return self.operator.pads[0]


@frozen
class TwoHalves:
    """See the module's docstring.  lanes: of a block.  act_words: of ACT."""

    lanes: int
    act_words: int
    name: str = "two_halves"

    def run(self, graph: Graph) -> Graph:
        """The rewritten graph; ``graph`` itself where no layers suit."""
        for node in graph.nodes:
            layers = _chain(graph, node, self.lanes)
            if layers and _gains(graph, layers, self.lanes, self.act_words):
                return self.run(_Folding(graph, layers).graph())
        return graph


def _gains(graph: Graph, layers: Sequence[_Layer], lanes: int, act_words: int) -> bool:
    """True if programs of halves are expected to be faster.

    The vector unit has so many words less to go through, and all results are on chip at one time,
    since the last layer makes both halves of its own from first to last.
    """
    saved, words = 0, 0
    for layer in layers:
        _, rows, columns, channels = graph.types[layer.output].shape
        pixels = rows * columns
        if layer is layers[-1]:
            words += -(-channels // lanes) * pixels
            break
        words += pixels // 2
        taps = graph.types[layer.conv.inputs[1]].shape[1] if layer.operator.groups > 1 else 1
        saved += taps * pixels // 2
    return saved >= LEAST_SAVED and words <= act_words * ROOM


def _chain(graph: Graph, node: Node, lanes: int) -> list[_Layer]:
    """The layers from ``node`` on that may run on halves, and the one behind them that takes these
    apart; none unless the vector unit folds pixels for one of them.
    """
    if not _is_first(graph, node):
        return []
    found: list[_Layer] = []
    while (layer := _layer(graph, node)) is not None:
        found.append(layer)
        readers = graph.consumers(layer.output)
        if len(found) > 1 and not _is_depthwise(graph, node):
            apart = not any(isinstance(each.operator, AnyAdd | RequantizeAdd) for each in readers)
            whole, reach = graph.types[found[0].output].shape[1], sum(x.reach for x in found[1:])
            fits = whole % 2 == 0 and whole // 2 + reach <= whole
            return found if len(found) > 2 and apart and fits else []
        packed = 2 * graph.types[layer.output].shape[3] <= lanes
        if not packed or len(readers) != 1 or layer.output in graph.outputs:
            return []
        (node,) = readers
        if not _sees_alike(graph, node):
            return []
    return []


def _is_first(graph: Graph, node: Node) -> bool:
    """True if it is a convolution that alone reads an image of the host."""
    if not isinstance(node.operator, Conv2d) or node.operator.groups != 1:
        return False
    name = node.inputs[0]
    alone = len(graph.consumers(name)) == 1 and name not in graph.outputs
    while (maker := graph.producer(name)) is not None and isinstance(maker.operator, BEFORE):
        (name,) = maker.inputs
    return alone and name in graph.inputs


def _sees_alike(graph: Graph, node: Node) -> bool:
    """True if windows of a convolution see the same from below as from above."""
    operator = node.operator
    if not isinstance(operator, Conv2d) or node.inputs[1] not in graph.constants:
        return False
    kernel = graph.types[node.inputs[1]].shape
    top, _, bottom, _ = operator.pads
    rows, _ = operator.span((kernel[1], kernel[2]))
    dense = operator.groups == 1 or is_depthwise(operator, kernel)
    return dense and operator.strides[0] == 1 and top == bottom and rows == 2 * top + 1


def _is_depthwise(graph: Graph, node: Node) -> bool:
    operator = node.operator
    shape = graph.types[node.inputs[1]].shape
    return isinstance(operator, Conv2d) and is_depthwise(operator, shape)


def _layer(graph: Graph, conv: Node) -> _Layer | None:
    """The layer of a convolution, if all its numbers are known."""
    finish: list[Node] = []
    for kinds in (AnyRequantize, Lookup):
        readers = graph.consumers(finish[-1].output if finish else conv.output)
        if len(readers) == 1 and isinstance(readers[0].operator, kinds):
            finish.append(readers[0])
    known = [name for node in (conv, *finish) for name in node.inputs[1:]]
    plain = finish and isinstance(finish[0].operator, AnyRequantize)
    inner = (conv.output, *(node.output for node in finish[:-1]))
    if not plain or not graph.constants.keys() >= set(known) or set(inner) & set(graph.outputs):
        return None
    return _Layer(conv, tuple(finish)) if graph.types[conv.inputs[2]].rank == 1 else None


@dataclass(slots=True)
class _Folding:
    """``layers`` of ``source`` on halves.

    height: rows of each half of what they make.
    """

    source: Graph
    layers: Sequence[_Layer]
    builder: GraphBuilder = field(init=False)
    height: int = field(init=False)

    def __post_init__(self) -> None:
        self.builder = GraphBuilder.over(self.source)
        self.height = self.source.types[self.layers[0].output].shape[1] // 2

    def graph(self) -> Graph:
        """The rewritten graph."""
        last = self.layers[-1]
        own = {node.output for each in self.layers for node in (each.conv, *each.finish)}
        for node in self.source.nodes:
            if node.output == last.output:
                self.builder.nodes.append(replace(self.whole(), output=last.output))
            elif node.output not in own:
                self.builder.nodes.append(node)
        return EliminateDead().run(self.builder.build(self.source.outputs))

    def whole(self) -> Node:
        """The node that puts the results of the last layer together, behind all other nodes."""
        first, *middle, last = self.layers
        name = self.first(first, sum(each.reach for each in self.layers[1:]))
        for layer in middle:
            weights = self.constant(layer.conv, 1)
            both = np.concatenate([weights, weights[:, ::-1]])
            operator = replace(layer.operator, groups=2 * layer.operator.groups)
            name = self.layer(layer, _below_open(operator), name, both, 2)
        weights, absent = self.constant(last.conv, 1), last.operator.weight_zero_point
        nothing = np.full_like(weights, absent)
        parts = tuple(
            self.layer(last, _below_open(last.operator), name, np.concatenate(both, 3), 1)
            for both in ((weights, nothing), (nothing, weights[:, ::-1]))
        )
        _, rows, columns, _ = self.source.types[last.output].shape
        whole = Assemble((rows, columns), ((0, 0), (self.height, 0)), (1, 1), (1,))
        self.builder.node(whole, parts, f"{last.output}/whole", last.conv.origin)
        return self.builder.nodes.pop()

    def first(self, layer: _Layer, beyond: int) -> str:
        """The first layer on halves with ``beyond`` rows behind the middle."""
        operator, weights = layer.operator, self.constant(layer.conv, 1)
        top, left, _, right = operator.pads
        span, stride = operator.span(weights.shape[1:3])[0], operator.strides[0]
        rows = stride * (self.height + beyond - 1) + span
        last = stride * (2 * self.height - 1) - top + span - 1
        halves = Halves(rows, top, last, operator.zero_point)
        stem = f"{layer.conv.inputs[0]}/halves"
        name = self.builder.node(halves, layer.conv.inputs[:1], stem, layer.conv.origin)
        nothing = np.full_like(weights, operator.weight_zero_point)
        upper = np.concatenate([weights, nothing], 3)
        lower = np.concatenate([nothing, weights[:, ::-1]], 3)
        conv = replace(operator, pads=(0, left, 0, right))
        return self.layer(layer, conv, name, np.concatenate([upper, lower]), 2)

    def layer(self, layer: _Layer, conv: Conv2d, x: str, weights: Array, halves: int) -> str:
        """``layer`` with other weights, and parameters for so many times the channels."""
        stem, origin = layer.conv.output, layer.conv.origin
        kernel = self.builder.constant(f"{stem}/halves", weights)
        names = (x, kernel, self.repeated(layer.conv, 2, halves))
        name = self.builder.node(conv, names, f"{stem}/halves", origin)
        for node in layer.finish:
            rest = (self.repeated(node, n, halves) for n in range(1, len(node.inputs)))
            stem = f"{node.output}/halves"
            name = self.builder.node(node.operator, (name, *rest), stem, node.origin)
        return name

    def repeated(self, node: Node, place: int, halves: int) -> str:
        """An operand with numbers for each channel, for so many times the channels; a table for
        all channels as it is.
        """
        array, name = self.constant(node, place), node.inputs[place]
        if halves == 1 or (isinstance(node.operator, Lookup) and array.ndim == 1):
            return name
        return self.builder.constant(f"{name}/halves", np.concatenate([array] * halves))

    def constant(self, node: Node, place: int) -> Array:
        return self.source.constants[node.inputs[place]]


def _below_open(conv: Conv2d) -> Conv2d:
    """``conv`` without padding below, where the rows beyond the middle are."""
    return replace(conv, pads=(*conv.pads[:2], 0, conv.pads[3]))
