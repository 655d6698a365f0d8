"""Cutting a graph in parts that an accelerator and the CPU run in turns.

Each node runs on the accelerator if that has it.  Parts are levels: a node's is that of what it
reads, or the next one where it runs on the other side.  So there are as few parts as the longest
chain of changes asks for.  Only int8 tensors go from one side to the other.  Where a few nodes
between parts of the CPU cost less there than a launch, they stay there.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import inf

from dovetail.isa.frozen import frozen

from ..dtypes import DType
from .ir import Graph, Node
from .passes.eliminate_dead import EliminateDead

__all__ = ["Costs", "Piece", "Placed", "Placement", "Plan", "Refusal", "cut", "place_nodes"]


FEW = 3
"""Launches that an island must win to be left where it is without a closer look."""


@frozen
class Refusal:
    """Why an accelerator does not run a node.

    origin: the model's node; None for what concerns none.  output: of the piece that it concerns.
    """

    reason: str
    origin: str | None = None
    output: str | None = None


@frozen
class Piece:
    """A piece of a model's graph.

    own: the target runs it, not the CPU.   share: of the nodes that the target runs.
    """

    graph: Graph
    own: bool = True
    share: float = 1.0


@frozen
class Placement:
    """Where a node of the model runs, and why.  macs: the products that it asks for."""

    node: str
    operator: str
    where: str
    reason: str
    macs: int = 0


@frozen
class Plan:
    """The pieces in the order they run, and where each node of the model runs."""

    pieces: tuple[Piece, ...]
    placements: tuple[Placement, ...]


@frozen
class Costs:
    """Estimates, in seconds.

    own, host: what a node takes on the accelerator and on the CPU; None for what the accelerator is
    there for, and runs if it can.  launch: what a part of the accelerator adds.  byte: for each
    byte that goes from one side to the other.
    """

    own: Callable[[Graph, Node], float]
    host: Callable[[Graph, Node], float | None]
    launch: float
    byte: float


@frozen
class Placed:
    """Where nodes run: the level of each, by its number.  The accelerator's are odd."""

    graph: Graph
    levels: tuple[int, ...]

    @property
    def own(self) -> tuple[bool, ...]:
        """True for each node that the accelerator runs, in the order of the nodes."""
        return tuple(level % 2 == 1 for level in self.levels)


def place_nodes(graph: Graph, own: Sequence[bool], costs: Costs) -> Placed:
    """Where each node runs.  own: of each node, whether the accelerator has it."""
    best = _placed(graph, own)
    least = _seconds(best, costs)
    for island in _islands(best, costs):
        fewer = [each and number not in island for number, each in enumerate(best.own)]
        other = _placed(graph, fewer)
        seconds = _seconds(other, costs)
        if seconds < least and any(other.own):
            best, least = other, seconds
    return best


def cut(placed: Placed, beside: Callable[[Node], bool]) -> tuple[Piece, ...]:
    """The pieces in the order they run.

    beside: whether the accelerator's host can run a node before its program or after it.  Chains of
    such nodes go with the accelerator's parts where they begin at an input of the graph or end at
    an output.
    """
    graph = placed.graph
    heads = _heads(graph, beside)
    levels = _with_tails(placed, beside)
    maker = {name: number for number, node in enumerate(graph.nodes) for name in node.outputs}
    pieces: list[Piece] = []
    needed = dict.fromkeys(graph.outputs)
    level_of = {name: levels[number] for name, number in maker.items()}
    # The CPU gives outputs that no node makes.
    level_of |= {name: 0 for name in graph.outputs if name in graph.constants}
    for level in sorted(set(level_of.values()), reverse=True):
        own = level % 2 == 1
        wanted = [name for name in needed if level_of.get(name) == level]
        if not wanted:
            continue
        nodes, read = list[Node](), set(wanted)
        for number, node in reversed(list(enumerate(graph.nodes))):
            here = levels[number] == level or (own and node.output in heads)
            if here and read.intersection(node.outputs):
                nodes.append(node)
                read.update(node.inputs)
        made = {name for node in nodes for name in node.outputs}
        given = (*graph.inputs, *maker)
        inputs = tuple(name for name in given if name in read and name not in made)
        needed.update(dict.fromkeys(inputs))
        part = Graph(inputs, tuple(wanted), tuple(reversed(nodes)), graph.constants, graph.types)
        pieces.append(Piece(EliminateDead().run(part), own))
    count = sum(len(each.graph.nodes) for each in pieces if each.own)
    return tuple(
        replace(each, share=len(each.graph.nodes) / count) if each.own else each
        for each in reversed(pieces)
    )


