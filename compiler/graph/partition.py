"""Cutting a graph in parts: what an accelerator runs, and what the CPU runs before and after.

The cuts lie at quantised tensors through which everything passes: a part before the accelerator
ends, and one after it begins, with one int8 or uint8 tensor.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, pairwise

from ..dtypes import DType
from ..errors import UnsupportedOperatorError
from .ir import Graph, Node
from .operators.contractions import Contract, Convolution
from .operators.transposed import TransposedConvolution
from .passes.eliminate_dead import EliminateDead
from .passes.integer_layers.recognition import recognise

__all__ = ["Piece", "Placement", "Plan", "Refusal", "plan_parts"]

HEAVY = (Convolution, Contract, TransposedConvolution)
BYTES = (DType.INT8, DType.UINT8)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an accelerator does not run a graph of integer operators.

    origin: the model's node that is in the way; None for what concerns no node.
    """

    reason: str
    origin: str | None = None


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a node of the model runs, and why."""

    node: str
    operator: str
    where: str
    reason: str


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a model's graph.

    own: the target runs it, and not the CPU beside it.  layers: the same as integer operators,
    where an accelerator takes these.
    """

    graph: Graph
    own: bool = True
    layers: Graph | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """The pieces in the order they run, and where each node of the model runs."""

    pieces: tuple[Piece, ...]
    placements: tuple[Placement, ...]


@dataclass(frozen=True, slots=True)
class _Cut:
    """Before node ``place``, of those that compute, only ``tensor`` lives; None at both ends."""

    place: int
    tensor: str | None


def plan_parts(
    graph: Graph, kinds: Mapping[str, str], refuse: Callable[[Graph], Refusal | None]
) -> Plan:
    """The longest part of ``graph`` for the accelerator, by its products, and what is around it.

    kinds: what the model calls the operators of its nodes.  refuse: says whether the accelerator
    runs a graph of integer operators.
    Raises UnsupportedOperatorError when no part with a product is for the accelerator, ModelError
    for a graph that quantises nothing.
    """
    found = recognise(graph, kinds)
    refusal = refuse(found.graph) if found.graph else None
    if found.graph and refusal is None:
        return Plan((Piece(graph, layers=found.graph),), ())
    problem = found.problem if refusal is None else refusal.reason
    constant = _constant_nodes(graph)
    numbers = [number for number in range(len(graph.nodes)) if number not in constant]
    nodes = [graph.nodes[number] for number in numbers]
    reasons = {
        place: reason or f"the accelerator has no {kinds.get(node.origin, _kind(node))}"
        for place, (number, node) in enumerate(zip(numbers, nodes, strict=True))
        if number in found.reasons
        for reason in [found.reasons[number]]
    }
    cuts = _cuts(graph, nodes)
    while span := _best(nodes, cuts, reasons):
        parts = _parts(graph, cuts, span)
        layers = recognise(parts[span], kinds).require()
        refusal = refuse(layers)
        if refusal is None:
            made = tuple(
                Piece(part, layers=layers) if cut is span else Piece(part, own=False)
                for cut, part in parts.items()
            )
            return Plan(made, tuple(_placements(nodes, kinds, span, reasons)))
        begin, end = span
        guilty = [
            place
            for place in range(begin.place, end.place)
            if nodes[place].origin == refusal.origin
        ]
        for place in guilty or [end.place - 1]:
            reasons[place] = refusal.reason
    raise UnsupportedOperatorError(str(problem))


_Span = tuple[_Cut, _Cut]


def _kind(node: Node) -> str:
    return type(node.operator).__name__


def _constant_nodes(graph: Graph) -> set[int]:
    """Numbers of the nodes that depend on constants only."""
    known, found = set(graph.constants), set()
    for number, node in enumerate(graph.nodes):
        if known.issuperset(node.inputs):
            known.update(node.outputs)
            found.add(number)
    return found


