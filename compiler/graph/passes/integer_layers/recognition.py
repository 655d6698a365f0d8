"""Integer layers of a graph: operators that dequantise, compute and quantise, as integer operators.

    QuantizeLinear(Convolution(DequantizeLinear(x), w) + b)  ->  Requantize(Conv2d(x, w, b))
    QuantizeLinear(DequantizeLinear(a) + DequantizeLinear(b))  ->  Add(a, b)
    QuantizeLinear(f(DequantizeLinear(x)))  ->  Lookup(x, table of f)

and pools, means, softmax, joins, and what moves elements.  A node that is part of no integer layer
stays as it is, between them.  Each node is visited once, in order.
"""

from collections.abc import Callable, Mapping

from dovetail.isa.frozen import frozen

from ....errors import GraphError, ModelError, UnsupportedOperatorError
from ...ir import Graph, Node
from ...operators.contractions import Contract, Convolution
from ...operators.indexing import Gather
from ...operators.integer.conversions import Dequantize
from ...operators.movement import Concatenate, Expand, PadTensor, Reshape, Slice, Transpose
from ...operators.protocol import Fusion
from ...operators.quantization import DequantizeLinear, QuantizeLinear
from ...operators.recurrent import Recurrence
from ...operators.reductions import Reduce
from ...operators.rows import SoftmaxRows
from ...operators.table import INTEGER
from ...operators.transposed import TransposedConvolution
from ...operators.windows import WindowReduce
from ..eliminate_dead import EliminateDead
from .channel_scales import dequantize_channels, has_channel_scales, quantize_channels
from .coarse_norms import CoarseNorm, find_coarse_norms, quantize_coarse_norm
from .contractions import recognise_contract, recognise_convolution, recognise_transposed
from .elementwise import recognise_elementwise
from .entries import folded, input_value, outside_value
from .gathers import recognise_gather
from .kept import as_stored, in_model_form, keep
from .layouts import to_model_order
from .movement import recognise_concatenate, recognise_movement, recognise_pad, recognise_slice
from .norms import Norm, find_norms, quantize_norm
from .quantize import quantize
from .row_softmax import softmax_in_integers
from .scaled_sums import Rotations, find_scaled_sums, quantize_scaled_sums
from .state import State, UnrecognisedError
from .values import Floating, Foreign, Integer, Real, Value
from .windows import recognise_reduce, recognise_softmax, recognise_window

__all__ = ["Recognition", "has_integer_layers", "integer_layers", "is_quantized", "recognise"]

HEAVY = (Convolution, Contract, TransposedConvolution)


@frozen
class Recognition:
    """A graph with its integer layers as integer operators.

    graph: with the same inputs and outputs; nodes that are part of no integer layer are the model's
    own.
    reasons: of these, by their numbers in the model's graph; None where there is no integer
    operator of the kind.
    problem: the first reason, with the node or the output; None when all of the graph is integer
    layers.
    """

    graph: Graph
    reasons: Mapping[int, str | None]
    problem: str | None

    def require(self) -> Graph:
        """The graph, if integer layers are all of it.

        Raises UnsupportedOperatorError, saying what is not.
        """
        if self.problem is not None:
            raise UnsupportedOperatorError(self.problem)
        return self.graph


def is_quantized(graph: Graph) -> bool:
    """True if a node quantises or dequantises."""
    kinds = (QuantizeLinear, DequantizeLinear)
    return any(isinstance(node.operator, kinds) for node in graph.nodes)


def has_integer_layers(graph: Graph) -> bool:
    """True if ``graph`` has integer operators already."""
    return any(isinstance(node.operator, INTEGER) for node in graph.nodes)


def integer_layers(graph: Graph, kinds: Mapping[str, str] | None = None) -> Recognition:
    """As ``recognise``; a graph whose front end made integer operators is kept as it is."""
    if has_integer_layers(graph):
        return Recognition(graph, {}, None)
    return recognise(graph, kinds)


