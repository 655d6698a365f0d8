"""Nodes of a float model that become integer operators, and tensors that are quantised alike.

A tensor is quantised when a node that becomes an integer operator reads or writes it.  Tensors that
a node only moves, pools or joins have one scale: they form a group.
"""

from collections.abc import Container, Mapping, Set
from enum import Enum, auto

from dovetail.isa.frozen import frozen

from ..node import OnnxNode
from .functions import PAIRS, functions_of_one, is_elementwise, operands
from .masks import Scores, find_scores
from .model import FloatModel
from .norms import Norm, find_norms

__all__ = ["CONTRACTIONS", "JOINED", "Plan", "Role", "activations", "plan"]

Shapes = dict[str, tuple[int, ...]]


class Role(Enum):
    """Kind of integer operator that a node becomes."""

    CONTRACTION = auto()
    """Products summed in int32 and requantised."""
    PRODUCT = auto()
    """Products of two tensors' rows and columns, summed in int32 and requantised."""
    PAIR = auto()
    """Two tensors, element by element: a residual sum, a gate."""
    AVERAGE = auto()
    """Weighted sums of elements, with weights that add up to 1 or are 1."""
    FUNCTION = auto()
    """A function of each element."""
    SOFTMAX = auto()
    """Softmax over one dimension."""
    NORM = auto()
    """Normalisation of rows, or one of the nodes that together are one."""
    PASS = auto()
    """Moves, chooses or joins elements; inputs and outputs have one scale."""


MATRIX_RANK = 2
CONTRACTIONS = ("Conv", "ConvTranspose", "Gemm", "MatMul")
AVERAGES = ("AveragePool", "GlobalAveragePool", "ReduceMean", "ReduceSum")
CLIPS = ("Relu", "Clip")
BY_CONSTANTS = ("Add", "Max", "Min", "Mul", "Sub")
"""Pairs in which one may be a constant tensor."""
JOINED = ("Concat",)
PASSES = (
    *JOINED,
    *("DepthToSpace", "Expand", "Flatten", "Gather", "GlobalMaxPool", "MaxPool", "Pad"),
    *("ReduceMax", "ReduceMin", "Reshape", "Resize", "Slice", "SpaceToDepth", "Split"),
    *("Squeeze", "Tile", "Transpose", "Unsqueeze"),
)
"""The first input is the activation, except for those in ``JOINED``."""


@frozen
class Plan:
    """roles: by a node's first output.  kept: nodes that stay float, and why.

    clips: Relu or Clip, by the output of the contraction or sum before it: one operator with it.
    group: the name that stands for the group of each quantised tensor, constants among them.
    scores: those whose ranges leave out what a Softmax does not show.
    """

    roles: dict[str, Role]
    kept: tuple[tuple[OnnxNode, str], ...]
    clips: dict[str, OnnxNode]
    group: dict[str, str]
    scores: Scores

    def calibrated(self, model: FloatModel) -> tuple[str, ...]:
        """The quantised tensors whose values decide ranges: those that are not passed on only."""
        passed = {
            name
            for node in model.nodes
            if self.roles.get(node.outputs[0]) is Role.PASS
            for name in node.outputs
        }
        return tuple(name for name in self.group if name not in passed)


def plan(
    model: FloatModel, shapes: Shapes, floats: Set[str], keep: Mapping[str, str] | None = None
) -> Plan:
    """Decide for every node.

    shapes: of every tensor.  floats: those of float32.  keep: first outputs of nodes that are to
    stay float, and why.
    """
    keep = keep or {}
    roles: dict[str, Role] = {}
    reasons: dict[str, str] = {}
    scores = find_scores(model, shapes)
    norms = {each.outputs[0]: norm for norm in find_norms(model, shapes) for each in norm.nodes}
    for node in model.nodes:
        norm = norms.get(node.outputs[0])
        role, reason = (Role.NORM, "") if norm else _role(model, shapes, node)
        if role is not None and not {*node.inputs[:1], node.outputs[0]} <= floats:
            role, reason = None, "it computes with other elements than float32"
        chosen = [keep[name] for name in _together(node, norm) if name in keep]
        if role is not None and chosen:
            role, reason = None, chosen[0]
        if role in (Role.FUNCTION, Role.PAIR):
            before = _float_operand(model, node, scores.masks, roles, reasons)
            if before is not None:
                role, reason = None, f"it reads the result of {before}, which stays float"
        if role is None:
            reasons[node.outputs[0]] = reason
        else:
            roles[node.outputs[0]] = role
    clips = _clips(model, roles)
    internal = _functions(model, roles, clips)
    roles.update({clip.outputs[0]: roles[name] for name, clip in clips.items()})
    for node in _idle_passes(model, roles):
        del roles[node.outputs[0]]
        reasons[node.outputs[0]] = "neither its input nor its output is quantised"
    kept = tuple((n, reasons[n.outputs[0]]) for n in model.nodes if n.outputs[0] in reasons)
    between = {name for norm in norms.values() for name in norm.between}
    group = _groups(model, roles, internal | between | frozenset(clips))
    return Plan(roles, kept, clips, group, scores)


