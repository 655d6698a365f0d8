"""Where each node of a model runs, and why, for those who read it."""

from collections.abc import Iterator, Mapping
from math import prod

from .ir import Graph, Node
from .operators.contractions import Contract, Convolution
from .operators.integer.conversions import Dequantize, Quantize
from .operators.movement import Reshape, Transpose
from .operators.quantization import DequantizeLinear, QuantizeLinear
from .operators.transposed import TransposedConvolution
from .partition import Placed, Placement, Refusal
from .passes.integer_layers.recognition import Recognition

__all__ = ["placements"]

MOVEMENTS = (Reshape, Transpose, Quantize, Dequantize)
SMALL = "it costs less on the CPU than a launch of the accelerator for it would"


def placements(
    model: Graph,
    kinds: Mapping[str, str],
    found: Recognition,
    placed: Placed,
    refusals: Mapping[int, Refusal],
) -> Iterator[Placement]:
    """One for each node of the model that does not depend on constants only.

    model: its graph.  kinds: what the model calls its nodes' operators.  found: the integer layers
    of ``model``.  refusals: of nodes of ``placed``.
    """
    reasons: dict[str, str] = {}
    moving: dict[str, str] = {}
    for number, reason in found.reasons.items():
        origin = model.nodes[number].origin
        kind = kinds.get(origin, type(model.nodes[number].operator).__name__)
        reasons.setdefault(origin, reason or f"the accelerator has no {kind}")
    _blame(model, reasons)
    in_floats = _why_in_floats(placed.graph, reasons)
    sides: dict[str, bool] = {}
    moves: dict[str, bool] = {}
    quantising = {n.origin for n in model.nodes if isinstance(n.operator, QuantizeLinear)}
    for number, (node, own) in enumerate(zip(placed.graph.nodes, placed.own, strict=True)):
        if isinstance(node.operator, MOVEMENTS) and node.origin in quantising:
            continue  # what it became part of decides
        # Nodes that compute decide; those that only move or convert elements do not.
        told, join = (moves, any) if isinstance(node.operator, MOVEMENTS) else (sides, all)
        told[node.origin] = join((own, told.get(node.origin, own)))
        if not own:
            said = refusals[number].reason if number in refusals else SMALL
            said = in_floats.get(number, said)
            known_as = moving if told is moves else reasons
            known_as.setdefault(node.origin, said.removeprefix(f"node {node.origin!r}: "))
    sides, reasons = moves | sides, moving | reasons
    macs: dict[str, int] = {}
    firsts: dict[str, Node] = {}
    lasts: dict[str, Node] = {}
    known = set(model.constants)
    for node in model.nodes:
        if known.issuperset(node.inputs):
            known.update(node.outputs)
            continue
        firsts.setdefault(node.origin, node)
        lasts[node.origin] = node
        macs[node.origin] = macs.get(node.origin, 0) + _products(model, node)
    _spread(model, firsts, lasts, sides)
    for origin, node in firsts.items():
        own = sides.get(origin, False)
        reason = "the accelerator has it" if own else reasons.get(origin, "it is part of another")
        where, kind = "accelerator" if own else "cpu", type(node.operator).__name__
        yield Placement(origin, kinds.get(origin, kind), where, reason, macs[origin])


def _blame(model: Graph, reasons: dict[str, str]) -> None:
    """Give the reason why no bytes are made of a float to the node that computes it."""
    for node in model.nodes:
        maker = model.producer(node.inputs[0]) if node.inputs else None
        if maker is None or not isinstance(node.operator, QuantizeLinear):
            continue
        if node.origin in reasons and maker.origin not in reasons:
            dtype = model.types[maker.output].dtype
            reasons[maker.origin] = reasons[node.origin]
            reasons[node.origin] = f"it reads the {dtype} result of node {maker.origin!r}"


def _why_in_floats(graph: Graph, reasons: Mapping[str, str]) -> dict[int, str]:
    """Why nodes with float results run on the CPU, by their numbers: because of what reads them.

    reasons: of nodes that have one of their own, by origin.
    """
    found: dict[int, str] = {}
    goes_to: dict[str, str] = {}
    for number, node in reversed(list(enumerate(graph.nodes))):
        dtype = graph.types[node.output].dtype
        if not dtype.is_float or isinstance(node.operator, Dequantize):
            continue
        reader = next(iter(graph.consumers(node.output)), None)
        if reader is None:
            goes_to[node.output] = "is not quantised"
        elif reader.origin in reasons or reader.output not in goes_to:
            why = reasons.get(reader.origin, "the accelerator has no such operator")
            goes_to[node.output] = f"goes to node {reader.origin!r}: {why}"
        else:
            goes_to[node.output] = goes_to[reader.output]
        found[number] = f"its {dtype} result {goes_to[node.output]}"
        if isinstance(node.operator, DequantizeLinear) and reader is not None:
            found[number] = f"it converts bytes for node {reader.origin!r}, which runs on the CPU"
    return found


def _products(graph: Graph, node: Node) -> int:
    """Products of a node in float; 0 for one that is not a contraction."""
    match node.operator:
        case Convolution():
            taps = graph.types[node.inputs[1]].shape[1:]
            return graph.types[node.output].elements * prod(taps)
        case TransposedConvolution():
            taps = graph.types[node.inputs[1]].shape[1:]
            return graph.types[node.inputs[0]].elements * prod(taps)
        case Contract(sizes=sizes):
            return prod(sizes)
    return 0


def _spread(
    model: Graph, firsts: dict[str, Node], lasts: dict[str, Node], sides: dict[str, bool]
) -> None:
    """Let nodes that became part of another run where what reads them runs, or what they read.

    One that quantises became part of what it reads.
    """
    for origin, node in reversed(lasts.items()):
        readers = [each.origin for name in node.outputs for each in model.consumers(name)]
        near = [sides[each] for each in readers if each in sides]
        if origin not in sides and near and not isinstance(node.operator, QuantizeLinear):
            sides[origin] = any(near)
    for origin, node in firsts.items():
        makers = [made.origin for name in node.inputs if (made := model.producer(name))]
        near = [sides[each] for each in makers if each in sides]
        if origin not in sides and near:
            sides[origin] = any(near)
