"""Caches in the part of a decoder that all tokens of a block share, and what is made of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

import onnx
from onnx import helper

from ....errors import ModelError
from .attributes import attribute_of
from .places import Emitter, Spread

__all__ = ["QUANTISATION", "Caches"]

QUANTISATION = frozenset(["QuantizeLinear", "DequantizeLinear"])


@dataclass(slots=True)
class Caches:
    """Tensors that hold caches, by their names in the model.

    shapes: of the model's tensors, for one token.
    past: their axes of positions.  joined: a cache with the tokens' rows behind it, and these rows.
    made: all that is computed from either, as far as it is the same for all tokens.
    """

    emitter: Emitter
    shapes: Mapping[str, tuple[int, ...]]
    past: dict[str, int] = field(default_factory=dict)
    joined: dict[str, Spread] = field(default_factory=dict)
    made: set[str] = field(default_factory=set)

    def follow(self, node: onnx.NodeProto) -> None:
        """Say which results of a node that all tokens share are caches, or have rows of tokens.

        Raises ModelError for an operator that there is no rule for.
        """
        if not self.made.isdisjoint(node.input):
            self.made.update(node.output)
        rows = self.joined.get(node.input[0]) if node.input else None
        if rows is not None and node.op_type in QUANTISATION:
            self._quantise_rows(node, rows)
        elif rows is not None and self._is_whole(node):
            self.joined[node.output[0]] = rows
        found = [name for name in node.input if name in self.past]
        if not found:
            return
        axis = self.past[found[0]]
        size = self.shapes[found[0]][axis]
        out = self.shapes.get(node.output[0], ())
        if node.op_type == "Gather" and axis > 0 and len(found) == 1:
            axis += len(out) - len(self.shapes[found[0]])
        elif node.op_type == "Transpose":
            axis = list(attribute_of(node, "perm", range(len(out))[::-1])).index(axis)
        elif not self._is_whole(node) and node.op_type not in (*QUANTISATION, "Concat"):
            raise ModelError(f"node {node.name!r} ({node.op_type}) of a cache: no rule for it")
        if node.op_type == "Concat" or not (axis < len(out) and out[axis] == size):
            raise ModelError(f"node {node.name!r} ({node.op_type}) of a cache: no rule for it")
        self._keep(node.output[0], axis)

    def given(self, name: str, axis: int) -> None:
        """An input that is a cache, with positions along ``axis``."""
        self._keep(name, axis)

    def join(self, node: onnx.NodeProto, axis: int, new: Spread | None) -> None:
        """Join a cache and, behind it, the new rows of all tokens.

        Raises ModelError for a node that joins them in another way.
        """
        past, *rest = node.input
        if self.past.get(past) != axis or len(rest) != 1 or new is None or new.shape[axis] != 1:
            raise ModelError("a cache that is joined in another way than with one new position")
        rows = self.joined[node.output[0]] = self.emitter.inside(new, axis)
        self.made.add(node.output[0])
        self.emitter.nodes.append(
            helper.make_node("Concat", [past, rows.name], node.output, node.name, axis=axis)
        )

    def _keep(self, name: str, axis: int) -> None:
        self.past[name] = axis
        self.made.add(name)

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
