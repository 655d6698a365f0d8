"""Group the nodes of a graph into layers: what one kernel computes.

Conv2d, Requantize [, Lookup]      ->  one layer
Conv2d, Requantize, Add [, Lookup] ->  one layer, when nothing else reads the convolution's result
RowProducts, Requantize [, Lookup] ->  one layer
Add | Multiply | MaxPool2d | AveragePool2d | Upsample2d  ->  one layer each [, Lookup]
Conv2d, RequantizeAdd [, Lookup]    ->  one layer, which reads what is added too
Conv2d, ScaledSum(ScalesOfWords)   ->  one layer, its factors an activation that it loads as words
RequantizeFixed, AddFixed, MultiplyFixed as Requantize, Add, Multiply
Lookup | RowSoftmax | RowNorm | TensorNorm  ->  a layer of its own
Reshape that moves no element      ->  an alias
Concatenate, Slice of channels     ->  a view: parts are where the whole does
Assemble                           ->  a view: the parts' pixels are where the whole's do
AveragePool2d of one pixel         ->  a view: rows that products of two tensors read
Append                             ->  a tensor in DRAM that two others are parts of there
"""

from collections.abc import Mapping
from dataclasses import field

from dovetail.isa.frozen import frozen, replace

from ....errors import UnsupportedOperatorError
from ....graph.ir import Graph, Node
from ....graph.operators.assembly import Append, Assemble
from ....graph.operators.integer.norm import RowNorm
from ....graph.operators.integer.products import Conv2d, RowProducts
from ....graph.operators.integer.residual import RequantizeAdd
from ....graph.operators.integer.rules import Pair
from ....graph.operators.integer.scaled_sum import ScaledSum, ScalesOfWords
from ....graph.operators.integer.softmax import RowSoftmax
from ....graph.operators.integer.tensor_norm import TensorNorm
from ....graph.operators.integer.values import Lookup
from ....graph.operators.integer.windows import AveragePool2d
from ....graph.operators.movement import Reshape, Slice
from ....graph.partition import Refusal
from ..cut import Chain, cut_graph
from ..operators import AnyAdd, AnyMultiply, AnyRequantize, maker_of_sums
from .own_parts import is_channel_concatenation, is_channel_slice, is_operand

__all__ = ["Layer", "Partition", "View", "fuse"]


@frozen
class View:
    """A part of the tensor ``whole``: its channels from ``channel`` on, its pixels from ``start``
    on, ``steps`` apart.
    """

    whole: str
    channel: int = 0
    start: Pair = (0, 0)
    steps: Pair = (1, 1)


@frozen
class Layer:
    """Nodes that one kernel computes, in order; ``inputs`` and ``output`` are activations."""

    nodes: tuple[Node, ...]
    inputs: tuple[str, ...]
    output: str

    @property
    def name(self) -> str:
        """The model's name for the layer's first node."""
        return self.nodes[0].origin


@frozen
class Partition:
    """A graph cut in three: host nodes before, layers on the accelerator, host nodes after.

    sources: host nodes from inputs to the tensors that go to the accelerator.  results: from the
    tensors that come back to outputs.  All these tensors are int8, NHWC or [1, C].
    views: name of a tensor to the part of another that it is.
    appended: the nodes whose operands are parts of their results in DRAM.
    """

    sources: tuple[Chain, ...]
    layers: tuple[Layer, ...]
    results: tuple[Chain, ...]
    views: Mapping[str, View] = field(default_factory=dict)
    appended: tuple[Node, ...] = ()

    @property
    def result_roots(self) -> frozenset[str]:
        """Tensors that are in DRAM at the end, since results are part of them."""
        return frozenset(self.root(chain.first) for chain in self.results)

    def root(self, name: str) -> str:
        """The tensor that ``name`` is part of, perhaps itself."""
        return self.view(name).whole

    def view(self, name: str) -> View:
        """``name`` as part of a tensor that is not part of another; perhaps all of itself."""
        found = View(name)
        while found.whole in self.views:
            outer = self.views[found.whole]
            found = View(
                outer.whole,
                outer.channel + found.channel,
                (
                    outer.start[0] + outer.steps[0] * found.start[0],
                    outer.start[1] + outer.steps[1] * found.start[1],
                ),
                (outer.steps[0] * found.steps[0], outer.steps[1] * found.steps[1]),
            )
        return found


TWO = (RowProducts, AnyAdd, AnyMultiply)
"""Operators of two activations; either may be a constant in DRAM."""