def recognise(graph: Graph, kinds: Mapping[str, str] | None = None) -> Recognition:
    """The integer layers of ``graph``.

    kinds: what the model calls the operators of its nodes, by the nodes' names, for messages.
    Raises ModelError for a graph with products that quantises nothing.
    """
    heavy = next((node for node in graph.nodes if isinstance(node.operator, HEAVY)), None)
    if heavy is not None and not is_quantized(graph):
        label, floats = _label(heavy, kinds), graph.types[heavy.output].dtype.is_float
        found, what = (
            (f"float model: {label} computes in floats", "the model")
            if floats
            else (f"{label} has only scales that a run computes", "the float model")
        )
        raise ModelError(
            f"{found}; required an int8 model in QDQ or QLinear form; quantise {what} first, with "
            "dovetail quantize MODEL --data INPUTS -o MODEL_int8.onnx, or compile it for cpu"
        )
    state = State(graph)
    norms, inside = find_norms(graph)
    coarse, more = find_coarse_norms(graph)
    rotations = find_scaled_sums(graph)
    inside |= rotations.inside | more
    for name in graph.inputs:
        state.values[name] = input_value(state, name, graph.types[name])
    reasons: dict[int, str | None] = {}
    # What is wrong with their products is not why they run elsewhere.
    cells = {node.origin for node in graph.nodes if isinstance(node.operator, Recurrence)}
    for number, node in enumerate(graph.nodes):
        try:
            if folded(state, node):
                continue
            if isinstance(node.operator, QuantizeLinear) and has_channel_scales(state, node):
                state.values[node.output] = quantize_channels(state, node)
                continue
            if isinstance(node.operator, QuantizeLinear):
                # Some quantisers do it again for each reader.
                key = node.inputs[0], state.quantized_as(node)
                if key not in state.stored:
                    state.stored[key] = _store(state, node, norms, coarse, rotations)
                state.values[node.output] = state.stored[key]
                continue
            rule = _rule(node)
            if rule is None:
                reasons[number] = None
            else:
                state.values[node.output] = rule(state, node)
                continue
        except (UnrecognisedError, GraphError) as error:
            said = str(error).removeprefix(f"node {node.origin!r}: ")
            reasons[number] = None if node.origin in cells else said
        keep(state, node)
        for name in node.outputs:
            state.values[name] = outside_value(state, name, node)
    result = _with_outputs(state)
    # Of formulas that are one operator now nothing is left.
    left = {name for node in result.nodes for name in node.outputs}
    gone = {name for name in inside if state.plain.get(name) not in left}
    reasons = {k: reason for k, reason in reasons.items() if graph.nodes[k].output not in gone}
    outputs = (reason for name in graph.outputs if (reason := _unquantized(state, name)))
    return Recognition(result, reasons, _first(graph, reasons, kinds) or next(outputs, None))


def _first(
    graph: Graph, reasons: Mapping[int, str | None], kinds: Mapping[str, str] | None
) -> str | None:
    """The first reason, with its node."""
    for number, reason in reasons.items():
        node = graph.nodes[number]
        said = reason or f"there is no integer {_kind(node, kinds)}"
        return f"{_label(node, kinds)}: {said}"
    return None


def _normalise(state: State, node: Node, norm: Norm) -> Value:
    """Bytes of rows that the nodes before normalise."""
    kind = state.quantized_as(node)
    tensor = quantize_norm(state, norm, kind.scale, kind.zero_point, node.output)
    return Integer(tensor.name, tensor.permutation, kind.unsigned)


def _rotate(state: State, node: Node, rotations: Rotations) -> Value:
    """Bytes of sums whose terms have factors of their own."""
    kind, name = state.quantized_as(node), node.inputs[0]
    if kind.unsigned:
        raise UnrecognisedError("quantises a scaled sum to uint8; required int8")
    return quantize_scaled_sums(state, rotations, name, kind.scale, kind.zero_point, node.output)


