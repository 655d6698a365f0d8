"""Which nodes of a float model become integer operators, and which tensors are quantised alike.

A tensor is quantised when a node that becomes an integer operator reads or writes it.  Tensors that
a node only moves, pools or joins have one scale: they form a group.
"""

from dataclasses import dataclass
from enum import Enum, auto

import numpy as np

from ..node import OnnxNode
from .model import FloatModel

__all__ = ["Plan", "Role", "plan"]

Shapes = dict[str, tuple[int, ...]]


class Role(Enum):
    """What kind of integer operator a node becomes."""

    CONTRACTION = auto()
    """Products summed in int32 and requantised."""
    SUM = auto()
    """Residual sum of two tensors."""
    PRODUCT = auto()
    """Product of two tensors, one perhaps repeated to the shape of the other."""
    AVERAGE = auto()
    """Average over windows."""
    FUNCTION = auto()
    """A function of each element."""
    SOFTMAX = auto()
    """Softmax over the last dimension."""
    PASS = auto()
    """Moves, chooses or joins elements; input and output have one scale."""


CONTRACTIONS = ("Conv", "Gemm", "MatMul")
AVERAGES = ("AveragePool", "GlobalAveragePool", "ReduceMean")
FUNCTIONS = ("Abs", "Elu", "HardSigmoid", "HardSwish", "LeakyRelu", "Neg", "Sigmoid", "Tanh")
CLIPS = ("Relu", "Clip")
PASSES = (
    "Concat",
    "Flatten",
    "MaxPool",
    "Pad",
    "Reshape",
    "Resize",
    "Slice",
    "Squeeze",
    "Transpose",
    "Unsqueeze",
)
JOINED = ("Concat",)
"""The ones among ``PASSES`` that have more than one activation."""


@dataclass(frozen=True, slots=True)
class Plan:
    """roles: by a node's first output.  kept: nodes that stay float, and why.

    clips: Relu or Clip, by the output of the contraction or sum before it: one operator with it.
    internal: tensors between two nodes of one function, which are not quantised.
    group: the name that stands for the group of each quantised tensor.
    """

    roles: dict[str, Role]
    kept: tuple[tuple[OnnxNode, str], ...]
    clips: dict[str, OnnxNode]
    internal: frozenset[str]
    group: dict[str, str]

    def calibrated(self, model: FloatModel) -> tuple[str, ...]:
        """The quantised tensors whose values decide ranges: those that are not passed on only."""
        return tuple(
            name
            for name in self.group
            if name not in model.producers or self.roles.get(name) is not Role.PASS
        )


def plan(model: FloatModel, shapes: Shapes) -> Plan:
    """Decide for every node; ``shapes``: of every tensor."""
    roles: dict[str, Role] = {}
    reasons: dict[str, str] = {}
    for node in model.nodes:
        role, reason = _role(model, shapes, node)
        if role is None:
            reasons[node.outputs[0]] = reason
        else:
            roles[node.outputs[0]] = role
    clips = _clips(model, roles)
    roles.update({clip.outputs[0]: roles[name] for name, clip in clips.items()})
    internal = _products(model, roles, reasons)
    for node in _idle_passes(model, roles):
        del roles[node.outputs[0]]
        reasons[node.outputs[0]] = "neither its input nor its output is quantised"
    kept = tuple((n, reasons[n.outputs[0]]) for n in model.nodes if n.outputs[0] in reasons)
    group = _groups(model, roles, internal | frozenset(clips))
    return Plan(roles, kept, clips, internal, group)


def activations(model: FloatModel, node: OnnxNode) -> tuple[str, ...]:
    """The tensors that ``node`` computes with."""
    count = len(node.inputs) if node.kind in (*JOINED, "Add", "Mul") else 1
    return tuple(name for name in node.inputs[:count] if name not in model.constants)