def _placed(graph: Graph, own: Sequence[bool]) -> Placed:
    """With as many nodes on the accelerator as ``own`` allows."""
    chosen = _with_bytes_between(graph, own)
    level_of: dict[str, int] = {}
    levels = []
    for node, is_own in zip(graph.nodes, chosen, strict=True):
        level = max((level_of.get(name, 0) for name in node.inputs), default=0)
        levels.append(level + (level % 2 != is_own))
        level_of.update(dict.fromkeys(node.outputs, levels[-1]))
    return Placed(graph, tuple(levels))


def _with_bytes_between(graph: Graph, own: Sequence[bool]) -> list[bool]:
    """``own`` without the nodes that would give the CPU, or take from it, other than int8."""
    chosen = list(own)
    others = [
        (name, number, readers)
        for name, number, readers in _edges(graph)
        if graph.types[name].dtype != DType.INT8
    ]
    changed = True
    while changed:
        changed = False
        for name, maker, readers in others:
            ends = [*([] if maker is None else [maker]), *readers]
            sides = {chosen[number] for number in ends}
            if maker is None or name in graph.outputs:
                sides.add(False)
            if len(sides) > 1:
                changed = True
                for number in ends:
                    chosen[number] = False
    return chosen


def _edges(graph: Graph) -> Iterator[tuple[str, int | None, list[int]]]:
    """Each tensor that is not constant, the node that makes it, and those that read it."""
    made = {name: number for number, node in enumerate(graph.nodes) for name in node.outputs}
    read: dict[str, list[int]] = {name: [] for name in (*graph.inputs, *made)}
    for number, node in enumerate(graph.nodes):
        for name in dict.fromkeys(node.inputs):
            if name in read:
                read[name].append(number)
    for name, readers in read.items():
        yield name, made.get(name), readers


def _islands(placed: Placed, costs: Costs) -> list[set[int]]:
    """Neighbours on the accelerator that win less there than a few launches take, least first."""
    graph, levels = placed.graph, placed.levels
    leader = list(range(len(levels)))

    def find(number: int) -> int:
        while leader[number] != number:
            leader[number] = number = leader[leader[number]]
        return number

    for _, maker, readers in _edges(graph):
        for number in readers:
            if maker is not None and levels[maker] == levels[number]:
                leader[find(number)] = find(maker)
    islands: dict[int, set[int]] = {}
    won: dict[int, float] = {}
    for number, node in enumerate(graph.nodes):
        if levels[number] % 2:
            first = find(number)
            islands.setdefault(first, set()).add(number)
            spent = costs.host(graph, node)
            gain = inf if spent is None else spent - costs.own(graph, node)
            won[first] = won.get(first, 0) + gain
    small = [first for first in islands if won[first] < FEW * costs.launch]
    return [islands[first] for first in sorted(small, key=lambda first: won[first])]


def _seconds(placed: Placed, costs: Costs) -> float:
    """Time of all nodes, launches and transfers."""
    graph, levels = placed.graph, placed.levels
    total = costs.launch * len({level for level in levels if level % 2})
    for node, level in zip(graph.nodes, levels, strict=True):
        total += (costs.own if level % 2 else costs.host)(graph, node) or 0
    for name, maker, readers in _edges(graph):
        side = 0 if maker is None else levels[maker] % 2
        if any(levels[number] % 2 != side for number in readers):
            total += costs.byte * graph.types[name].elements
    return total


def _heads(graph: Graph, beside: Callable[[Node], bool]) -> set[str]:
    """Results of chains of nodes that the host can run, from an input of the graph on."""
    found: set[str] = set()
    for node in graph.nodes:
        if beside(node) and (node.inputs[0] in graph.inputs or node.inputs[0] in found):
            found.add(node.output)
    return found


def _with_tails(placed: Placed, beside: Callable[[Node], bool]) -> list[int]:
    """Levels, with chains that the host can run, and only outputs follow, in their maker's."""
    graph, levels = placed.graph, list(placed.levels)
    ends: set[int] = set()
    readers = {maker: each for _, maker, each in _edges(graph) if maker is not None}
    for number in reversed(range(len(levels))):
        node = graph.nodes[number]
        if beside(node) and all(each in ends for each in readers[number]):
            ends.add(number)
    level_of = {name: levels[n] for n, node in enumerate(graph.nodes) for name in node.outputs}
    for number in sorted(ends):
        node = graph.nodes[number]
        if level_of.get(node.inputs[0], 0) % 2:
            levels[number] = level_of[node.output] = level_of[node.inputs[0]]
    return levels
