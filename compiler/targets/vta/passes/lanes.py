"""Vectors of a token as channels of an image, in any order, computed again from the last products.

A decoder's layers are vectors.  Reshape, Transpose, Slice and Concatenate between them, as those of
rotary positions, only say which element meets which.  An order of the result's elements asks for an
order of the operands' elements, and so on, down to dense layers and the host, which can give what
they make in any order.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from math import prod

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.frozen import frozen

from ....dtypes import DType
from ....graph.ir import Graph, GraphBuilder, Node
from ....graph.operators.indexing import Gather
from ....graph.operators.integer.norm import RowNorm
from ....graph.operators.integer.products import Conv2d, Dense, RowProducts
from ....graph.operators.integer.scaled_sum import ScaledSum
from ....graph.operators.integer.values import Lookup, Multiply, Requantize
from ....graph.operators.movement import Concatenate, Reshape, Slice
from ..operators import AnyAdd, AnyMultiply, AnyRequantize
from .lane_elements import Element, Elements, NoLanesError
from .normalised_lanes import NormalisedLanes
from .scaled_lanes import ScaledLanes

__all__ = ["Lanes"]

Mask = NDArray[np.bool_]
"""bool[rows, channels]: where a row has an element, and not the zero point."""

LAYERS = (Dense, Conv2d, RowNorm, RowProducts, AnyRequantize, AnyAdd, AnyMultiply, ScaledSum)


@frozen
class _Image:
    """An image of the new graph; ``blank``: what it holds where a row has no element."""

    name: str
    blank: int


@dataclass(slots=True)
class Lanes:
    """graph: that has the vectors.  builder: of the new graph; read: the name there of a tensor of
    ``graph``.  block: channels of a block.  tokens: rows of the vectors; images have a pixel for
    each, and what is asked of one of them is meant of all.
    """

    graph: Graph
    builder: GraphBuilder
    read: Callable[[str], str]
    block: int
    tokens: int = 1
    inside: frozenset[str] = field(init=False)
    elements: Elements = field(init=False)
    scaled: ScaledLanes = field(init=False)
    normalised: NormalisedLanes = field(init=False)
    _made: dict[tuple[object, ...], _Image] = field(default_factory=dict)

    def __post_init__(self) -> None:
        found: set[str] = set()
        for node in self.graph.nodes:
            if isinstance(node.operator, LAYERS) or found.intersection(node.inputs):
                found.update(node.outputs)
        self.inside = frozenset(found)
        self.elements = Elements(self.graph)
        given = self.graph, self.builder, self.read, self.block
        self.scaled = ScaledLanes(*given, self.inside, self.elements, self.tokens)
        named: Callable[[Sequence[Element]], str] = lambda elements: self.image(elements).name  # noqa: E731
        self.normalised = NormalisedLanes(*given, named, self.elements, self.tokens)

    def of_token(self, elements: NDArray[np.object_], axis: int) -> NDArray[np.object_]:
        """The elements of the first of all tokens along ``axis``.

        Raises NoLanesError where those of others are not the same ones of later rows.
        """
        first = np.take(elements, 0, axis)
        every = self.every_token(list(first.reshape(-1)))
        for token in range(1, elements.shape[axis]):
            found = list(np.take(elements, token, axis).reshape(-1))
            if every[token] != found:
                raise NoLanesError(f"{found[0][0]!r}: tokens that are not rows")
        return first

    def signature(self, element: Element) -> tuple[object, ...]:
        """The tensors that an element is computed from: what must be in blocks of their own."""
        base, place = element
        node = self.graph.producer(base)
        if node is None or base not in self.inside or not isinstance(node.operator, ROWWISE):
            return (base,)
        return (base, *(self.signature(each) for each in self.elements.operands(node, place)))

    def image(self, elements: Sequence[Element], mask: Mask | None = None) -> _Image:
        """``elements`` as the channels of an image [1, 1, rows, channels]; a row for each token
        without a mask.

        Raises NoLanesError.
        """
        runs = [list(run) for _, run in groupby(elements, key=lambda each: each[0])]
        if any(len(run) % self.block for run in runs[:-1]):
            raise NoLanesError("vectors that do not fill blocks")
        parts, first = list[_Image](), 0
        for run in runs:
            within = None if mask is None else mask[:, first : first + len(run)]
            parts.append(self._run(run[0][0], [place for _, place in run], within))
            first += len(run)
        if len({part.blank for part in parts}) > 1:
            raise NoLanesError("vectors of different zero points")
        if len(parts) == 1:
            return parts[0]
        names = tuple(part.name for part in parts)
        if names not in self._made:
            name = self.builder.node(Concatenate(3), names, f"{names[0]}/joined", elements[0][0])
            self._made[names] = _Image(name, parts[0].blank)
        return self._made[names]

    def prepare(self, *vectors: Sequence[Element]) -> None:
        """Let one layer make the outputs of a dense layer that ``vectors`` come from.

        Raises NoLanesError.
        """
        wanted: dict[str, dict[tuple[int, ...], None]] = {}
        for elements in vectors:
            self._collect(elements, wanted)
        self._prepare_sums(wanted)
        for base, runs in wanted.items():
            keys = [(base, run, None) for run in runs]
            if len(keys) < 2 or any(key in self._made for key in keys):
                continue
            if any(len(run) % self.block for run in runs):
                continue
            whole = self._run(base, [place for run in runs for place in run], None)
            self._cut(whole, [(key, len(run)) for key, run in zip(keys, runs, strict=True)])

    def _prepare_sums(self, wanted: dict[str, dict[tuple[int, ...], None]]) -> None:
        """Let one layer make all scaled sums of a dense layer, taken from ``wanted``."""
        alike: dict[tuple[object, ...], list[tuple[str, tuple[int, ...]]]] = {}
        for base in list(wanted):
            node = self.graph.producer(base)
            assert node is not None
            if isinstance(node.operator, ScaledSum):
                for run in wanted.pop(base):
                    sums, _ = self.scaled.terms([(base, place) for place in run])
                    alike.setdefault((node.operator, *sums), []).append((base, run))
        for runs in alike.values():
            fills = all(len(run) % self.block == 0 for _, run in runs)
            if len(runs) < 2 or not fills or any((*key, None) in self._made for key in runs):
                continue
            whole = _Image(*self.scaled.image([(base, n) for base, run in runs for n in run]))
            self._cut(whole, [((base, run, None), len(run)) for base, run in runs])

    def _cut(self, whole: _Image, runs: Sequence[tuple[tuple[object, ...], int]]) -> None:
        """Keep the channels of an image as images of their own, by their keys and sizes."""
        first = 0
        for key, size in runs:
            part = Slice((0, 0, 0, first), (1, 1, 1, 1), (1, 1, self.tokens, size))
            name = self.builder.node(part, (whole.name,), f"{key[0]}/run", str(key[0]))
            self._made[key], first = _Image(name, whole.blank), first + size
        # All of them, one after the other, are what they are cut from.
        self._made[tuple(self._made[key].name for key, _ in runs)] = whole

    def _collect(
        self, elements: Sequence[Element], wanted: dict[str, dict[tuple[int, ...], None]]
    ) -> None:
        """Add to ``wanted`` the outputs of dense layers that elements come from, run by run."""
        for base, run in groupby(elements, key=lambda each: each[0]):
            places = [place for _, place in run]
            node = self.graph.producer(base)
            if node is None or base not in self.inside:
                continue
            if isinstance(node.operator, Requantize | ScaledSum):
                wanted.setdefault(base, {})[tuple(places)] = None
            elif isinstance(node.operator, ROWWISE):
                for side in self._sides(node, places):
                    self._collect(side, wanted)
            elif isinstance(node.operator, RowNorm):
                for row in self.normalised.runs(node, places):
                    self._collect(self.elements.row(node, row[0]), wanted)

    def _run(self, base: str, places: list[int], mask: Mask | None) -> _Image:
        key = (base, tuple(places), None if mask is None else (mask.shape, mask.tobytes()))
        if key not in self._made:
            self._made[key] = self._compute(base, places, mask)
        return self._made[key]

    def _compute(self, base: str, places: list[int], mask: Mask | None) -> _Image:
        node = self.graph.producer(base)
        if node is None or base not in self.inside:
            raise NoLanesError(f"{base!r} is not computed by layers")
        operator, origin = node.operator, node.origin
        if isinstance(operator, Requantize | ScaledSum):
            if mask is not None:
                return self._own(self._run(base, places, None), mask, base, origin)
            if isinstance(operator, Requantize):
                return self._products(node, operator, places)
            return _Image(*self.scaled.image([(base, place) for place in places]))
        if isinstance(operator, RowNorm):
            row = _Image(*self.normalised.channels(node, places))
            return row if mask is None else self._own(row, mask, base, origin)
        if not isinstance(operator, ROWWISE):
            raise NoLanesError(f"{base!r} comes from {type(operator).__name__}")
        sides = self._sides(node, places)
        if isinstance(operator, Multiply):
            return self._multiply(base, operator, sides, mask, origin)
        images = [self.image(side, mask) for side in sides]
        blanks = [np.array([image.blank], np.int8) for image in images]
        inputs = tuple(image.name for image in images)
        if isinstance(operator, Lookup):
            table = self.graph.constants[node.inputs[1]]
            if table.ndim > 1:
                raise NoLanesError(f"{base!r} has a table for each channel")
            inputs, blanks = (*inputs, self.read(node.inputs[1])), [*blanks, table]
        (blank,) = operator.evaluate(blanks)
        return _Image(self.builder.node(operator, inputs, f"{base}/lanes", origin), int(blank[0]))

    def _products(self, node: Node, operator: Requantize, places: list[int]) -> _Image:
        """Some outputs of a dense layer, in this order."""
        total = self.graph.producer(node.inputs[0])
        shape = self.graph.types[node.output].shape
        if (
            total is None
            or not isinstance(total.operator, Dense)
            or prod(shape[:-1]) != self.tokens
            or max(places) >= shape[-1]
        ):
            raise NoLanesError(f"{node.output!r} is not what a dense layer makes of each row")
        constants, builder, stem = self.graph.constants, self.builder, f"{node.output}/lanes"
        weights, bias = (constants[name][places] for name in total.inputs[1:])
        x = self.read(total.inputs[0])
        x = builder.node(
            Reshape((1, 1, self.tokens, weights.shape[1])), (x,), f"{stem}/x", node.origin
        )
        zero_points = total.operator.zero_point, total.operator.weight_zero_point
        inputs = (
            x,
            builder.constant(f"{stem}/weights", weights[:, None, None]),
            builder.constant(f"{stem}/bias", bias),
        )
        conv = Conv2d((1, 1), (0, 0, 0, 0), 1, *zero_points)
        name = builder.node(conv, inputs, f"{stem}/sum", total.origin)
        scale = builder.constant(f"{stem}/scale", constants[node.inputs[1]][places])
        name = builder.node(operator, (name, scale), stem, node.origin)
        return _Image(name, operator.zero_point)

    def _sides(self, node: Node, places: Sequence[int]) -> list[list[Element]]:
        """Elements of each operand of an element-wise node."""
        operands = (self.elements.operands(node, place) for place in places)
        return [list(side) for side in zip(*operands, strict=True)]

    def _own(self, row: _Image, mask: Mask, base: str, origin: str) -> _Image:
        """A row again and again, each time with the zero point where the mask is not."""
        if mask.all():
            return row
        own = self.builder.constant(f"{base}/own", mask.astype(np.int8)[None, None])
        same = Multiply(1.0, 0, row.blank, row.blank, -128, 127)
        name = self.builder.node(same, (own, row.name), f"{base}/own", origin)
        return _Image(name, row.blank)

    def _multiply(
        self,
        base: str,
        operator: Multiply,
        sides: list[list[Element]],
        mask: Mask | None,
        origin: str,
    ) -> _Image:
        """Where the mask says so, what the host gives is the zero point, and so is the product."""
        zero_points = operator.a_zero_point, operator.b_zero_point
        given = [not self.inside.intersection(name for name, _ in side) for side in sides]
        if given == [True, False]:
            sides, zero_points, given = sides[::-1], zero_points[::-1], given[::-1]
        if given != [False, True]:
            if mask is not None and not mask.all():
                raise NoLanesError(f"{base!r} multiplies two results of layers")
            a, b = (self.image(side).name for side in sides)
            return _Image(
                self.builder.node(operator, (a, b), f"{base}/lanes", origin), operator.zero_point
            )
        whole = np.ones((1, len(sides[0])), bool) if mask is None else mask
        own = self.image(sides[0]).name
        if self.tokens > 1:
            other = self.given_rows(self.every_token(sides[1]))
        else:
            other = self.given(sides[1], whole, zero_points[1])
        turned = Multiply(
            operator.ratio, zero_points[1], zero_points[0],
            operator.zero_point, operator.low, operator.high, operator.unsigned,
        )  # fmt: skip
        name = self.builder.node(turned, (other, own), f"{base}/lanes", origin)
        return _Image(name, operator.zero_point)

    def every_token(self, elements: Sequence[Element]) -> list[list[Element]]:
        """The elements of each token, of what is given for the first one.

        Raises NoLanesError.
        """
        if self.tokens == 1:
            return [list(elements)]
        steps = {}
        for name in {name for name, _ in elements}:
            kind = self.graph.types[name]
            if kind.shape[0] != self.tokens:
                raise NoLanesError(f"{name!r} has no row for each token")
            steps[name] = kind.elements // self.tokens
        return [
            [(name, place + token * steps[name]) for name, place in elements]
            for token in range(self.tokens)
        ]

    def given_rows(self, rows: Sequence[Sequence[Element]]) -> str:
        """Rows that the host makes, [1, 1, rows, channels].  Raises NoLanesError."""
        flat = [each for row in rows for each in row]
        shape = len(rows), len(rows[0])
        return self._given(flat, np.ones(shape, bool), 0)

    def given(self, elements: Sequence[Element], mask: Mask, blank: int) -> str:
        """Rows that the host makes, [1, 1, rows, channels], with ``blank`` where the mask is not.

        Raises NoLanesError.
        """
        return self._given(list(elements) * len(mask), mask, blank)

    def _given(self, elements: Sequence[Element], mask: Mask, blank: int) -> str:
        """As ``given``, of elements row by row."""
        names = {name for name, _ in elements}
        if len(names) > 1:
            raise NoLanesError("the host's elements are of several tensors")
        (name,) = names
        count = self.graph.types[name].elements
        own = np.array([place for _, place in elements]).reshape(mask.shape)
        places = np.where(mask, own, count)
        key = (name, places.tobytes(), places.shape, blank)
        if key not in self._made:
            builder, stem = self.builder, f"{name}/rows"
            x = builder.node(Reshape((count,)), (self.read(name),), stem, name)
            more = builder.constant(f"{stem}/blank", np.array([blank], np.int8))
            x = builder.node(Concatenate(0), (x, more), stem, name)
            index = builder.constant(f"{stem}/places", places.reshape(-1).astype(np.int64))
            x = builder.node(Gather(0), (x, index), stem, name)
            x = builder.node(Reshape((1, 1, *places.shape)), (x,), stem, name)
            assert builder.types[x].dtype is DType.INT8
            self._made[key] = _Image(x, blank)
        return self._made[key].name


ROWWISE = (AnyAdd, Multiply, Lookup)
