"""Tables of channels as the vector unit has them.

    Lookup(x, table[C, 256])  ->  Requantize(Conv2d(x)), depthwise, of one tap, where that is exact;
                                  without biases where the channels have one zero point
    Lookup(x, table[C, 256])  ->  Concatenate(Requantize(Conv2d(Slice(x))), Lookup(Slice(x)), ...),
                                  convolutions of all blocks of channels between two that have none

TAB holds a table for each lane, so a block of channels may have as many.  What is made has no table
for more channels than a block, so the pass ends.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.frozen import frozen

from ....graph.ir import Graph, GraphBuilder, Node
from ....graph.operators.integer.products import Conv2d
from ....graph.operators.integer.values import Lookup, Requantize
from ....graph.operators.movement import Concatenate, Reshape, Slice
from ....graph.rewrite import Rewriter, rewrite
from .affine import Affine, find_affine, find_blocks, joined
from .shared_forms import Shared, find_shared

__all__ = ["ChannelTables"]


@frozen
class ChannelTables:
    """lanes: channels of a block."""

    lanes: int
    name: str = "channel_tables"

    def run(self, graph: Graph) -> Graph:
        """The rewritten graph; ``graph`` itself when nothing matches."""
        return rewrite(graph, (self._rewrite,))

    def _rewrite(self, rewriter: Rewriter, node: Node) -> str | None:
        if not isinstance(node.operator, Lookup):
            return None
        table = rewriter.graph.constants[node.inputs[1]]
        if table.ndim == 1:
            return None
        shape = rewriter.graph.types[node.output].shape
        if len(shape) != 4:
            return _as_image(rewriter, node) if set(shape[:-1]) <= {1} else None
        if shape[0] != 1:
            return None
        rows = np.asarray(table, np.int8)
        shared = find_shared(rows)
        if shared is not None:
            return _scaled(rewriter.builder, node, shared)
        pieces = list(_pieces(rows, self.lanes))
        if len(pieces) > 1:
            return _joined(rewriter, node, rows, pieces)
        form = pieces[0].form
        if form is None:
            return None
        return _product(rewriter.builder, node, node.inputs[0], node.output, form)


@frozen
class _Piece:
    """Channels from ``first`` to before ``end``, and their form, if they have one."""

    first: int
    end: int
    form: Affine | None


def _pieces(table: NDArray[np.int8], lanes: int) -> Iterator[_Piece]:
    """Runs of blocks that have a form with the limits of all, and the others one by one."""
    forms = find_blocks(table, lanes)
    for formed, run in groupby(range(len(forms)), key=lambda block: forms[block] is not None):
        blocks = list(run)
        if formed:
            found = [form for block in blocks if (form := forms[block])]
            end = min(len(table), (blocks[-1] + 1) * lanes)
            yield _Piece(blocks[0] * lanes, end, joined(found))
            continue
        for first in (block * lanes for block in blocks):
            end = min(len(table), first + lanes)
            yield _Piece(first, end, find_affine(table[first:end]))


def _joined(
    rewriter: Rewriter, node: Node, table: NDArray[np.int8], pieces: Sequence[_Piece]
) -> str:
    """Each piece separately, side by side."""
    builder, shape = rewriter.builder, rewriter.graph.types[node.output].shape
    parts = []
    for piece in pieces:
        stem, size = f"{node.output}/{piece.first}", (*shape[:3], piece.end - piece.first)
        part = Slice((0, 0, 0, piece.first), (1, 1, 1, 1), size)
        x = builder.node(part, node.inputs[:1], f"{stem}/x", node.origin)
        if piece.form:
            parts.append(_product(builder, node, x, stem, piece.form))
        else:
            rows = builder.constant(f"{stem}/table", table[piece.first : piece.end].copy())
            parts.append(builder.node(Lookup(), (x, rows), stem, node.origin))
    return builder.node(Concatenate(3), tuple(parts), node.output, node.origin)


def _as_image(rewriter: Rewriter, node: Node) -> str:
    """The same of an image of one pixel."""
    builder, shape = rewriter.builder, rewriter.graph.types[node.output].shape
    pixel = Reshape((1, 1, 1, shape[-1]))
    x = builder.node(pixel, node.inputs[:1], f"{node.output}/x", node.origin)
    y = builder.node(node.operator, (x, node.inputs[1]), f"{node.output}/y", node.origin)
    return builder.node(Reshape(shape), (y,), node.output, node.origin)


def _scaled(builder: GraphBuilder, node: Node, form: Shared) -> str:
    """The convolution in place of ``node``, without biases."""
    channels, stem = len(form.signs), node.output
    inputs = (
        node.inputs[0],
        builder.constant(f"{stem}/weights", form.signs.reshape(channels, 1, 1, 1)),
        builder.constant(f"{stem}/bias", np.zeros(channels, np.int32)),
    )
    conv = Conv2d((1, 1), (0, 0, 0, 0), channels, form.zero_point)
    total = builder.node(conv, inputs, f"{stem}/sum", node.origin)
    scale = builder.constant(f"{stem}/scale", form.scales)
    finish = Requantize(form.added, form.low, form.high)
    return builder.node(finish, (total, scale), stem, node.origin)


def _product(builder: GraphBuilder, node: Node, x: str, stem: str, form: Affine) -> str:
    """The convolution of ``x``, called ``stem``, in place of some channels of ``node``."""
    channels = len(form.taps)
    inputs = (
        x,
        builder.constant(f"{stem}/weights", form.taps.reshape(channels, 1, 1, 1)),
        builder.constant(f"{stem}/bias", form.biases),
    )
    total = builder.node(
        Conv2d((1, 1), (0, 0, 0, 0), channels, 0), inputs, f"{stem}/sum", node.origin
    )
    scale = builder.constant(f"{stem}/scale", form.scales)
    return builder.node(Requantize(0, form.low, form.high), (total, scale), stem, node.origin)