def _float_operand(
    model: FloatModel,
    node: OnnxNode,
    masks: Container[str],
    roles: Mapping[str, Role],
    reasons: Mapping[str, str],
) -> OnnxNode | None:
    """A node that stays float and gives an element-wise one its operand; None if there is none.

    Movements and joins of floats are seen through only where nothing else is read: bytes that are
    read too are worth bytes of the floats.
    """
    given = [name for name in operands(model, node) if name not in masks]
    for before in map(model.producers.get, given):
        if before is not None and before.outputs[0] in reasons:
            return before
    computed = [name for name in given if name not in model.constants]
    found = [_float_maker(model, name, roles, reasons) for name in computed]
    return found[0] if found and None not in found else None


def _float_maker(
    model: FloatModel, name: str, roles: Mapping[str, Role], reasons: Mapping[str, str]
) -> OnnxNode | None:
    """The node that stays float and makes ``name``, perhaps moved or joined with others that stay
    float too; None if there is none.
    """
    before = model.producers.get(name)
    if before is None or before.outputs[0] in reasons:
        return before
    if roles.get(before.outputs[0]) is not Role.PASS:
        return None
    found = [_float_maker(model, each, roles, reasons) for each in activations(model, before)]
    return found[0] if None not in found and found else None


def activations(model: FloatModel, node: OnnxNode) -> tuple[str, ...]:
    """The tensors that ``node`` computes with, constants that stand for one among them."""
    if node.kind in JOINED or _is_table(model, node):
        return tuple(dict.fromkeys(node.inputs[: None if node.kind in JOINED else 1]))
    if node.kind in BY_CONSTANTS and len(node.inputs) == 2:
        return operands(model, node)
    count = len(node.inputs) if node.kind in (*PAIRS, "MatMul") else 1
    return tuple(name for name in node.inputs[:count] if name not in model.constants)


def _is_table(model: FloatModel, node: OnnxNode) -> bool:
    """True if the node picks rows of a constant table, as an embedding does."""
    return (
        node.kind == "Gather"
        and node.inputs[0] in model.constants
        and node.inputs[1] not in model.constants
    )


def _together(node: OnnxNode, norm: Norm | None) -> tuple[str, ...]:
    """First outputs of the nodes that are quantised with ``node`` or not at all."""
    return tuple(each.outputs[0] for each in norm.nodes) if norm else node.outputs[:1]


def _role(model: FloatModel, shapes: Shapes, node: OnnxNode) -> tuple[Role | None, str]:
    """The role, or None and the reason."""
    constant = [name in model.constants for name in node.inputs if name]
    rank = len(shapes.get(node.inputs[0], ())) if node.inputs else 0
    if is_elementwise(node):
        given = [name for name in operands(model, node) if name in model.constants]
        most = int(node.kind in BY_CONSTANTS)
        if len(given) > most or (node.kind == "Clip" and not all(constant[1:])):
            return None, "required two tensors, or one and numbers"
        return (Role.FUNCTION if len(operands(model, node)) == 1 else Role.PAIR), ""
    if _is_table(model, node):
        return Role.PASS, ""
    if node.kind in JOINED and not all(constant):
        return Role.PASS, ""
    if node.kind == "Loop":
        return None, "loops stay float"
    if not node.inputs or constant[0]:
        return None, "its first input is a constant"
    if node.kind in PASSES and node.kind not in JOINED and not all(constant[1:]):
        return None, "its parameters are computed; required constants"
    match node.kind:
        case "Conv" | "ConvTranspose" if not all(constant[1:]):
            return None, "its weights are computed; required constants"
        case "Conv" | "ConvTranspose" if rank != 4:
            return None, f"{rank - 2} spatial dimensions; required 2"
        case "ConvTranspose" if node.integer("group", 1) != 1:
            return None, f"{node.integer('group', 1)} groups; required 1"
        case "Gemm" if not all(constant[1:]) or node.integer("transA", 0):
            return None, "its matrix is computed or its input transposed"
        case "MatMul" if not constant[1]:
            left, right = (shapes.get(name, ()) for name in node.inputs)
            if min(len(left), len(right)) < MATRIX_RANK or not _shares(left, right):
                return None, "required as many matrices on both sides, or fewer that are shared"
            return Role.PRODUCT, ""
        case "MatMul" if len(shapes[node.inputs[1]]) != MATRIX_RANK:
            return None, "its right side is several constant matrices"
        case "Pad" if node.has(2) and model.constants[node.inputs[2]].any():
            return None, "required a border of zeros"
        case "MaxPool" if len(node.outputs) > 1:
            return None, "required no indices"
        case "ReduceMean" if not _is_mean(model, node, rank):
            return None, "required a mean over one or two dimensions of an image, or one of rows"
        case "ReduceSum" if not all(constant[1:]):
            return None, "its axes are computed; required constants"
        case "Resize" if node.text("mode", "nearest") != "nearest":
            return Role.AVERAGE, ""
        case "Softmax":
            return Role.SOFTMAX, ""
        case kind if kind in CONTRACTIONS:
            return Role.CONTRACTION, ""
        case kind if kind in AVERAGES:
            return Role.AVERAGE, ""
        case kind if kind in PASSES:
            return Role.PASS, ""
    return None, "there is no integer operator for it"


