"""Cutting a graph: chains of host nodes from its inputs, what the accelerator runs, and chains of
host nodes to its outputs.
"""

from collections.abc import Iterator, Mapping
from math import prod

from dovetail.isa.frozen import frozen

from ...graph.ir import Graph, Node
from ...graph.operators.assembly import Append, Assemble
from ...graph.operators.integer.products import RowProducts
from ...graph.operators.movement import Reshape, Slice
from ...graph.partition import Refusal
from .capabilities import ON_ACCELERATOR, RUNS_ON_HOST, is_alias, node_refusals

__all__ = ["Chain", "Cut", "cut_graph"]


@frozen
class Chain:
    """Host nodes that make the tensor ``last`` from the tensor ``first``; none if both are the
    same.
    """

    first: str
    nodes: tuple[Node, ...]
    last: str


@frozen
class Cut:
    """sources: from inputs to the tensors that the accelerator reads, in that order.

    nodes: the accelerator's, and aliases.  results: to the outputs, from tensors that it makes or
    that are part of what it reads.
    """

    sources: tuple[Chain, ...]
    nodes: tuple[Node, ...]
    results: tuple[Chain, ...]


def cut_graph(graph: Graph, lanes: int = 1) -> Cut | Refusal:
    """The cut of a graph that ``prepare_graph`` made, or why the accelerator does not run it.

    From each input host nodes lead to tensors that layers read, and from what layers make host
    nodes lead to each output; there is none between two layers.  lanes: as of ``node_refusals``.
    """
    refused = node_refusals(graph, lanes)
    aliases = {number for number, node in enumerate(graph.nodes) if is_alias(graph, node)}
    own = set(range(len(graph.nodes))) - refused.keys() - aliases
    makers = {name: number for number, node in enumerate(graph.nodes) for name in node.outputs}
    between = _behind(graph, makers, own) & _before(graph, makers, own)
    for number, refusal in refused.items():
        if refusal.reason != RUNS_ON_HOST:
            return refusal
        if number in between:
            node = graph.nodes[number]
            return Refusal(
                f"node {node.origin!r}: {type(node.operator).__name__} between layers cannot run "
                "on the accelerator; only the first and last nodes of a model run on the host",
                node.origin,
            )
    if problem := _rows_problem(graph, own, lanes):
        return problem
    if not any(isinstance(graph.nodes[n].operator, (*ON_ACCELERATOR, Assemble)) for n in own):
        return Refusal("no node of the model runs on the accelerator")
    on_host = {name: graph.nodes[n] for name, n in makers.items() if n in refused}
    renamed = {name: graph.nodes[n] for name, n in makers.items() if n in aliases}
    sources = {}
    for number in sorted(own):
        for name in _read(graph, graph.nodes[number], renamed):
            if name not in makers or name in on_host:
                sources[name] = _chain(name, on_host | renamed)
    results = [_chain(name, on_host | renamed) for name in dict.fromkeys(graph.outputs)]
    for chain in results:
        if chain.first not in makers:
            return Refusal(
                f"output {chain.last!r} is made of {chain.first!r} without the accelerator; leave "
                "it to another part of the model",
                chain.nodes[-1].origin if chain.nodes else None,
                chain.last,
            )
    nodes = tuple(graph.nodes[number] for number in sorted(own | aliases))
    return Cut(tuple(sources.values()), nodes, tuple(results))


def _rows_problem(graph: Graph, own: set[int], lanes: int) -> Refusal | None:
    """Why rows of a tensor cannot be weights: its blocks are words of weights in DRAM, and the host
    puts its tensors there in no other form than its own.
    """
    numbers = {name: number for number, node in enumerate(graph.nodes) for name in node.outputs}
    for node in (graph.nodes[number] for number in sorted(own)):
        if isinstance(node.operator, Append) and numbers.get(node.inputs[1]) not in own:
            return Refusal(
                f"node {node.origin!r}: adds {node.inputs[1]!r}, which the host gives, to a tensor "
                "in DRAM; required what layers make",
                node.origin,
            )
        if not isinstance(node.operator, RowProducts):
            continue
        name = node.inputs[1]
        while (maker := graph.producer(name)) and isinstance(maker.operator, Reshape | Slice):
            name = maker.inputs[0]
        if maker is not None and isinstance(maker.operator, Append):
            continue
        rows = prod(graph.types[name].shape[:-1])
        made = maker is not None and numbers[name] in own
        if rows % lanes and not made:
            return Refusal(
                f"node {node.origin!r}: multiplies by {rows} rows of {name!r}, which the host "
                f"makes; required a multiple of {lanes}",
                node.origin,
            )
    return None


def _behind(graph: Graph, makers: Mapping[str, int], own: set[int]) -> set[int]:
    """Nodes that read, perhaps through others, what nodes ``own`` make; and these."""
    found = set(own)
    for number, node in enumerate(graph.nodes):
        if any(makers.get(name) in found for name in node.inputs):
            found.add(number)
    return found


def _before(graph: Graph, makers: Mapping[str, int], own: set[int]) -> set[int]:
    """Nodes that nodes ``own`` read, perhaps through others; and these."""
    found = set(own)
    for number in reversed(range(len(graph.nodes))):
        if number in found:
            found |= {makers[name] for name in graph.nodes[number].inputs if name in makers}
    return found


def _read(graph: Graph, node: Node, aliases: Mapping[str, Node]) -> Iterator[str]:
    """The activations that ``node`` reads, by their first names."""
    for name in node.inputs:
        while name in aliases:
            (name,) = aliases[name].inputs
        if name not in graph.constants:
            yield name


def _chain(last: str, makers: Mapping[str, Node]) -> Chain:
    """The nodes of ``makers`` that lead to ``last``, and what they begin with."""
    first, nodes = last, list[Node]()
    while first in makers:
        nodes.insert(0, makers[first])
        first = makers[first].inputs[0]
    return Chain(first, tuple(nodes), last)
