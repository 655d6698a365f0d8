"""Conversion of each operator to tensors of several tokens."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper

from ....errors import ModelError
from .places import FRONT, ROWS, Emitter, Place, Spread
from .slots import Slots

__all__ = ["Rules"]

Shape = tuple[int, ...]
Array = NDArray[np.generic]

LOGIC = frozenset(
    ["And", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Not", "Or", "Where"]
)
FUNCTIONS = frozenset(
    ["Abs", "Cast", "Clip", "Cos", "Erf", "Exp", "Gelu", "Identity", "Log", "Neg", "Reciprocal"]
)
CURVES = frozenset(["Relu", "Sigmoid", "Sin", "Sqrt", "Tanh"])
QUANTISATION = frozenset(["QuantizeLinear", "DequantizeLinear"])
ELEMENTWISE = (
    LOGIC | FUNCTIONS | CURVES | QUANTISATION | {"Add", "Div", "Max", "Min", "Mul", "Pow", "Sub"}
)
NORMALISATIONS = frozenset(["LayerNormalization", "RMSNormalization", "Softmax", "LogSoftmax"])
REDUCTIONS = frozenset(["ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum", "ReduceSumSquare"])


@dataclass(slots=True)
class Rules:
    """Nodes of all tokens for nodes of one.

    shapes: of the model's tensors, for one token.  constants: by name.
    spread: tensors that differ from token to token, by their names in the model; all others are
    what they were.  cached: of those the ones that hold a cache, and their axes of positions.
    joined: of those the ones that are a cache and the tokens' rows, and these rows.
    """

    emitter: Emitter
    slots: Slots
    shapes: Mapping[str, Shape]
    constants: Mapping[str, Array]
    spread: dict[str, Spread] = field(default_factory=dict)
    cached: dict[str, int] = field(default_factory=dict)
    joined: dict[str, Spread] = field(default_factory=dict)

    def given(self, name: str, shape: Shape) -> None:
        """An input of one element becomes one of all tokens."""
        self.spread[name] = Spread(name, Place("inside", 0), shape)

    def add(self, node: onnx.NodeProto) -> None:
        """Raises ModelError for an operator, or a form of one, that there is no rule for."""
        if not any(name in self.spread for name in node.input):
            self.emitter.nodes.append(node)
            self._follow(node)
            return
        kind = node.op_type
        try:
            if any(x not in self.shapes for x in node.output if x) or _has_graphs(node):
                raise ModelError("no rule for it")
            if kind in ELEMENTWISE:
                self._elementwise(node)
            elif kind in NORMALISATIONS:
                self._normalise(node)
            elif kind in REDUCTIONS:
                self._reduce(node)
            elif kind in RULES:
                RULES[kind](self, node)
            else:
                self._one_by_one(node)
        except ModelError as error:
            raise ModelError(f"node {node.name!r} ({kind}) in blocks of tokens: {error}") from None

    def _follow(self, node: onnx.NodeProto) -> None:
        """Say which results of a node that all tokens share are caches, or have rows of tokens."""
        rows = self.joined.get(node.input[0]) if node.input else None
        if rows is not None and node.op_type in QUANTISATION:
            self._quantise_rows(node, rows)
        elif rows is not None and self._is_whole(node):
            self.joined[node.output[0]] = rows
        found = [name for name in node.input if name in self.cached]
        if not found:
            return
        axis = self.cached[found[0]]
        size = self.shapes[found[0]][axis]
        out = self.shapes.get(node.output[0], ())
        if node.op_type == "Gather" and axis > 0 and len(found) == 1:
            axis += len(out) - len(self.shapes[found[0]])
        elif node.op_type == "Transpose":
            axis = list(_attribute(node, "perm", range(len(out))[::-1])).index(axis)
        elif not self._is_whole(node) and node.op_type not in (*QUANTISATION, "Concat"):
            raise ModelError(f"node {node.name!r} ({node.op_type}) of a cache: no rule for it")
        if node.op_type == "Concat" or not (axis < len(out) and out[axis] == size):
            raise ModelError(f"node {node.name!r} ({node.op_type}) of a cache: no rule for it")
        self.cached[node.output[0]] = axis

    def _is_whole(self, node: onnx.NodeProto) -> bool:
        """True if a node's result is its operand, as where a window holds all positions."""
        if node.op_type == "Slice":
            return self.shapes.get(node.output[0]) == self.shapes.get(node.input[0])
        return node.op_type == "Identity"

    def _quantise_rows(self, node: onnx.NodeProto, rows: Spread) -> None:
        """Do to the tokens' rows alone what a node does to them and the cache."""
        if any(prod(self.shapes[scale]) != 1 for scale in node.input[1:2]):
            return
        attributes = {each.name: helper.get_attribute_value(each) for each in node.attribute}
        names = (rows.name, *node.input[1:])
        name = self.emitter.node(node.op_type, names, f"{node.output[0]}_rows", **attributes)
        if node.op_type == "DequantizeLinear":
            self.emitter.scales[name] = tuple(node.input[1:])
        self.joined[node.output[0]] = Spread(name, rows.place, rows.shape)

    def emit(
        self, node: onnx.NodeProto, inputs: Sequence[str], place: Place, **changed: object
    ) -> None:
        """The node with other inputs and attributes; all results have their tokens at ``place``."""
        made = onnx.NodeProto()
        made.CopyFrom(node)
        kept = [each for each in node.attribute if each.name not in changed]
        attributes = [helper.make_attribute(key, value) for key, value in changed.items()]
        del made.input[:], made.output[:], made.attribute[:]
        made.input.extend(inputs)
        made.output.extend(node.output)
        made.attribute.extend([*kept, *attributes])
        self.emitter.nodes.append(made)
        if node.op_type == "DequantizeLinear":
            self.emitter.scales[node.output[0]] = tuple(inputs[1:])
        for name in node.output:
            self.spread[name] = Spread(name, place, self.shapes[name])

    def of(self, name: str) -> Spread:
        """The tensor ``name`` of all tokens, or, of a cache and their rows, these.

        Raises ModelError where all tokens share it.
        """
        found = self.spread.get(name) or self.joined.get(name)
        if found is None:
            raise ModelError(f"output {name!r} does not depend on the token")
        return found

    def one(self, node: onnx.NodeProto) -> Spread:
        """The first input, where it alone differs from token to token.  Raises ModelError."""
        if any(name in self.spread for name in node.input[1:]):
            raise ModelError("an operand that differs from token to token")
        return self.spread[node.input[0]]

    def _one_by_one(self, node: onnx.NodeProto) -> None:
        """A node for each token, where there is no rule for all tokens at once."""
        emitter, parts = self.emitter, {name: list[str]() for name in node.output if name}
        spread = {x: emitter.front(self.spread[x]) for x in node.input if x in self.spread}
        for token in range(emitter.tokens):
            number = emitter.constant(np.array(token), "tokens_number")
            picked = {
                x: emitter.node("Gather", (each.name, number), f"{x}_token", axis=0)
                for x, each in spread.items()
            }
            made = onnx.NodeProto()
            made.CopyFrom(node)
            made.input[:] = [picked.get(x, x) for x in node.input]
            made.output[:] = [emitter.name(f"{x}_token") if x else x for x in node.output]
            made.name = emitter.name(f"{node.name}_token")
            emitter.nodes.append(made)
            for name, own in zip(node.output, made.output, strict=True):
                if name:
                    row = emitter.reshape(own, (1, *self.shapes[name]))
                    parts[name].append(row)
        for name, rows in parts.items():
            emitter.nodes.append(helper.make_node("Concat", rows, [name], name, axis=0))
            self.spread[name] = Spread(name, FRONT, self.shapes[name])

    def _elementwise(self, node: onnx.NodeProto) -> None:
        shape = self.shapes[node.output[0]]
        spread = {name: self.spread[name] for name in node.input if name in self.spread}
        places = {each.place for each in spread.values()}
        if node.op_type in QUANTISATION and prod(self.shapes[node.input[1]]) != 1:
            raise ModelError("a scale for each channel of an activation")
        same = all(each.shape == shape for each in spread.values())
        others = [self.shapes[x] for x in node.input if x and x not in self.spread]
        plain = all(prod(each) == 1 or (each and prod(each) == each[-1]) for each in others)
        if ROWS in places:
            if not plain or any(each[-1:] == (self.slots.size + 1,) for each in others):
                raise ModelError("an operand with rows of its own")
            change: Callable[[Spread], Spread] = self._as_rows(shape)
            place = ROWS
        elif same and len(places) == 1 and plain and FRONT not in places:
            (place,) = places
            change = _keep
        elif shape and shape[0] == 1:
            place = Place("inside", 0)
            change = lambda each: self.emitter.inside(each, 0, len(shape))  # noqa: E731
        else:
            place = FRONT
            change = lambda each: self.emitter.front(each, len(shape))  # noqa: E731
        names = [change(spread[x]).name if x in spread else x for x in node.input]
        self.emit(node, names, place)

    def _as_rows(self, shape: Shape) -> Callable[[Spread], Spread]:
        """Rows of all tokens, also of a mask of places."""

        def change(each: Spread) -> Spread:
            if each.place == ROWS:
                return each
            if each.shape == shape:
                return self.emitter.rows(each)
            if prod(each.shape) != shape[-1] or shape[-1] != self.slots.size + 1:
                raise ModelError("an operand that is not a mask of positions")
            return self.slots.mask(self.emitter, each, shape)

        return change

    def _last_axis(self, node: onnx.NodeProto, default: int) -> Spread:
        """The operand of a node that works within the last axis.  Raises ModelError."""
        found = self.one(node)
        rank = len(found.shape)
        if _attribute(node, "axis", default) not in (-1, rank - 1):
            raise ModelError("an axis that is not the last")
        if found.place == Place("inside", rank - 1):
            return self.emitter.front(found)
        return found

    def _normalise(self, node: onnx.NodeProto) -> None:
        found = self._last_axis(node, -1)
        self.emit(node, [found.name, *node.input[1:]], found.place, axis=-1)

    def _reduce(self, node: onnx.NodeProto) -> None:
        found, rank = self.one(node), len(self.shapes[node.input[0]])
        axes = _attribute(node, "axes", None)
        if axes is None and len(node.input) > 1:
            axes = self.constants.get(node.input[1])
        if axes is None or not _attribute(node, "keepdims", 1):
            raise ModelError("axes that are not given, or left out")
        counted = [int(each) % rank for each in axes]
        if found.place.kind == "rows" or found.place.axis in counted:
            found = self.emitter.front(found)
        if found.place == FRONT:
            counted = [each - rank for each in counted]
        self._with_numbers(node, found, "axes", counted)

    def _with_numbers(
        self, node: onnx.NodeProto, found: Spread, name: str, numbers: Sequence[int]
    ) -> None:
        """The node with other numbers in its attribute, or in its second input."""
        if len(node.input) > 1 and node.input[1]:
            constant = self.emitter.constant(np.array(numbers, np.int64), f"tokens_{name}")
            self.emit(node, [found.name, constant, *node.input[2:]], found.place)
        else:
            self.emit(node, [found.name], found.place, **{name: list(numbers)})

    def _product(self, node: onnx.NodeProto) -> None:
        found = self.one(node)
        rank = len(self.shapes[node.input[1]])
        if rank > 2:
            found = self.emitter.rows(found)
        elif found.place.kind == "rows" or found.place.axis == len(found.shape) - 1:
            found = self.emitter.front(found)
        self.emit(node, [found.name, *node.input[1:]], found.place)

    def _dense(self, node: onnx.NodeProto) -> None:
        found = self.one(node)
        if found.place != Place("inside", 0) or _attribute(node, "transA", 0):
            raise ModelError("rows that are not those of tokens")
        self.emit(node, [found.name, *node.input[1:]], found.place)

    def _gather(self, node: onnx.NodeProto) -> None:
        table, index = node.input
        axis = _attribute(node, "axis", 0)
        if table in self.spread:
            rank = len(self.shapes[table])
            found = self.emitter.front(self.one(node))
            self.emit(node, [found.name, index], FRONT, axis=axis % rank - rank)
            return
        found = self.spread[index]
        if axis or not found.shape or found.place != Place("inside", 0):
            raise ModelError("indices of another axis than the first")
        self.emit(node, [table, found.name], found.place)

    def _concat(self, node: onnx.NodeProto) -> None:
        shape = self.shapes[node.output[0]]
        axis = _attribute(node, "axis", 0) % len(shape)
        caches = [name for name in node.input if name in self.cached]
        if caches:
            self._join(node, axis)
            return
        found = [self.spread.get(name) or self._again(name) for name in node.input]
        places = {each.place for each in found}
        (place,) = places if len(places) == 1 else (FRONT,)
        if place.kind == "rows" or (place.kind == "inside" and place.axis == axis):
            place = FRONT
        if place == FRONT:
            found = [self.emitter.front(each) for each in found]
        names = [each.name for each in found]
        self.emit(node, names, place, axis=axis - len(shape) if place == FRONT else axis)

    def _again(self, name: str) -> Spread:
        """A tensor that all tokens share, once for each."""
        shape = self.shapes[name]
        whole = self.emitter.constant(np.array((self.emitter.tokens, *shape)), "tokens_shape")
        again = self.emitter.node("Expand", (name, whole), f"{name}_tokens")
        return Spread(self.emitter.bytes_of(again, name), FRONT, shape)

    def _join(self, node: onnx.NodeProto, axis: int) -> None:
        """A cache, and behind it what is new, of all tokens."""
        past, *rest = node.input
        new = self.spread.get(rest[0]) if len(rest) == 1 else None
        if self.cached.get(past) != axis or new is None or new.shape[axis] != 1:
            raise ModelError("a cache that is joined in another way than with one new position")
        rows = self.joined[node.output[0]] = self.emitter.inside(new, axis)
        self.emitter.nodes.append(
            helper.make_node("Concat", [past, rows.name], node.output, node.name, axis=axis)
        )

    def _reshape(self, node: onnx.NodeProto) -> None:
        found, shape = self.one(node), self.shapes[node.output[0]]
        if found.place != Place("inside", 0):
            found = self.emitter.front(found)
        inside = bool(shape) and shape[0] == 1
        whole = (self.emitter.tokens, *(shape[1:] if inside else shape))
        constant = self.emitter.constant(np.array(whole, np.int64), "tokens_shape")
        made = helper.make_node("Reshape", [found.name, constant], node.output, node.name)
        self.emit(made, made.input, Place("inside", 0) if inside else FRONT)

    def _transpose(self, node: onnx.NodeProto) -> None:
        found = self.one(node)
        order = list(_attribute(node, "perm", range(len(found.shape))[::-1]))
        if found.place.kind == "inside":
            place = Place("inside", order.index(found.place.axis))
            self.emit(node, [found.name], place, perm=order)
            return
        found = self.emitter.front(found)
        self.emit(node, [found.name], FRONT, perm=[0, *(each + 1 for each in order)])

    def _split(self, node: onnx.NodeProto) -> None:
        found, rank = self.one(node), len(self.shapes[node.input[0]])
        axis = _attribute(node, "axis", 0) % rank
        if found.place.kind == "rows" or found.place == Place("inside", axis):
            found = self.emitter.front(found)
        front = found.place == FRONT
        names = [found.name, *node.input[1:]]
        self.emit(node, names, found.place, axis=axis - rank if front else axis)

    def _slice(self, node: onnx.NodeProto) -> None:
        found, rank = self.one(node), len(self.shapes[node.input[0]])
        axes = self.constants.get(node.input[3]) if len(node.input) > 3 else None
        if axes is None:
            raise ModelError("axes that are not constant")
        counted = [int(each) % rank for each in axes.reshape(-1)]
        if found.place.kind == "rows" or found.place.axis in counted:
            found = self.emitter.front(found)
        if found.place == FRONT:
            counted = [each - rank for each in counted]
        constant = self.emitter.constant(np.array(counted, np.int64), "tokens_axes")
        start, end, _, *step = node.input[1:]
        self.emit(node, [found.name, start, end, constant, *step], found.place)


def _has_graphs(node: onnx.NodeProto) -> bool:
    """True if a node has graphs within it, as Loop has."""
    return any(each.HasField("g") or each.graphs for each in node.attribute)


def _keep(given: Spread) -> Spread:
    return given


def _attribute(node: onnx.NodeProto, name: str, default: object) -> Any:
    """The value of an attribute."""
    for each in node.attribute:
        if each.name == name:
            return helper.get_attribute_value(each)
    return default


RULES: Mapping[str, Callable[[Rules, onnx.NodeProto], None]] = {
    "Concat": Rules._concat,
    "Flatten": Rules._reshape,
    "Gather": Rules._gather,
    "Gemm": Rules._dense,
    "MatMul": Rules._product,
    "Reshape": Rules._reshape,
    "Slice": Rules._slice,
    "Split": Rules._split,
    "Squeeze": Rules._reshape,
    "Transpose": Rules._transpose,
    "Unsqueeze": Rules._reshape,
}