def _shares(left: tuple[int, ...], right: tuple[int, ...]) -> bool:
    """True if the matrices of the left side are not repeated for those of the right one."""
    more = len(left) - len(right)
    found = ((1,) * more + right)[:-2]
    return more >= 0 and all(own in (1, of) for own, of in zip(found, left[:-2], strict=True))


def _axes(model: FloatModel, node: OnnxNode) -> tuple[int, ...]:
    if node.has(1):
        found = model.constants.get(node.inputs[1])
        return () if found is None else tuple(int(axis) for axis in found.reshape(-1))
    return node.integers("axes", ())


def _is_mean(model: FloatModel, node: OnnxNode, rank: int) -> bool:
    """True if it is over one or two dimensions of an image, or over one of rows, [N, T, C] or
    [N, C, T].
    """
    places = {axis % rank for axis in _axes(model, node)} if rank else set()
    if rank == MATRIX_RANK + 1:
        return places in ({1}, {2}) and not node.integer("keepdims", 1)
    single = places in ({1}, {2}, {3}) and bool(node.integer("keepdims", 1))
    both = len(places) == 2 and 0 not in places
    return rank == MATRIX_RANK + 2 and (single or both)


def _clips(model: FloatModel, roles: dict[str, Role]) -> dict[str, OnnxNode]:
    found = {}
    for node in model.nodes:
        out = node.outputs[0]
        reader = model.only_reader(out)
        summed = roles.get(out) is Role.CONTRACTION or (
            roles.get(out) is Role.PAIR and node.kind in ("Add", "Mul")
        )
        if summed and reader is not None and reader.kind in CLIPS and reader.outputs[0] in roles:
            found[out] = reader
    return found


def _functions(
    model: FloatModel, roles: dict[str, Role], clips: dict[str, OnnxNode]
) -> frozenset[str]:
    """Give nodes that are together a function of one tensor that role; the tensors between them."""
    ends = {clip.outputs[0] for clip in clips.values()}
    chosen = {
        node.outputs[0]
        for node in model.nodes
        if node.outputs[0] in roles.keys() - ends and is_elementwise(node)
    }
    results, internal = functions_of_one(model, chosen, ends)
    roles.update(dict.fromkeys(results, Role.FUNCTION))
    return internal


def _idle_passes(model: FloatModel, roles: dict[str, Role]) -> list[OnnxNode]:
    """Nodes that only move elements, and have no quantised neighbour."""
    passes = [n for n in model.nodes if roles.get(n.outputs[0]) is Role.PASS]
    busy: set[str] = set()
    while True:
        before = len(busy)
        for node in passes:
            read = (model.producers.get(name) for name in activations(model, node))
            neighbours = [
                *(producer.outputs[0] for producer in read if producer is not None),
                *(r.outputs[0] for name in node.outputs for r in model.readers.get(name, ())),
            ]
            if any(n in busy or roles.get(n) not in (None, Role.PASS) for n in neighbours):
                busy.add(node.outputs[0])
        if len(busy) == before:
            return [node for node in passes if node.outputs[0] not in busy]


def _groups(
    model: FloatModel, roles: dict[str, Role], unquantised: frozenset[str]
) -> dict[str, str]:
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        parent.setdefault(name, name)
        while parent[name] != name:
            name = parent[name]
        return name

    for node in model.nodes:
        role = roles.get(node.outputs[0])
        if role is None:
            continue
        read = activations(model, node)
        if role is Role.NORM:
            read = tuple(name for name in read if name not in model.constants)
        touched = [*read, *filter(None, node.outputs)]
        names = [root(name) for name in touched if name not in unquantised]
        if role is Role.PASS:
            for name in names[1:]:
                parent[root(name)] = root(names[0])
    return {name: root(name) for name in parent}