def _cuts(graph: Graph, nodes: list[Node]) -> list[_Cut]:
    """Every place where one quantised tensor is all that lives, and both ends, where one does."""
    made = {*graph.inputs, *(name for node in nodes for name in node.outputs)}
    last: dict[str, int] = {}
    for place, node in enumerate(nodes):
        last.update((name, place) for name in node.inputs if name in made)
    last.update((name, len(nodes)) for name in graph.outputs)
    alive = {name for name in graph.inputs if name in last}
    cuts = [_Cut(0, None)] if len(graph.inputs) == len(alive) == 1 else []
    for place, node in enumerate(nodes[:-1]):
        alive |= {name for name in node.outputs if last.get(name, -1) > place}
        alive = {name for name in alive if last[name] > place}
        if len(alive) == 1:
            (name,) = alive
            if graph.types[name].dtype in BYTES:
                cuts.append(_Cut(place + 1, name))
    return [*cuts, *([_Cut(len(nodes), None)] if len(graph.outputs) == 1 else [])]


def _best(nodes: list[Node], cuts: list[_Cut], reasons: Mapping[int, str]) -> _Span | None:
    """The widest range without a reason that has most products; None when none has one."""
    best: tuple[int, _Span] | None = None
    for begin, end in _widest(cuts, reasons):
        heavy = sum(isinstance(node.operator, HEAVY) for node in nodes[begin.place : end.place])
        if heavy and (best is None or heavy > best[0]):
            best = heavy, (begin, end)
    return None if best is None else best[1]


def _widest(cuts: list[_Cut], reasons: Mapping[int, str]) -> Iterator[_Span]:
    """The widest ranges between two cuts without a reason."""

    def is_joined(pair: tuple[_Cut, _Cut]) -> bool:
        return not any(pair[0].place <= place < pair[1].place for place in reasons)

    for joined, pairs in groupby(pairwise(cuts), is_joined):
        if joined:
            members = list(pairs)
            yield members[0][0], members[-1][1]


def _parts(graph: Graph, cuts: list[_Cut], span: _Span) -> dict[_Span, Graph]:
    """The graphs before, in and after a range; none where there is nothing."""
    begin, end = span
    found = {}
    if begin.tensor is not None:
        found[_Cut(0, None), begin] = _between(graph, None, begin.tensor)
    found[span] = _between(graph, begin.tensor, end.tensor)
    if end.tensor is not None:
        found[end, _Cut(-1, None)] = _between(graph, end.tensor, None)
    return found


def _between(graph: Graph, begin: str | None, end: str | None) -> Graph:
    """What computes ``end`` from ``begin``; None for the graph's outputs and inputs.

    An output that is ``begin`` is one of the part before.
    """
    inputs = graph.inputs if begin is None else (begin,)
    outputs = (end,) if end else tuple(name for name in graph.outputs if name != begin)
    nodes = tuple(node for node in graph.nodes if not set(inputs) & set(node.outputs))
    needed, kept = set(outputs), []
    for node in reversed(nodes):
        if needed.intersection(node.outputs):
            needed.update(node.inputs)
            kept.append(node)
    part = Graph(inputs, outputs, tuple(reversed(kept)), graph.constants, graph.types)
    return EliminateDead().run(part)


def _placements(
    nodes: list[Node], kinds: Mapping[str, str], span: _Span, reasons: Mapping[int, str]
) -> Iterator[Placement]:
    begin, end = span
    places: dict[str, list[int]] = {}
    for place, node in enumerate(nodes):
        places.setdefault(node.origin, []).append(place)
    for origin, own in places.items():
        reason = next((reasons[place] for place in own if place in reasons), None)
        where = "cpu"
        if begin.place <= own[0] < end.place:
            where, reason = "accelerator", "it is quantised, and the accelerator has it"
        elif reason is None:
            side = "before" if own[0] < begin.place else "after"
            reason = f"it comes {side} what only the CPU has"
        yield Placement(origin, kinds.get(origin, _kind(nodes[own[0]])), where, reason)
