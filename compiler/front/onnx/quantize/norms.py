"""Normalisations of rows: LayerNormalization, RMSNorm, and the nodes that exporters write for them;
divisions by the lengths of rows.

What is between is not quantised: squares of int8 and their means have too few steps.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from dovetail.isa.frozen import frozen

from ..node import OnnxNode
from .model import FloatModel

__all__ = ["Norm", "find_norms"]

Shapes = Mapping[str, tuple[int, ...]]
WHOLE = ("LayerNormalization", "RMSNormalization")


@frozen
class Norm:
    """A normalisation of rows of ``x``, of real numbers throughout, with the result ``y``.

    nodes: those that compute it, ``y`` last.
    """

    x: str
    y: str
    nodes: tuple[OnnxNode, ...]

    @property
    def between(self) -> frozenset[str]:
        """The tensors that only its own nodes read."""
        return frozenset(node.outputs[0] for node in self.nodes) - {self.y}


def find_norms(model: FloatModel, shapes: Shapes) -> tuple[Norm, ...]:
    """All over the last dimension, with constant gains and biases, and lengths over any."""
    found = []
    for node in model.nodes:
        norm = None
        if node.kind in WHOLE:
            norm = _whole(model, shapes, node)
        elif node.kind == "Sqrt":
            norm = _Match(model, shapes).around(node)
        elif node.kind == "LpNormalization" and node.integer("p", 2) == 2:
            norm = Norm(node.inputs[0], node.outputs[0], (node,))
        elif node.kind == "ReduceL2":
            norm = _Match(model, shapes).by_length(node)
        if norm is not None:
            found.append(norm)
    return tuple(found)


def _whole(model: FloatModel, shapes: Shapes, node: OnnxNode) -> Norm | None:
    rank = len(shapes[node.inputs[0]])
    constant = all(name in model.constants for name in node.inputs[1:] if name)
    last = rank > 0 and node.integer("axis", -1) % rank == rank - 1
    if not last or not constant or sum(map(bool, node.outputs)) > 1:
        return None
    return Norm(node.inputs[0], node.outputs[0], (node,))


@frozen
class _Match:
    """x, or its difference from the mean, over the root of the mean of its squares."""

    model: FloatModel
    shapes: Shapes

    def around(self, root: OnnxNode) -> Norm | None:
        """The normalisation by ``root``."""
        add = self.model.producers.get(root.inputs[0])
        parts = self._with_number(add, "Add")
        mean = self._mean(parts)
        square = self.model.producers.get(mean.inputs[0]) if mean is not None else None
        d = self._squared(square)
        if add is None or mean is None or square is None or d is None:
            return None
        less = self._less_mean(self.model.producers.get(d))
        quotient = self._quotient(root, d)
        if not quotient:
            return None
        x = less[1].inputs[0] if less else d
        nodes = (*less, square, mean, add, root, *quotient, *self._gains(quotient[-1]))
        return self._closed(Norm(x, nodes[-1].outputs[0], nodes))

    def by_length(self, length: OnnxNode) -> Norm | None:
        """A tensor over its length, perhaps limited below, and repeated."""
        nodes, limits = [length], self.model.constants
        for kind in ("Clip", "Max", "Expand"):
            after = self.model.only_reader(nodes[-1].outputs[0])
            if (
                after is not None
                and after.kind == kind
                and set(after.inputs[1:]) - {""} <= set(limits)
            ):
                nodes.append(after)
        quotient = self.model.only_reader(nodes[-1].outputs[0])
        if not length.integer("keepdims", 1) or quotient is None or quotient.kind != "Div":
            return None
        if quotient.inputs != (length.inputs[0], nodes[-1].outputs[0]):
            return None
        nodes.append(quotient)
        return self._closed(Norm(length.inputs[0], quotient.outputs[0], tuple(nodes)))

    def _closed(self, norm: Norm) -> Norm | None:
        """The normalisation, if nothing else reads what is between."""
        own = {node.outputs[0] for node in norm.nodes}
        for name in norm.between:
            readers = self.model.readers.get(name, ())
            if name in self.model.outputs or any(n.outputs[0] not in own for n in readers):
                return None
        return norm

    def _with_number(self, node: OnnxNode | None, kind: str) -> str | None:
        """The operand of ``node``, of that kind, whose other one is a single number."""
        if node is None or node.kind != kind:
            return None
        for own, other in (node.inputs, node.inputs[::-1]):
            value = self.model.constants.get(other)
            if value is not None and value.size == 1 and own not in self.model.constants:
                return own
        return None

    def _mean(self, name: str | None) -> OnnxNode | None:
        """The ReduceMean over the last dimension that computes ``name``."""
        node = self.model.producers.get(name) if name else None
        if node is None or node.kind != "ReduceMean" or not node.integer("keepdims", 1):
            return None
        rank = len(self.shapes[node.inputs[0]])
        given = self.model.constants.get(node.inputs[1]) if node.has(1) else None
        axes = node.integers("axes", ()) if given is None else given.reshape(-1).tolist()
        return node if [axis % rank for axis in axes] == [rank - 1] else None

    def _squared(self, node: OnnxNode | None) -> str | None:
        """The tensor that ``node`` squares."""
        if node is None:
            return None
        if node.kind == "Mul" and len(set(node.inputs)) == 1:
            return node.inputs[0]
        two = self.model.constants.get(node.inputs[1]) if node.kind == "Pow" else None
        return node.inputs[0] if two is not None and np.all(two == 2) and two.size == 1 else None

    def _less_mean(self, node: OnnxNode | None) -> tuple[OnnxNode, ...]:
        """Mean and difference, if ``node`` is one: x - mean(x)."""
        mean = self._mean(node.inputs[1]) if node is not None and node.kind == "Sub" else None
        if node is None or mean is None or mean.inputs[0] != node.inputs[0]:
            return ()
        twins = [
            each
            for each in self.model.readers[node.inputs[0]]
            if each.kind == "Sub" and each.inputs == node.inputs and each is not node
        ]
        return (node, mean, *twins)

    def _quotient(self, root: OnnxNode, d: str) -> tuple[OnnxNode, ...]:
        """Nodes that divide ``d``, or a twin of it, by the root."""
        own = self._same(d)
        reader = self.model.only_reader(root.outputs[0])
        if reader is None:
            return ()
        if reader.kind == "Div" and reader.inputs[1] == root.outputs[0] and reader.inputs[0] in own:
            return (reader,)
        one = self.model.constants.get(reader.inputs[0]) if reader.kind == "Div" else None
        if reader.kind != "Reciprocal" and (one is None or one.size != 1 or one.item() != 1):
            return ()
        product = self.model.only_reader(reader.outputs[0])
        if product is None or product.kind != "Mul" or own.isdisjoint(product.inputs):
            return ()
        return reader, product

    def _same(self, name: str) -> set[str]:
        """``name``, and what other nodes compute in the same way."""
        made = self.model.producers.get(name)
        if made is None:
            return {name}
        own = (made.kind, made.inputs)
        twins = self.model.readers.get(made.inputs[0], ())
        return {name} | {each.outputs[0] for each in twins if (each.kind, each.inputs) == own}

    def _gains(self, node: OnnxNode) -> Iterator[OnnxNode]:
        """A factor, then a summand, for each element of a row."""
        width = self.shapes[node.outputs[0]][-1]
        for kind in ("Mul", "Add"):
            after = self.model.only_reader(node.outputs[0])
            if after is None or after.kind != kind:
                continue
            given = [
                each for n in after.inputs if (each := self.model.constants.get(n)) is not None
            ]
            if len(given) == 1 and given[0].shape[-1:] == (width,) and given[0].size == width:
                node = after
                yield node