def _label(node: Node, kinds: Mapping[str, str] | None) -> str:
    return f"node {node.origin!r} ({_kind(node, kinds)})"


def _kind(node: Node, kinds: Mapping[str, str] | None) -> str:
    return (kinds or {}).get(node.origin, type(node.operator).__name__)


def _store(
    state: State,
    node: Node,
    norms: Mapping[str, Norm],
    coarse: Mapping[str, CoarseNorm],
    rotations: Rotations,
) -> Value:
    """Bytes of what the nodes before computed, some as one formula."""
    name = node.inputs[0]
    if name in norms:
        return _normalise(state, node, norms[name])
    if name in coarse:
        return quantize_coarse_norm(state, coarse[name], node)
    if name in rotations.roots:
        return _rotate(state, node, rotations)
    return _quantize(state, node)


def _quantize(state: State, node: Node) -> Value:
    """Bytes of what the nodes before computed."""
    value = state.value(node.inputs[0])
    if isinstance(value, Foreign):
        raise UnrecognisedError(value.reason)
    kind = state.quantized_as(node)
    maker = state.producers.get(node.inputs[0])
    # People know a layer by the node that computes, not by the one that quantises its result.
    known_by = maker or node
    if isinstance(known_by.operator, DequantizeLinear) or isinstance(value, Floating):
        known_by = node
    tensor = quantize(state, value, kind.scale, kind.zero_point, node.output, known_by.origin)
    return Integer(tensor.name, tensor.permutation, kind.unsigned)


def _dequantize(state: State, node: Node) -> Value:
    """The real tensor of bytes."""
    if has_channel_scales(state, node):
        return dequantize_channels(state, node)
    value = state.value(node.inputs[0])
    if not isinstance(value, Integer):
        reason = value.reason if isinstance(value, Foreign) else "its input is not int8 or uint8"
        raise UnrecognisedError(reason)
    kind = state.quantized_as(node)
    return Real(value, kind.scale, kind.zero_point)


Rule = Callable[[State, Node], Value]

RULES: Mapping[type, Rule] = {
    Concatenate: recognise_concatenate,
    Contract: recognise_contract,
    Convolution: recognise_convolution,
    DequantizeLinear: _dequantize,
    Expand: recognise_movement,
    Gather: recognise_gather,
    PadTensor: recognise_pad,
    Reduce: recognise_reduce,
    Reshape: recognise_movement,
    Slice: recognise_slice,
    SoftmaxRows: recognise_softmax,
    TransposedConvolution: recognise_transposed,
    Transpose: recognise_movement,
    WindowReduce: recognise_window,
}


def _rule(node: Node) -> Rule | None:
    rule = RULES.get(type(node.operator))
    if rule is None and node.operator.fusion is Fusion.ELEMENTWISE:
        return recognise_elementwise
    return rule


def _unquantized(state: State, name: str) -> str | None:
    """Why integer layers do not give an output; None when they do."""
    value = state.values.get(name)
    if isinstance(value, Integer | Real):
        return None
    if isinstance(value, Foreign):
        return f"output {name!r}: {value.reason}"
    return (
        f"output {name!r} is a float tensor that was not quantised; quantise the model first, its "
        "outputs included"
    )


def _with_outputs(state: State) -> Graph:
    """The new graph with the model's outputs, under their names and in the model's form."""
    builder = state.builder
    made: list[str] = []
    for name in state.source.outputs:
        value = state.values.get(name)
        if isinstance(value, Real):
            stored = to_model_order(builder, value.tensor, name)
            operator = Dequantize(float(value.scale), value.zero_point)
            made.append(builder.node(operator, (stored,), name, name))
        elif isinstance(value, Integer):
            made.append(as_stored(state, value, name))
        else:
            made.append(in_model_form(state, name))
    builder.export(made, state.source.outputs)
    return softmax_in_integers(EliminateDead().run(builder.build(state.source.outputs)))
