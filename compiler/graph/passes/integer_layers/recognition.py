"""Integer layers of a graph: operators that dequantise, compute and quantise, as integer operators.

    QuantizeLinear(Convolution(DequantizeLinear(x), w) + b)  ->  Requantize(Conv2d(x, w, b))
    QuantizeLinear(DequantizeLinear(a) + DequantizeLinear(b))  ->  Add(a, b)
    QuantizeLinear(f(DequantizeLinear(x)))  ->  Lookup(x, table of f)

and pools, means, softmax, joins, and what moves elements.  A node that is part of no integer layer
stays as it is, between them.  Each node is visited once, in order.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from ....dtypes import DType
from ....errors import GraphError, ModelError, UnsupportedOperatorError
from ...folding import is_worth_folding
from ...ir import Graph, Node
from ...operators.contractions import Contract, Convolution
from ...operators.indexing import Gather
from ...operators.integer.conversions import Dequantize, Shift128
from ...operators.movement import Concatenate, Expand, PadTensor, Reshape, Slice, Transpose
from ...operators.protocol import Fusion
from ...operators.quantization import DequantizeLinear, QuantizeLinear
from ...operators.reductions import Reduce
from ...operators.rows import SoftmaxRows
from ...operators.table import INTEGER
from ...operators.transposed import TransposedConvolution
from ...operators.windows import WindowReduce
from ...types import TensorType
from ..eliminate_dead import EliminateDead
from .coarse_norms import find_coarse_norms, quantize_coarse_norm
from .contractions import recognise_contract, recognise_convolution, recognise_transposed
from .elementwise import recognise_elementwise
from .kept import as_stored, in_model_form, keep
from .layouts import to_model_order
from .movement import (
    recognise_concatenate,
    recognise_gather,
    recognise_movement,
    recognise_pad,
    recognise_slice,
)
from .norms import Norm, find_norms, quantize_norm
from .quantize import quantize
from .row_softmax import softmax_in_integers
from .scaled_sums import Rotations, find_scaled_sums, quantize_scaled_sums
from .state import State, UnrecognisedError
from .values import F32, Floating, Foreign, Integer, Real, RealConstant, Value, identity_order
from .windows import recognise_reduce, recognise_softmax, recognise_window

__all__ = ["Recognition", "has_integer_layers", "integer_layers", "is_quantized", "recognise"]

HEAVY = (Convolution, Contract, TransposedConvolution)
ROWS_RANK = 2
"""Dimensions of rows of channels, of which there may be any number; a mask has one."""

BYTES = (DType.INT8, DType.UINT8)


@dataclass(frozen=True, slots=True)
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
    """Whether a node quantises or dequantises."""
    kinds = (QuantizeLinear, DequantizeLinear)
    return any(isinstance(node.operator, kinds) for node in graph.nodes)


def has_integer_layers(graph: Graph) -> bool:
    """Whether ``graph`` has integer operators already."""
    return any(isinstance(node.operator, INTEGER) for node in graph.nodes)


def integer_layers(graph: Graph, kinds: Mapping[str, str] | None = None) -> Recognition:
    """As ``recognise``; a graph whose front end gave it integer operators is kept as it is."""
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
            else (f"{label} has no scales but those that a run computes", "the float model")
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
        state.values[name] = _input(state, name, graph.types[name])
    reasons: dict[int, str | None] = {}
    for number, node in enumerate(graph.nodes):
        try:
            if _fold(state, node):
                continue
            norm = norms.get(node.inputs[0]) if isinstance(node.operator, QuantizeLinear) else None
            if norm is not None:
                state.values[node.output] = _normalise(state, node, norm)
                continue
            if isinstance(node.operator, QuantizeLinear) and node.inputs[0] in coarse:
                norm_inside = coarse[node.inputs[0]]
                state.values[node.output] = quantize_coarse_norm(state, norm_inside, node)
                continue
            if isinstance(node.operator, QuantizeLinear) and node.inputs[0] in rotations.roots:
                state.values[node.output] = _rotate(state, node, rotations)
                continue
            rule = _rule(node)
            if rule is None:
                reasons[number] = None
            else:
                state.values[node.output] = rule(state, node)
                continue
        except (UnrecognisedError, GraphError) as error:
            reasons[number] = str(error).removeprefix(f"node {node.origin!r}: ")
        keep(state, node)
        for name in node.outputs:
            state.values[name] = _entry(state, name, node)
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
        said = reason or f"there is no integer {type(node.operator).__name__}"
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
    kind = (kinds or {}).get(node.origin, type(node.operator).__name__)
    return f"node {node.origin!r} ({kind})"


def _input(state: State, name: str, kind: TensorType) -> Value:
    """An input of the graph, which stays one of the new graph."""
    state.plain[name] = state.builder.input(name, kind)
    if kind.dtype not in (*BYTES, DType.FLOAT32):
        return Foreign(f"input {name!r} is {kind.dtype}; required int8, uint8 or float32")
    if not kind.rank or 0 in kind.shape:
        return Foreign(f"input {name!r} has shape {list(kind.shape)}; required some elements")
    if kind.shape[0] != 1:
        return Foreign(
            f"input {name!r} has batch {kind.shape[0]}; required 1; compile the model for one "
            "image with --batch"
        )
    if kind.dtype == DType.FLOAT32:
        return Floating(name, identity_order(kind.rank))
    return _stored(state, name, name, kind)


def _stored(state: State, name: str, stem: str, kind: TensorType) -> Integer:
    unsigned = kind.dtype == DType.UINT8
    if unsigned:
        name = state.builder.node(Shift128("int8"), (name,), stem, stem)
    return Integer(name, identity_order(kind.rank), unsigned)


def _entry(state: State, name: str, node: Node) -> Value:
    """The result of a node that is part of no integer layer: bytes may be read by one."""
    kind = state.source.types[name]
    single = kind.rank > 0 and (kind.shape[0] == 1 or kind.rank <= ROWS_RANK)
    single = single or _is_stack(state, name) or _is_cache(state, name)
    if kind.dtype in BYTES and kind.elements and single:
        return _stored(state, state.plain[name], name, kind)
    return Foreign(f"it reads the {kind.dtype} result of node {node.origin!r}")


def _is_stack(state: State, name: str) -> bool:
    """Whether single indices of a tensor's first dimension are all that is read of it, as layers of
    a cache of keys are.
    """
    readers = list(state.source.consumers(name))
    found = name not in state.source.outputs and bool(readers)
    for node in readers:
        if isinstance(node.operator, DequantizeLinear):
            found = found and _is_stack(state, node.output)
        else:
            index = state.array(node.inputs[1]) if node.operator == Gather(0) else None
            found = found and index is not None and index.ndim == 0
    return found


def _is_cache(state: State, name: str) -> bool:
    """Whether a tensor is a cache: read only as dequantised rows that others are joined to."""
    readers = [
        each
        for node in state.source.consumers(name)
        for each in state.source.consumers(node.output)
        if isinstance(node.operator, DequantizeLinear)
    ]
    kind = state.source.types[name]
    joins = Concatenate(kind.rank - ROWS_RANK)
    alone = name not in state.source.outputs and len(readers) == len(state.source.consumers(name))
    return (
        alone
        and bool(readers)
        and all(
            node.operator == joins and state.source.types[node.inputs[0]].shape == kind.shape
            for node in readers
        )
    )


def _fold(state: State, node: Node) -> bool:
    """Whether the node's inputs are constants; then its results are."""
    known = [name in state.arrays for name in node.inputs]
    real = [isinstance(state.values.get(name), RealConstant) for name in node.inputs]
    if not all(a or b for a, b in zip(known, real, strict=True)):
        return False
    operator = node.operator
    if isinstance(operator, DequantizeLinear):
        x, scale, zero = (state.arrays[name] for name in node.inputs)
        scales = scale.astype(F32).reshape(-1)
        if not np.all(np.isfinite(scales)) or np.any(scales <= 0):
            raise UnrecognisedError("scales must be finite and above 0")
        zeros = np.broadcast_to(zero.astype(np.int64).reshape(-1), scales.shape)
        state.values[node.output] = RealConstant(x, scales, zeros, operator.axis)
        return True
    if any(real) and isinstance(operator, Transpose | Reshape):
        return False
    given = [state.source.types[name] for name in node.inputs]
    results = [state.source.types[name] for name in node.outputs]
    if not is_worth_folding(operator, results, given):
        raise UnrecognisedError("a large constant")
    arrays = [state.constant(name, "operand") for name in node.inputs]
    state.arrays.update(zip(node.outputs, operator.evaluate(arrays), strict=True))
    return True


def _quantize(state: State, node: Node) -> Value:
    """Bytes of what the nodes before computed."""
    value = state.value(node.inputs[0])
    if isinstance(value, Foreign):
        raise UnrecognisedError(value.reason)
    kind = state.quantized_as(node)
    tensor = quantize(state, value, kind.scale, kind.zero_point, node.output, node.origin)
    return Integer(tensor.name, tensor.permutation, kind.unsigned)


def _dequantize(state: State, node: Node) -> Value:
    """The real tensor of bytes."""
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
    QuantizeLinear: _quantize,
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