def _role(model: FloatModel, shapes: Shapes, node: OnnxNode) -> tuple[Role | None, str]:
    """The role, or None and the reason."""
    constant = [name in model.constants for name in node.inputs if name]
    rank = len(shapes.get(node.inputs[0], ())) if node.inputs else 0
    if not node.inputs or constant[0]:
        return None, "its first input is a constant"
    match node.kind:
        case "Conv" if not all(constant[1:]):
            return None, "its weights are computed; required constants"
        case "Conv" if rank != 4:
            return None, f"{rank - 2} spatial dimensions; required 2"
        case "Gemm" if not all(constant[1:]) or node.integer("transA", 0):
            return None, "its matrix is computed or its input transposed"
        case "MatMul" if not constant[1] or len(shapes[node.inputs[1]]) != 2:
            return None, "its right side is not a constant matrix"
        case "Add" if any(constant) or shapes[node.inputs[0]] != shapes[node.inputs[1]]:
            return None, "required two tensors of equal shape"
        case "Mul" if any(constant) or not _repeats(*(shapes[name] for name in node.inputs)):
            return None, "required two tensors, one of which is repeated to the other's shape"
        case "Clip" | "Pad" | "Reshape" | "Resize" | "Slice" | "Squeeze" | "Unsqueeze" if not all(
            constant[1:]
        ):
            return None, "its parameters are computed; required constants"
        case "Pad" if node.text("mode", "constant") != "constant" or (
            node.has(2) and model.constants[node.inputs[2]].any()
        ):
            return None, "required a border of zeros"
        case "Resize" if node.text("mode", "nearest") != "nearest":
            return None, f"mode {node.text('mode', '')}; required nearest"
        case "MaxPool" if len(node.outputs) > 1 or rank != 4:
            return None, "required an image, and no indices"
        case "AveragePool" | "GlobalAveragePool" | "ReduceMean" if rank != 4 or not all(
            constant[1:]
        ):
            return None, "required an image"
        case "ReduceMean" if not _is_spatial(_axes(model, node), rank):
            return None, "required the mean over height and width"
        case "Softmax" if node.integer("axis", -1) % rank != rank - 1:
            return None, "required the last dimension"
        case "Softmax":
            return Role.SOFTMAX, ""
        case "Add":
            return Role.SUM, ""
        case "Mul":
            return Role.PRODUCT, ""
        case kind if kind in CONTRACTIONS:
            return Role.CONTRACTION, ""
        case kind if kind in AVERAGES:
            return Role.AVERAGE, ""
        case kind if kind in FUNCTIONS or kind in CLIPS:
            return Role.FUNCTION, ""
        case kind if kind in PASSES:
            return Role.PASS, ""
    return None, "there is no integer operator for it"


def _repeats(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    return len(a) == len(b) and np.broadcast_shapes(a, b) in (a, b)


def _axes(model: FloatModel, node: OnnxNode) -> tuple[int, ...]:
    if node.has(1):
        return tuple(int(axis) for axis in model.constants[node.inputs[1]].reshape(-1))
    return node.integers("axes", ())


def _is_spatial(axes: tuple[int, ...], rank: int) -> bool:
    places = {axis % rank for axis in axes}
    return len(places) == 2 and 0 not in places


def _clips(model: FloatModel, roles: dict[str, Role]) -> dict[str, OnnxNode]:
    found = {}
    for node in model.nodes:
        out = node.outputs[0]
        reader = model.only_reader(out)
        summed = roles.get(out) in (Role.CONTRACTION, Role.SUM, Role.PRODUCT)
        if summed and reader is not None and reader.kind in CLIPS and reader.outputs[0] in roles:
            found[out] = reader
    return found


def _products(model: FloatModel, roles: dict[str, Role], reasons: dict[str, str]) -> frozenset[str]:
    """Mul of x and a function of x, as in x * sigmoid(x), becomes one function.

    Gives the tensors between the two.
    """
    internal = set()
    for node in model.nodes:
        if node.kind != "Mul" or len(activations(model, node)) != 2:
            continue
        for x, value in (node.inputs, tuple(reversed(node.inputs))):
            producer = model.producers.get(value)
            if producer is None or producer.kind not in FUNCTIONS:
                continue
            if producer.inputs[0] == x and model.only_reader(value):
                internal.add(value)
                roles[node.outputs[0]] = Role.FUNCTION
                reasons.pop(node.outputs[0], None)
                break
    return frozenset(internal)


def _idle_passes(model: FloatModel, roles: dict[str, Role]) -> list[OnnxNode]:
    """Nodes that only move elements, no neighbour of which is quantised."""
    passes = [n for n in model.nodes if roles.get(n.outputs[0]) is Role.PASS]
    busy: set[str] = set()
    while True:
        before = len(busy)
        for node in passes:
            neighbours = [
                *(name for name in activations(model, node) if name in model.producers),
                *(each.outputs[0] for each in model.readers.get(node.outputs[0], ())),
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
        touched = [*activations(model, node), node.outputs[0]]
        names = [root(name) for name in touched if name not in unquantised]
        if role is Role.PASS:
            for name in names[1:]:
                parent[root(name)] = root(names[0])
    return {name: root(name) for name in parent}
