"""Movements of pixels and channels as layers of the accelerator.

    Transpose, Reshape, Slice, Gather from an image to an image
        ->  copies of strided pixels, Gather of channels, Concatenate of channels, Assemble
    Concatenate of rows or columns  ->  Assemble; of slices of one image, as in a roll, a movement

This is how channels are shuffled, rows and columns are cut, skipped or repeated, and depth becomes
space or space depth.  Each element of the last image is given its number in the first.  With some
period of rows and columns, the pixels of each phase then come from rows and columns that are evenly
apart.  What the host gives it moves itself, where that takes many pieces.  Each chain is visited
once, so the pass ends.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from dovetail.isa.frozen import frozen, replace

from ....dtypes import DType
from ....graph.ir import Graph, GraphBuilder, Node
from ....graph.operators.assembly import Assemble
from ....graph.operators.indexing import Gather
from ....graph.operators.integer.norm import RowNorm
from ....graph.operators.integer.products import Conv2d, RowProducts
from ....graph.operators.integer.softmax import RowSoftmax
from ....graph.operators.integer.values import Lookup
from ....graph.operators.integer.windows import AveragePool2d, MaxPool2d, Upsample2d
from ....graph.operators.movement import Concatenate, Reshape, Slice, Transpose
from ....graph.passes.eliminate_dead import EliminateDead
from ..capabilities import is_alias
from ..operators import AnyAdd, AnyMultiply, AnyRequantize
from .own_parts import is_channel_slice
from .pixel_pieces import Indices, Picture, Piece, Run, numbers_of, pieces_of
from .turned_rows import ANY, is_longer

__all__ = ["MovePixels"]

MOVES = (Transpose, Reshape, Slice, Gather)
POOLS = (MaxPool2d, AveragePool2d, Upsample2d)
LAYERS = (
    *(Conv2d, RowNorm, RowProducts, RowSoftmax, AnyAdd, AnyMultiply),
    *(*POOLS, Lookup, Concatenate, Assemble),
)
MADE = (*LAYERS, AnyRequantize)
HOST_MOVES = (Transpose, Reshape)
"""Movements that the host has."""
MOST_PICKED = 4
"""Pieces of a tensor of the host whose channels do not follow each other, at most, if the host has
the movements: each is a product, and copies.
"""
TO_NHWC = Transpose((0, 2, 3, 1))


@frozen
class MovePixels:
    """See the module's docstring.

    longest: as of ``TurnedRows``.
    """

    longest: int = ANY
    name: str = "move_pixels"

    def run(self, graph: Graph) -> Graph:
        """The rewritten graph; ``graph`` itself when there is nothing to move."""
        moving = _Moving(graph, self.longest)
        for node in graph.nodes:
            moving.visit(node)
        return EliminateDead().run(moving.builder.build(graph.outputs)) if moving.moved else graph


@dataclass(slots=True)
class _Moving:
    graph: Graph
    longest: int
    builder: GraphBuilder = field(init=False)
    producers: Mapping[str, Node] = field(init=False)
    images: dict[str, str] = field(default_factory=dict)
    """Tensors of the host as NHWC."""
    renamed: dict[str, str] = field(default_factory=dict)
    moved: bool = False
    """True if something is moved."""

    def __post_init__(self) -> None:
        graph = self.graph
        self.builder = GraphBuilder.over(graph)
        self.producers = {node.output: node for node in graph.nodes}

    def visit(self, node: Node) -> None:
        """Add what stands for ``node``: itself, or what its chain becomes, under its name."""
        node = replace(node, inputs=tuple(self.renamed.get(name, name) for name in node.inputs))
        if node.operator == TO_NHWC and node.output not in self.graph.outputs:
            self.renamed[node.output] = self.images.setdefault(node.inputs[0], node.output)
            if self.renamed[node.output] != node.output:
                return
        if self.is_movement(node) and self.is_read_by_layers(node) and not self.is_name(node):
            found = self.picture(node)
            if found is not None and self.emit(*found, node):
                last = self.builder.nodes.pop()
                self.builder.nodes.append(replace(last, output=node.output))
                self.moved = True
                return
        if self.joins_pixels(node):
            node = replace(node, operator=self.stacked(node))
            self.moved = True
        self.builder.nodes.append(node)

    def is_name(self, node: Node) -> bool:
        """True if a layer makes what ``node`` is, perhaps some of its channels, but for a name."""
        before = self.producers.get(node.inputs[0])
        if not is_alias(self.graph, node) or before is None:
            return False
        channels = is_channel_slice(before, self.graph.types)
        return channels or not self.is_movement(before)

    def joins_pixels(self, node: Node) -> bool:
        """True if layers read rows or columns that it puts one after the other."""
        operator = node.operator
        along = isinstance(operator, Concatenate) and operator.axis in (1, 2)
        return along and any(map(self.is_read_by_layers, (node, *self.channels_of(node))))

    def channels_of(self, node: Node) -> list[Node]:
        """Slices of some of its channels."""
        readers = self.graph.consumers(node.output)
        return [each for each in readers if is_channel_slice(each, self.graph.types)]

    def stacked(self, node: Node) -> Assemble:
        """The operands of a Concatenate, each after the one before."""
        assert isinstance(node.operator, Concatenate)
        axis, starts, at = node.operator.axis, [], 0
        for name in node.inputs:
            starts.append((at, 0) if axis == 1 else (0, at))
            at += self.graph.types[name].shape[axis]
        _, height, width, _ = self.graph.types[node.output].shape
        return Assemble((height, width), tuple(starts), (1, 1))

    def is_movement(self, node: Node) -> bool:
        """True if it moves elements of one tensor to places that are known."""
        if isinstance(node.operator, Concatenate):
            return self.rolls(node)
        known = all(name in self.graph.constants for name in node.inputs[1:])
        return isinstance(node.operator, MOVES) and known

    def rolls(self, node: Node) -> bool:
        """True if it puts parts of one image together along rows or columns."""
        along = isinstance(node.operator, Concatenate) and node.operator.axis in (1, 2)
        parts = [self.producers.get(name) for name in node.inputs]
        sliced = [part is not None and isinstance(part.operator, Slice) for part in parts]
        sources = {
            part.inputs[0] if part is not None and is_sliced else name
            for name, part, is_sliced in zip(node.inputs, parts, sliced, strict=True)
        }
        several = None not in parts and len(parts) > 1
        return along and several and any(sliced) and len(sources) == 1

    def is_read_by_layers(self, node: Node) -> bool:
        kind = self.graph.types[node.output]
        if kind.rank != 4 or kind.shape[0] != 1 or kind.dtype != DType.INT8:
            return False
        if node.output in self.graph.outputs:
            return False
        return any(
            isinstance(each.operator, LAYERS) and not is_longer(self.graph, each, self.longest)
            for each in self.graph.consumers(node.output)
        )

    def source(self, node: Node) -> tuple[str, Node]:
        """The tensor before the movements up to ``node``, and the first of them."""
        while (before := self.producers.get(node.inputs[0])) is not None:
            if not self.is_movement(before):
                break
            node = before
        return node.inputs[0], node

    def may_host(self, node: Node) -> bool:
        """True if the host has all movements up to ``node``."""
        while self.is_movement(node) and isinstance(node.operator, HOST_MOVES):
            before = self.producers.get(node.inputs[0])
            if before is None or not self.is_movement(before):
                return True
            node = before
        return False

    def moved_numbers(self, name: str, known: dict[str, Indices]) -> Indices:
        """The numbers of the elements of a tensor in the one that movements make it of.

        known: of tensors that were looked at, the first one among them.
        """
        if name not in known:
            node = self.producers[name]
            count = len(node.inputs) if isinstance(node.operator, Concatenate) else 1
            values = [self.moved_numbers(each, known) for each in node.inputs[:count]]
            constants = [self.graph.constants[each] for each in node.inputs[count:]]
            (known[name],) = node.operator.evaluate([*values, *constants])
        return known[name]

    def picture(self, node: Node) -> tuple[str, Picture] | None:
        """The image that all comes from, and what the last image is made of.

        A tensor of the host may be planes or pixels: what makes fewer pieces is taken.
        """
        source, first = self.source(node)
        shape = self.graph.types[source].shape
        if len(shape) != 4 or shape[0] != 1 or self.graph.types[source].dtype != DType.INT8:
            return None
        maker = self.producers.get(source)
        made = (
            maker is not None
            and isinstance(maker.operator, MADE)
            and not is_longer(self.graph, maker, self.longest)
        )
        pictures: dict[bool, Picture] = {}
        for planes in [False] if made else [False, True]:
            values = self.moved_numbers(node.output, {source: numbers_of(shape, planes)})
            found = pieces_of(values[0], (*shape[2:], shape[1]) if planes else shape[1:])
            if found is not None:
                pictures[planes] = found
        if not pictures:
            return None
        planes = min(pictures, key=lambda order: pictures[order].pieces)
        if not made and pictures[planes].picked > MOST_PICKED and self.may_host(node):
            return None
        image = self.image(source, first.origin) if planes else source
        return image, pictures[planes]

    def image(self, name: str, origin: str) -> str:
        """A tensor of the host as NHWC."""
        if name not in self.images:
            self.images[name] = self.builder.node(TO_NHWC, (name,), f"{name}/image", origin)
        return self.images[name]

    def emit(self, x: str, picture: Picture, node: Node) -> bool:
        """Add the nodes that put all together, the last of them last; whether there are any."""
        several = len(picture.parts) > 1
        parts = [self.phase(x, pieces, node, several) for pieces in picture.parts]
        if not several:
            return parts[0] != x
        size = self.graph.types[node.output].shape[1:3]
        whole = Assemble((size[0], size[1]), picture.starts, picture.steps)
        self.builder.node(whole, tuple(parts), node.output, node.origin)
        return True

    def phase(self, x: str, pieces: list[Piece], node: Node, made_anew: bool) -> str:
        """The result's pixels of one phase."""
        made = [self.piece(x, piece, node, made_anew) for piece in pieces]
        if len(made) == 1:
            return made[0]
        whole = self.builder.node(Concatenate(3), tuple(made), f"{node.output}/parts", node.origin)
        places = np.argsort(np.concatenate([piece.places for piece in pieces]))
        return self.channels(whole, tuple(int(place) for place in places), node, made_anew)

    def piece(self, x: str, piece: Piece, node: Node, made_anew: bool) -> str:
        """Some channels of some pixels."""
        x = self.channels(x, piece.channels, node, made_anew)
        _, height, width, _ = self.builder.types[x].shape
        rows, columns = piece.rows, piece.columns
        if (rows, columns) == (Run(0, 1, height), Run(0, 1, width)):
            return x
        copy = AveragePool2d(
            (1, 1),
            (rows.step, columns.step),
            0,
            0,
            1.0,
            (rows.start, columns.start),
            (rows.count, columns.count),
        )
        return self.builder.node(copy, (x,), f"{node.output}/pixels", node.origin)

    def channels(self, x: str, channels: tuple[int, ...], node: Node, made_anew: bool) -> str:
        """Some channels; as a slice, unless a tensor of its own is wanted."""
        shape = self.builder.types[x].shape
        if channels == tuple(range(shape[3])):
            return x
        first, count = channels[0], len(channels)
        if channels == tuple(range(first, first + count)) and not made_anew:
            part = Slice((0, 0, 0, first), (1, 1, 1, 1), (*shape[:3], count))
            return self.builder.node(part, (x,), f"{node.output}/channels", node.origin)
        places = self.builder.constant(f"{node.output}/places", np.array(channels, np.int64))
        return self.builder.node(Gather(3), (x, places), f"{node.output}/channels", node.origin)
