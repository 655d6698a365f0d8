"""Cutting a model in parts: what the accelerator can run, and what the CPU runs before and after.

The cuts lie at quantised tensors through which everything passes: a part before the accelerator
ends, and one after it begins, with one int8 or uint8 tensor.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import onnx
from onnx import TensorProto, helper, shape_inference

from ...errors import CompilerError

__all__ = ["Part", "Placement", "cut_model", "model_inputs"]

TRIES = 24
"""Cuts that are tried, at most: each costs an import."""

HEAVY = ("Conv", "MatMul", "Gemm", "QLinearConv", "QLinearMatMul")
INTEGERS = (TensorProto.INT8, TensorProto.UINT8)


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a node of the model runs, and why."""

    node: str
    operator: str
    where: str
    reason: str


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the model; ``on_accelerator`` or on the CPU."""

    model: onnx.ModelProto
    on_accelerator: bool


@dataclass(frozen=True, slots=True)
class _Cut:
    """Between node ``place - 1`` and node ``place``, of those that compute, only ``tensor`` lives.

    None for the beginning, and for the end, of the model.
    """

    place: int
    tensor: str | None


def cut_model(
    model: onnx.ModelProto,
    supported: frozenset[str],
    try_import: Callable[[onnx.ModelProto], None],
) -> tuple[list[Part], list[Placement]] | None:
    """The parts of ``model`` in the order they run, and where each node runs; None when no part of
    it with a convolution or matrix product is for the accelerator.

    None, too, for a model with an input that nothing reads.
    supported: operators that the accelerator's importer knows.  try_import: raises CompilerError
    for a model that it does not take.
    """
    model = shape_inference.infer_shapes(model)
    nodes = _computing(model)
    used = {name for node in nodes for name in (*node.input, *_outer_names(node))}
    if not used.issuperset(model_inputs(model)):
        return None
    cuts = _cuts(model, nodes)
    reasons: dict[int, str] = {}
    for number, node in enumerate(nodes):
        if node.op_type not in supported:
            reasons[number] = f"the accelerator has no {node.op_type}"
    best: tuple[int, _Cut, _Cut] | None = None
    tries = 0
    for begin, end in _ranges(nodes, cuts, reasons):
        heavy = sum(node.op_type in HEAVY for node in nodes[begin.place : end.place])
        if not heavy or (best and heavy <= best[0]):
            continue
        if tries == TRIES:
            break
        tries += 1
        try:
            try_import(_extract(model, begin, end))
        except CompilerError as error:
            reasons.setdefault(end.place - 1, str(error))
            continue
        best = heavy, begin, end
    if best is None:
        return None
    _, begin, end = best
    bounds = (_Cut(0, None), begin, end, _Cut(len(nodes), None))
    parts = [
        Part(_extract(model, low, high), number == 1)
        for number, (low, high) in enumerate(pairwise(bounds))
        if low.place < high.place
    ]
    return parts, _placements(nodes, begin, end, reasons)


def model_inputs(model: onnx.ModelProto) -> list[str]:
    """Names of the inputs that are no weights."""
    weights = {each.name for each in model.graph.initializer}
    return [value.name for value in model.graph.input if value.name not in weights]


def _name(node: onnx.NodeProto) -> str:
    return str(node.name or (node.output[0] if node.output else node.op_type))


def _computing(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    """The nodes that depend on an input of the model."""
    constant = {each.name for each in model.graph.initializer} | {""}
    nodes = []
    for node in model.graph.node:
        inner = any(attribute.HasField("g") for attribute in node.attribute)
        if all(name in constant for name in node.input) and not inner:
            constant |= set(node.output)
        else:
            nodes.append(node)
    return nodes


def _cuts(model: onnx.ModelProto, nodes: list[onnx.NodeProto]) -> list[_Cut]:
    """Every place where one quantised tensor is all that lives, and both ends of the model."""
    types = {
        value.name: value.type.tensor_type.elem_type
        for value in (*model.graph.value_info, *model.graph.input, *model.graph.output)
    }
    made = {name for node in nodes for name in node.output}
    made |= set(model_inputs(model))
    last: dict[str, int] = {}
    for number, node in enumerate(nodes):
        for name in node.input:
            if name in made:
                last[name] = number
    for value in model.graph.output:
        last[value.name] = len(nodes)
    alive = {value.name for value in model.graph.input if value.name in last}
    cuts = [_Cut(0, None)]
    for number, node in enumerate(nodes):
        alive |= {name for name in node.output if last.get(name, -1) > number}
        alive = {name for name in alive if last[name] > number}
        if len(alive) == 1 and number + 1 < len(nodes):
            (name,) = alive
            if types.get(name) in INTEGERS:
                cuts.append(_Cut(number + 1, name))
    return [*cuts, _Cut(len(nodes), None)]


def _ranges(
    nodes: list[onnx.NodeProto], cuts: list[_Cut], reasons: dict[int, str]
) -> Iterator[tuple[_Cut, _Cut]]:
    """Pairs of cuts without an unsupported node between them, the longest first."""
    pairs = [
        (begin, end)
        for number, begin in enumerate(cuts)
        for end in cuts[number + 1 :]
        if not any(begin.place <= place < end.place for place in reasons)
    ]
    return iter(sorted(pairs, key=lambda pair: pair[0].place - pair[1].place))


def _extract(model: onnx.ModelProto, begin: _Cut, end: _Cut) -> onnx.ModelProto:
    """The model between two cuts."""
    graph = model.graph
    known = {value.name: value for value in (*graph.value_info, *graph.input, *graph.output)}
    inputs = [known[begin.tensor]] if begin.tensor else list(graph.input)
    outputs = [known[end.tensor]] if end.tensor else list(graph.output)
    makers = {name: node for node in graph.node for name in node.output}
    needed: set[int] = set()
    constants: set[str] = set()
    stored = {each.name for each in graph.initializer}
    pending = [value.name for value in outputs]
    stop = {value.name for value in inputs} - stored
    while pending:
        name = pending.pop()
        if name in stop or not name:
            continue
        if name in stored:
            constants.add(name)
            continue
        node = makers[name]
        if id(node) not in needed:
            needed.add(id(node))
            pending += [*node.input, *_outer_names(node)]
    nodes = [node for node in graph.node if id(node) in needed]
    used = {name for node in nodes for name in (*node.input, *_outer_names(node))}
    part = helper.make_graph(
        nodes,
        graph.name,
        [value for value in inputs if value.name in used],
        outputs,
        [each for each in graph.initializer if each.name in constants],
        value_info=[value for value in graph.value_info if value.name in used],
    )
    found = helper.make_model(part, opset_imports=model.opset_import)
    found.ir_version = model.ir_version
    found.functions.extend(model.functions)
    return found


def _outer_names(node: onnx.NodeProto) -> list[str]:
    """Tensors that the bodies of a node read."""
    names = []
    for attribute in node.attribute:
        for body in (attribute.g, *attribute.graphs):
            own = {name for inner in body.node for name in inner.output}
            own |= {value.name for value in body.input} | {each.name for each in body.initializer}
            for inner in body.node:
                names += [n for n in (*inner.input, *_outer_names(inner)) if n and n not in own]
    return names


def _placements(
    nodes: list[onnx.NodeProto], begin: _Cut, end: _Cut, reasons: dict[int, str]
) -> list[Placement]:
    placed = []
    for number, node in enumerate(nodes):
        if begin.place <= number < end.place:
            where, reason = "accelerator", "it is quantised, and the accelerator has it"
        elif number in reasons:
            where, reason = "cpu", reasons[number]
        else:
            side = "before" if number < begin.place else "after"
            where, reason = "cpu", f"it comes {side} what only the CPU has"
        placed.append(Placement(_name(node), node.op_type, where, reason))
    return placed