def fuse(graph: Graph) -> Partition:
    """Cut ``graph`` and group its layers.

    Raises UnsupportedOperatorError, as ``cut_graph`` says.
    """
    cut = cut_graph(graph)
    if isinstance(cut, Refusal):
        raise UnsupportedOperatorError(cut.reason)
    aliases: dict[str, str] = {}
    views: dict[str, View] = {}
    layers: list[Layer] = []
    appended: list[Node] = []
    used: set[str] = set()
    made = {node.output for node in cut.nodes}
    for node in cut.nodes:
        if node.output in used:
            continue
        if isinstance(node.operator, Reshape):
            aliases[node.output] = aliases.get(node.inputs[0], node.inputs[0])
            continue
        if is_channel_concatenation(node, graph.types[node.output]):
            start = 0
            for name in node.inputs:
                views[name] = View(node.output, start)
                start += graph.types[name].shape[3]
            continue
        if is_channel_slice(node, graph.types):
            operator = node.operator
            assert isinstance(operator, Slice)
            whole = aliases.get(node.inputs[0], node.inputs[0])
            views[node.output] = View(whole, operator.starts[3])
            continue
        if node.inputs[0] in made and is_operand(graph, node):
            copy = node.operator
            assert isinstance(copy, AveragePool2d)
            whole = aliases.get(node.inputs[0], node.inputs[0])
            views[node.output] = View(whole, 0, copy.start, copy.strides)
            continue
        if isinstance(node.operator, Append):
            names = tuple(aliases.get(name, name) for name in node.inputs)
            appended.append(replace(node, inputs=names))
            continue
        if isinstance(node.operator, Assemble):
            views |= _pixels(graph, node, node.operator)
            continue
        if isinstance(node.operator, ScalesOfWords):
            continue
        if isinstance(node.operator, Conv2d) and _is_added_to(graph, node):
            # Its place is behind what is added.
            continue
        if isinstance(node.operator, RequantizeAdd):
            maker = maker_of_sums(graph, node)
            assert maker is not None
            node = maker
        nodes = _layer(graph, node)
        used |= {each.output for each in nodes}
        count = 2 if isinstance(node.operator, TWO) else 1
        read = list(node.inputs[:count])
        if isinstance(nodes[-1].operator, ScaledSum):
            scales = graph.producer(nodes[-1].inputs[1])
            assert scales is not None
            read.append(scales.inputs[0])
        read += [each.inputs[2] for each in nodes if isinstance(each.operator, RequantizeAdd)]
        activations = tuple(aliases.get(name, name) for name in read)
        layers.append(Layer(nodes, activations, nodes[-1].output))
    found = Partition(cut.sources, tuple(layers), cut.results, views, tuple(appended))
    return replace(found, layers=_with_sums(graph, found))


def _pixels(graph: Graph, node: Node, assemble: Assemble) -> dict[str, View]:
    """The operands of an Assemble as parts of its result; those upside down have steps up."""
    found, (down, across) = {}, assemble.steps
    for number, (name, begin) in enumerate(zip(node.inputs, assemble.starts, strict=True)):
        if number in assemble.turned:
            last = begin[0] + down * (graph.types[name].shape[1] - 1)
            found[name] = View(node.output, 0, (last, begin[1]), (-down, across))
        else:
            found[name] = View(node.output, 0, begin, assemble.steps)
    return found


def _layer(graph: Graph, node: Node) -> tuple[Node, ...]:
    nodes = [node]
    if isinstance(node.operator, Conv2d | RowProducts):
        nodes.append(_only_consumer(graph, node))
    consumers = graph.consumers(nodes[-1].output)
    if (
        len(consumers) == 1
        and isinstance(consumers[0].operator, Lookup)
        and not isinstance(node.operator, Lookup | RowSoftmax | RowNorm | TensorNorm)
        and not isinstance(nodes[-1].operator, ScaledSum)
        and nodes[-1].output not in graph.outputs
    ):
        nodes.append(consumers[0])
    return tuple(nodes)


def _with_sums(graph: Graph, partition: Partition) -> tuple[Layer, ...]:
    """Each residual sum in the layer before it, if that is a convolution for the sum alone, and
    reads no part of the tensor that is added.
    """
    found: list[Layer] = []
    for layer in partition.layers:
        before = found[-1] if found else None
        if (
            before is not None
            and isinstance(layer.nodes[0].operator, AnyAdd)
            and len(before.nodes) == 2
            and isinstance(before.nodes[0].operator, Conv2d)
            and isinstance(before.nodes[1].operator, AnyRequantize)
            and layer.inputs.count(before.output) == 1
            and not {*map(partition.root, layer.inputs)} & {*map(partition.root, before.inputs)}
            and len(graph.consumers(before.output)) == 1
            and before.output not in graph.outputs
        ):
            nodes = (*before.nodes, *layer.nodes)
            (other,) = (name for name in layer.inputs if name != before.output)
            found[-1] = Layer(nodes, (*before.inputs, other), layer.output)
        else:
            found.append(layer)
    return tuple(found)


def _is_added_to(graph: Graph, conv: Node) -> bool:
    """True if bytes are added to the sums of ``conv``."""
    return isinstance(_only_consumer(graph, conv).operator, RequantizeAdd)


def _only_consumer(graph: Graph, node: Node) -> Node:
    """The node that requantises ``node``'s sum, perhaps after a Reshape."""
    (reader,) = graph.consumers(node.output)
    if isinstance(reader.operator, Reshape):
        (reader,) = graph.consumers(reader.output)
    return reader
