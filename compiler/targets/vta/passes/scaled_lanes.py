"""Scaled sums of a dense layer's outputs, in any order of channels, with factors of the host.

ScaledSum(parts of Dense(x), factors)
->  ScaledSum(Conv2d(x), ScalesOfWords(words)), the words made of what the factors are made of
"""

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from dovetail.isa.frozen import frozen, replace

from ....graph.ir import Graph, GraphBuilder
from ....graph.operators.indexing import Gather
from ....graph.operators.integer.products import Conv2d, Dense
from ....graph.operators.integer.scaled_sum import ScaledSum, ScalesOfWords
from ....graph.operators.movement import Concatenate, Reshape
from .lane_elements import Element, Elements, NoLanesError
from .parameter_words import parameter_words

__all__ = ["ScaledLanes"]


@frozen
class ScaledLanes:
    """graph, builder, read, block: as of ``Lanes``.  inside: what layers make.

    elements: of the graph's tensors.  tokens: rows of each vector.
    """

    graph: Graph
    builder: GraphBuilder
    read: Callable[[str], str]
    block: int
    inside: frozenset[str]
    elements: Elements
    tokens: int = 1

    def image(self, elements: Sequence[Element]) -> tuple[str, int]:
        """Scaled sums of a dense layer's outputs as channels in this order, and their zero point.

        The host gives their factors, as words of parameters.  Raises NoLanesError.
        """
        base, count = elements[0][0], len(elements)
        node = self.graph.producer(base)
        assert node is not None
        operator = node.operator
        assert isinstance(operator, ScaledSum)
        sums, factors = self.terms(elements)
        total = self.graph.producer(sums[0][0])
        if total is None or not isinstance(total.operator, Dense) or count % self.block:
            raise NoLanesError(f"{base!r} sums what no dense layer makes")
        repeats = self._repeats(sums, operator.terms)
        sums = [
            each for n in range(operator.terms) for each in sums[n * count :][: count // repeats]
        ]
        channels = [place for _, place in sums]
        shape = self.graph.types[total.output].shape
        if prod(shape[:-1]) != self.tokens or max(channels) >= shape[-1]:
            raise NoLanesError(f"{base!r} sums other rows than those of the tokens")
        weights, bias = (self.graph.constants[name] for name in total.inputs[1:])
        if {name for name, _ in sums} != {total.output} or bias[channels].any():
            raise NoLanesError(f"{base!r} sums several dense layers, or one with a bias")
        builder, stem = self.builder, f"{base}/lanes"
        x = self.read(total.inputs[0])
        x = builder.node(
            Reshape((1, 1, self.tokens, weights.shape[1])), (x,), f"{stem}/x", node.origin
        )
        zero_points = total.operator.zero_point, total.operator.weight_zero_point
        inputs = (
            x,
            builder.constant(f"{stem}/weights", weights[channels][:, None, None]),
            builder.constant(f"{stem}/bias", bias[channels]),
        )
        conv = Conv2d((1, 1), (0, 0, 0, 0), 1, *zero_points)
        acc = builder.node(conv, inputs, f"{stem}/sum", total.origin)
        words = parameter_words(builder, self._floats(factors, stem), self.block, stem)
        scales = ScalesOfWords(self.block, self.tokens)
        given = builder.node(scales, (words,), f"{stem}/factors", node.origin)
        again = replace(operator, repeats=repeats)
        name = builder.node(again, (acc, given), stem, node.origin)
        return name, operator.zero_point

    def terms(self, elements: Sequence[Element]) -> tuple[list[Element], list[Element]]:
        """The sums that scaled sums of the first token are made of, all first terms before the
        second; and factors, those of each block for all tokens.
        """
        sums, factors = list[Element](), list[Element]()
        makers = [self.graph.producer(name) for name, _ in elements]
        nodes = [each for each in makers if each is not None]
        terms = (each.operator.terms for each in nodes if isinstance(each.operator, ScaledSum))
        for term in range(max(terms)):
            places = [
                (node, term * self.graph.types[name].shape[-1] + place)
                for (name, place), node in zip(elements, nodes, strict=True)
            ]
            sums += [self._below(node.inputs[0], at) for node, at in places]
            for start in range(0, len(places), self.block):
                for token in range(self.tokens):
                    factors += [
                        self._below(
                            node.inputs[1], at + token * self.graph.types[node.inputs[1]].shape[-1]
                        )
                        for node, at in places[start : start + self.block]
                    ]
        return sums, factors

    def _below(self, name: str, at: int) -> Element:
        """An element of a tensor, beneath movements."""
        bases, which, places = self.elements.trace(name)
        return bases[which.reshape(-1)[at]], int(places.reshape(-1)[at])

    def _repeats(self, sums: Sequence[Element], terms: int) -> int:
        """Times that the first block of each term comes again, and is all of it."""
        count = len(sums) // terms
        apart = (list(sums[n * count : (n + 1) * count]) for n in range(terms))
        again = count // self.block
        return again if all(each == each[: self.block] * again for each in apart) else 1

    def _floats(self, elements: Sequence[Element], stem: str) -> str:
        """Elements of float tensors that the host makes, float32[N].

        Raises NoLanesError.
        """
        names = list(dict.fromkeys(name for name, _ in elements))
        if self.inside.intersection(names):
            raise NoLanesError("factors that layers make")
        starts, flat, builder = dict[str, int](), list[str](), self.builder
        for name in names:
            size = self.graph.types[name].elements
            starts[name] = sum(builder.types[each].elements for each in flat)
            flat.append(builder.node(Reshape((size,)), (self.read(name),), stem, name))
        whole = flat[0]
        if len(flat) > 1:
            whole = builder.node(Concatenate(0), tuple(flat), stem, names[0])
        places = np.array([starts[name] + place for name, place in elements])
        index = builder.constant(f"{stem}/places", places)
        return builder.node(Gather(0), (whole, index), stem, names[0])
