"""Rows that are groups of a pixel's channels, as in the heads of detectors.

    RowSoftmax(Reshape(x[..., N, G*D] to [..., N, G, D]))
        ->  Reshape(Concatenate(RowSoftmax(Slice(x)), ...)), of one group each
    Requantize(Conv2d(Reshape(x[1, 1, N, G*D] to [1, N, G, D]))) of 1x1
        ->  Reshape(Requantize(Conv2d(x))), whose weights are those of one group for each of them

Groups of whole blocks are where the pixel's channels are, so nothing moves.  The first pattern
takes away a softmax of split channels, the second such a convolution; so the pass ends.
"""

import numpy as np

from dovetail.isa.frozen import frozen

from ....graph.ir import Graph, Node
from ....graph.operators.integer.products import Conv2d
from ....graph.operators.integer.softmax import RowSoftmax
from ....graph.operators.integer.values import Requantize
from ....graph.operators.movement import Concatenate, Reshape, Slice
from ....graph.passes.convert_layout import ConvertLayout
from ....graph.rewrite import Rewriter, rewrite
from ..operators import is_pointwise

__all__ = ["GroupedRows"]


@frozen
class GroupedRows:
    """See the module's docstring.  lanes: of a block."""

    lanes: int
    name: str = "grouped_rows"

    def run(self, graph: Graph) -> Graph:
        """The rewritten graph; ``graph`` itself when nothing matches."""
        grouped = rewrite(graph, (self._softmax, self._convolution))
        return graph if grouped is graph else ConvertLayout().run(grouped)

    def _groups(self, rewriter: Rewriter, name: str) -> tuple[str, int] | None:
        """The tensor whose channels ``name`` has in groups of whole blocks, and how many."""
        made = rewriter.graph.producer(name)
        if made is None or not isinstance(made.operator, Reshape):
            return None
        before, after = (rewriter.graph.types[each].shape for each in (made.inputs[0], name))
        if len(after) < 2:
            return None
        wide = [size for size in before[:-1] if size > 1]
        *outer, groups, size = after
        same = [each for each in outer if each > 1] == wide
        if groups < 2 or not same or groups * size != before[-1] or size % self.lanes:
            return None
        return made.inputs[0], groups

    def _softmax(self, rewriter: Rewriter, node: Node) -> str | None:
        found = self._groups(rewriter, node.inputs[0]) if node.inputs else None
        if found is None or not isinstance(node.operator, RowSoftmax):
            return None
        x, groups = found
        builder, shape = rewriter.builder, rewriter.graph.types[x].shape
        size, none, ones = shape[-1] // groups, (0,) * (len(shape) - 1), (1,) * len(shape)
        parts = []
        for group in range(groups):
            part = Slice((*none, group * size), ones, (*shape[:-1], size))
            some = builder.node(part, (x,), f"{node.output}/group", node.origin)
            parts.append(builder.node(node.operator, (some,), f"{node.output}/rows", node.origin))
        whole = Concatenate(len(shape) - 1)
        joined = builder.node(whole, tuple(parts), f"{node.output}/groups", node.origin)
        back = Reshape(rewriter.graph.types[node.output].shape)
        return builder.node(back, (joined,), node.output, node.origin)

    def _convolution(self, rewriter: Rewriter, node: Node) -> str | None:
        graph, builder = rewriter.graph, rewriter.builder
        total = rewriter.producer(node.inputs[0]) if node.inputs else None
        if not isinstance(node.operator, Requantize) or total is None:
            return None
        operator = total.operator
        found = self._groups(rewriter, total.inputs[0]) if total.inputs else None
        if found is None or not isinstance(operator, Conv2d) or operator.groups > 1:
            return None
        if not is_pointwise(graph, total) or not graph.constants.keys() >= {*total.inputs[1:]}:
            return None
        x, groups = found
        pixels = graph.types[x].shape[:-1]
        weights, bias = (graph.constants[name] for name in total.inputs[1:])
        scale = graph.constants[node.inputs[1]]
        rows, columns = weights.shape[0], weights.shape[-1]
        whole = np.full((groups, rows, groups, columns), operator.weight_zero_point, weights.dtype)
        for group in range(groups):
            whole[group, :, group] = weights.reshape(rows, columns)
        image = builder.node(
            Reshape((1, 1, int(np.prod(pixels)), groups * columns)),
            (x,),
            f"{total.output}/x",
            node.origin,
        )
        inputs = (
            image,
            builder.constant(f"{total.output}/groups", whole.reshape(-1, 1, 1, groups * columns)),
            builder.constant(f"{total.output}/biases", np.tile(bias, groups)),
        )
        sums = builder.node(operator, inputs, f"{total.output}/sums", total.origin)
        scales = np.tile(np.broadcast_to(scale, rows), groups)
        finish = (sums, builder.constant(f"{node.output}/scales", scales))
        made = builder.node(node.operator, finish, f"{node.output}/groups", node.origin)
        return builder.node(
            Reshape(graph.types[node.output].shape), (made,), node.output, node.origin
        )
