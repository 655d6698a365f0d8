"""Where the tokens of a block are in a tensor that the model has for one token."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from dovetail.isa.frozen import frozen

__all__ = ["Emitter", "Place", "Spread"]


@frozen
class Place:
    """axis: of the tokens.  Each kind is for a tensor of ``shape`` in the model of one token.

    ``inside``: the axis has size 1 in ``shape``, and now as many as there are tokens.
    ``front``: an axis of its own, before all others.
    ``rows``: the last axis but one has all tokens' rows, those of the first token first.
    """

    kind: str
    axis: int = 0


FRONT, ROWS = Place("front"), Place("rows")


@frozen
class Spread:
    """A tensor of all tokens.  shape: of it for one token."""

    name: str
    place: Place
    shape: tuple[int, ...]


class Emitter:
    """Nodes and constants of the new model.  tokens: of a block.

    scales: scale, and zero point if any, of what DequantizeLinear made.  What is moved of it is
    quantised and dequantised again, so that operators see bytes in front of them.
    """

    def __init__(self, tokens: int, taken: Sequence[str]) -> None:
        self.tokens = tokens
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.taken = set(taken)
        self.scales: dict[str, tuple[str, ...]] = {}
        self._made: dict[str, str] = {}

    def name(self, stem: str) -> str:
        """A name that nothing else has."""
        name, number = stem, 1
        while name in self.taken:
            number += 1
            name = f"{stem}_{number}"
        self.taken.add(name)
        return name

    def constant(self, value: NDArray[np.generic] | Sequence[int], stem: str) -> str:
        """The name of a constant; numbers are int64."""
        array = np.asarray(value)
        key = repr((array.dtype.str, array.shape, array.tobytes()))
        if key not in self._made:
            self._made[key] = self.name(stem)
            self.constants.append(numpy_helper.from_array(array, self._made[key]))
        return self._made[key]

    def node(self, kind: str, inputs: Sequence[str], stem: str, **attributes: Any) -> str:
        """The result of a node; the same one for the same inputs and attributes."""
        key = repr((kind, *inputs, sorted(attributes.items())))
        if key not in self._made:
            name = self._made[key] = self.name(stem)
            self.nodes.append(helper.make_node(kind, inputs, [name], name, **attributes))
        return self._made[key]

    def reshape(self, name: str, shape: Sequence[int]) -> str:
        """``name`` in another shape."""
        to = self.constant(np.array(shape, np.int64), "tokens_shape")
        return self.node("Reshape", (name, to), f"{name}_tokens")

    def turn(self, name: str, order: Sequence[int]) -> str:
        """``name`` with its axes in another order."""
        if list(order) == sorted(order):
            return name
        return self.node("Transpose", (name,), f"{name}_turned", perm=list(order))

    def bytes_of(self, moved: str, given: str) -> str:
        """The moved form of ``given``, with its quantisation if it has one."""
        if given not in self.scales or moved == given:
            return moved
        scale = self.scales[given]
        name = self.node("QuantizeLinear", (moved, *scale), f"{moved}_bytes")
        name = self.node("DequantizeLinear", (name, *scale), f"{moved}_again")
        self.scales[name] = scale
        return name

    def front(self, given: Spread, rank: int | None = None) -> Spread:
        """With an axis of tokens in front, and axes of 1 behind it up to ``rank``."""
        shape = (1,) * ((rank or len(given.shape)) - len(given.shape)) + given.shape
        name = self._front(given)
        if given.place.kind == "inside" or shape != given.shape:
            name = self.reshape(name, (self.tokens, *shape))
        return Spread(self.bytes_of(name, given.name), FRONT, shape)

    def _front(self, given: Spread) -> str:
        """All tokens before all else, as elements follow each other."""
        shape, name = given.shape, given.name
        if given.place.kind == "inside":
            axis = given.place.axis
            return self.turn(name, [axis, *(n for n in range(len(shape)) if n != axis)])
        if given.place.kind == "rows":
            *outer, rows, size = shape
            name = self.reshape(name, (*outer, self.tokens, rows, size))
            here = len(outer)
            return self.turn(name, [here, *(n for n in range(len(shape) + 1) if n != here)])
        return name

    def inside(self, given: Spread, axis: int, rank: int | None = None) -> Spread:
        """With the tokens in place of an axis of 1."""
        shape = (1,) * ((rank or len(given.shape)) - len(given.shape)) + given.shape
        place = Place("inside", axis)
        if given.place == place and shape == given.shape:
            return given
        name = self._front(given)
        name = self.reshape(name, (self.tokens, *shape[:axis], *shape[axis + 1 :]))
        name = self.turn(name, [*range(1, axis + 1), 0, *range(axis + 1, len(shape))])
        return Spread(self.bytes_of(name, given.name), place, shape)

    def rows(self, given: Spread) -> Spread:
        """With all tokens' rows in the last axis but one."""
        if given.place == ROWS:
            return given
        *outer, rows, size = given.shape
        here = len(outer)
        name = self._front(given)
        if given.place.kind == "inside":
            name = self.reshape(name, (self.tokens, *given.shape))
        name = self.turn(name, [*range(1, here + 1), 0, here + 1, here + 2])
        name = self.reshape(name, (*outer, self.tokens * rows, size))
        return Spread(self.bytes_of(name, given.name), ROWS, given.shape)
