"""Conversion of each operator to tensors of several tokens."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper

from ....errors import ModelError
from .attributes import attribute_of, has_graphs
from .caches import QUANTISATION, Caches
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
    what they were.  caches: those of these that hold a cache.
    scores: names of the first whose last axis has the places of positions, in the block's order.
    """

    emitter: Emitter
    slots: Slots
    shapes: Mapping[str, Shape]
    constants: Mapping[str, Array]
    spread: dict[str, Spread] = field(default_factory=dict)
    scores: set[str] = field(default_factory=set)
    caches: Caches = field(init=False)

    def __post_init__(self) -> None:
        self.caches = Caches(self.emitter, self.shapes)

    def given(self, name: str, shape: Shape) -> None:
        """An input of one element becomes one of all tokens."""
        self.spread[name] = Spread(name, Place("inside", 0), shape)

    def add(self, node: onnx.NodeProto) -> None:
        """Raises ModelError for an operator, or a form of one, that there is no rule for."""
        if not any(name in self.spread for name in node.input):
            self.emitter.nodes.append(node)
            self.caches.follow(node)
            if node.op_type == "DequantizeLinear" and prod(self.shapes[node.input[1]]) == 1:
                self.emitter.scales[node.output[0]] = tuple(node.input[1:])
            return
        kind = node.op_type
        try:
            if any(x not in self.shapes for x in node.output if x) or has_graphs(node):
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
            if not self.scores.isdisjoint(node.input):
                self.scores.update(filter(self._has_places, node.output))
        except ModelError as error:
            raise ModelError(f"node {node.name!r} ({kind}) in blocks of tokens: {error}") from None

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

    def _has_places(self, name: str) -> bool:
        """True if the last axis is as long as one of positions."""
        return self.shapes.get(name, ())[-1:] == (self.slots.size + 1,)

    def _without_places(self, node: onnx.NodeProto) -> None:
        """Raises ModelError for a node of scores."""
        if not self.scores.isdisjoint(node.input):
            raise ModelError("no rule for it over positions")

    def of(self, name: str) -> Spread:
        """The tensor ``name`` of all tokens, or, of a cache and their rows, these.

        Raises ModelError where all tokens share it.
        """
        found = self.spread.get(name) or self.caches.joined.get(name)
        if found is None:
            raise ModelError(f"output {name!r} does not depend on the token")
        return found

    def one(self, node: onnx.NodeProto) -> Spread:
        """The first input, where it alone differs from token to token.  Raises ModelError."""
        if any(name in self.spread for name in node.input[1:]):
            raise ModelError("an operand that differs from token to token")
        return self.spread[node.input[0]]

    def _one_by_one(self, node: onnx.NodeProto) -> None:
        """A node for each token, where there is no rule for all tokens at once.

        Raises ModelError where it could see the order of positions, which is another one now.
        """
        if not self.caches.made.isdisjoint(node.input):
            raise ModelError("no rule for it over a cache")
        self._without_places(node)
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
        own = set[str]()
        if not self.scores.isdisjoint(spread):
            # Their places are the decoder's, and those of the scores are the block's.
            known = self.scores | self.caches.made
            own = {x for x in node.input if x not in known and self._has_places(x)}
            if own and ROWS not in places:
                raise ModelError("scores that are not rows")
            spread |= {x: self.spread.get(x) or self._again(x) for x in own}
        same = all(each.shape == shape for each in spread.values())
        others = [self.shapes[x] for x in node.input if x and x not in spread]
        plain = all(prod(each) == 1 or (each and prod(each) == each[-1]) for each in others)
        if ROWS in places:
            if any(each[-2:-1] not in ((), (1,)) for each in others):
                raise ModelError("an operand with rows of its own")
            change: Callable[[Spread], Spread] = lambda each: self._as_rows(each, shape)  # noqa: E731
            place = ROWS
            spread |= {x: self.slots.bias(self.emitter, spread[x], shape) for x in own}
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

    def _as_rows(self, each: Spread, shape: Shape) -> Spread:
        """An operand as rows of all tokens, for a result of ``shape``."""
        if each.place == ROWS:
            return each
        if each.shape != shape:
            raise ModelError("an operand that is not a mask of positions")
        return self.emitter.rows(each)

    def _last_axis(self, node: onnx.NodeProto, default: int) -> Spread:
        """The operand of a node that works within the last axis.  Raises ModelError."""
        found = self.one(node)
        rank = len(found.shape)
        if attribute_of(node, "axis", default) not in (-1, rank - 1):
            raise ModelError("an axis that is not the last")
        if found.place == Place("inside", rank - 1):
            return self.emitter.front(found)
        return found

    def _normalise(self, node: onnx.NodeProto) -> None:
        found = self._last_axis(node, -1)
        self.emit(node, [found.name, *node.input[1:]], found.place, axis=-1)

    def _reduce(self, node: onnx.NodeProto) -> None:
        found, rank = self.one(node), len(self.shapes[node.input[0]])
        axes = attribute_of(node, "axes", None)
        if axes is None and len(node.input) > 1:
            axes = self.constants.get(node.input[1])
        if axes is None or not attribute_of(node, "keepdims", 1):
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
        (out,) = node.output
        if node.input[1] in self.caches.made and self._has_places(out):
            self.scores.add(out)

    def _dense(self, node: onnx.NodeProto) -> None:
        found = self.one(node)
        if found.place != Place("inside", 0) or attribute_of(node, "transA", 0):
            raise ModelError("rows that are not those of tokens")
        self.emit(node, [found.name, *node.input[1:]], found.place)

    def _gather(self, node: onnx.NodeProto) -> None:
        table, index = node.input
        axis = attribute_of(node, "axis", 0)
        if table in self.spread:
            self._without_places(node)
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
        axis = attribute_of(node, "axis", 0) % len(shape)
        if any(name in self.caches.past for name in node.input):
            self.caches.join(node, axis, self.spread.get(node.input[1]))
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

    def _reshape(self, node: onnx.NodeProto) -> None:
        found, shape = self.one(node), self.shapes[node.output[0]]
        if found.place == ROWS and shape[-2:] == found.shape[-2:]:
            whole = (*shape[:-2], self.emitter.tokens * shape[-2], shape[-1])
            self._reshape_to(node, found, whole, ROWS)
            return
        if found.place != Place("inside", 0):
            found = self.emitter.front(found)
        inside = bool(shape) and shape[0] == 1
        whole = (self.emitter.tokens, *(shape[1:] if inside else shape))
        self._reshape_to(node, found, whole, Place("inside", 0) if inside else FRONT)

    def _reshape_to(self, node: onnx.NodeProto, found: Spread, shape: Shape, place: Place) -> None:
        constant = self.emitter.constant(np.array(shape, np.int64), "tokens_shape")
        made = helper.make_node("Reshape", [found.name, constant], node.output, node.name)
        self.emit(made, made.input, place)

    def _transpose(self, node: onnx.NodeProto) -> None:
        found = self.one(node)
        order = list(attribute_of(node, "perm", range(len(found.shape))[::-1]))
        if found.place.kind == "inside":
            place = Place("inside", order.index(found.place.axis))
            self.emit(node, [found.name], place, perm=order)
            return
        found = self.emitter.front(found)
        self.emit(node, [found.name], FRONT, perm=[0, *(each + 1 for each in order)])

    def _split(self, node: onnx.NodeProto) -> None:
        self._without_places(node)
        found, rank = self.one(node), len(self.shapes[node.input[0]])
        axis = attribute_of(node, "axis", 0) % rank
        if found.place.kind == "rows" or found.place == Place("inside", axis):
            found = self.emitter.front(found)
        front = found.place == FRONT
        names = [found.name, *node.input[1:]]
        self.emit(node, names, found.place, axis=axis - rank if front else axis)

    def _slice(self, node: onnx.NodeProto) -> None:
        self._without_places(node)
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


def _keep(given: Spread) -> Spread:
    return given


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
