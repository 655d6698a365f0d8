"""Cancel transposes and reshapes, so that activations stay NHWC.

    Transpose(Transpose(x))            ->  Transpose(x), one permutation after the other
    Transpose(x) that moves no element ->  Reshape(x)
    Reshape(Reshape(x))                ->  Reshape(x)
    Reshape(x) to x's own shape        ->  x
    f(Transpose(x))                    ->  Transpose(f(x)), f a Lookup of one table
    Add(Transpose(x), Transpose(y))    ->  Transpose(Add(x, y)), of one permutation
    NHWC(f(x, NCHW(y)))                ->  f(NHWC(x), y), f an Add or Multiply, of images

The first four and the last remove a node.  The others move a transpose one node nearer to the
outputs, where two meet or the graph ends; so the pass ends.
"""

from dovetail.isa.frozen import frozen

from ..ir import Graph, Node
from ..operators.integer.values import Add, Lookup, Multiply
from ..operators.movement import Reshape, Transpose
from ..rewrite import Rewriter, rewrite

__all__ = ["ConvertLayout", "sink_below_lookup"]

NCHW, NHWC = Transpose((0, 3, 1, 2)), Transpose((0, 2, 3, 1))
"""To the model's order of an image, and back."""


@frozen
class ConvertLayout:
    """See the module's docstring."""

    name: str = "convert_layout"

    def run(self, graph: Graph) -> Graph:
        """The rewritten graph; ``graph`` itself when nothing matches."""
        patterns = (
            *(_drop_reshape, _merge_reshapes, _merge_transposes, _drop_transpose),
            *(sink_below_lookup, _sink_below_add, _raise_above),
        )
        return rewrite(graph, patterns)


def _drop_reshape(rewriter: Rewriter, node: Node) -> str | None:
    if not isinstance(node.operator, Reshape):
        return None
    same = rewriter.graph.types[node.inputs[0]].shape == node.operator.shape
    return node.inputs[0] if same else None


def _merge_reshapes(rewriter: Rewriter, node: Node) -> str | None:
    if not isinstance(node.operator, Reshape):
        return None
    before = rewriter.graph.producer(node.inputs[0])
    if before is None or not isinstance(before.operator, Reshape):
        return None
    return rewriter.builder.node(node.operator, before.inputs, node.output, node.origin)


def _drop_transpose(rewriter: Rewriter, node: Node) -> str | None:
    if not isinstance(node.operator, Transpose):
        return None
    shape = rewriter.graph.types[node.inputs[0]].shape
    moved = [axis for axis in node.operator.permutation if shape[axis] != 1]
    if moved != sorted(moved):
        return None
    target = Reshape(rewriter.graph.types[node.output].shape)
    return rewriter.builder.node(target, node.inputs, node.output, node.origin)


def _merge_transposes(rewriter: Rewriter, node: Node) -> str | None:
    if not isinstance(node.operator, Transpose):
        return None
    before = rewriter.graph.producer(node.inputs[0])
    if before is None or not isinstance(before.operator, Transpose):
        return None
    first = before.operator.permutation
    merged = Transpose(tuple(first[axis] for axis in node.operator.permutation))
    return rewriter.builder.node(merged, before.inputs, node.output, node.origin)


def sink_below_lookup(rewriter: Rewriter, node: Node) -> str | None:
    if not isinstance(node.operator, Lookup) or rewriter.graph.types[node.inputs[1]].rank > 1:
        return None
    before = rewriter.producer(node.inputs[0])
    if before is None or not isinstance(before.operator, Transpose):
        return None
    inputs = (before.inputs[0], node.inputs[1])
    inner = rewriter.builder.node(node.operator, inputs, f"{node.output}/table", node.origin)
    return rewriter.builder.node(before.operator, (inner,), node.output, before.origin)


def _sink_below_add(rewriter: Rewriter, node: Node) -> str | None:
    if not isinstance(node.operator, Add):
        return None
    a, b = (rewriter.producer(name) for name in node.inputs)
    if a is None or b is None or a.operator != b.operator:
        return None
    if not isinstance(a.operator, Transpose):
        return None
    inputs = (a.inputs[0], b.inputs[0])
    inner = rewriter.builder.node(node.operator, inputs, f"{node.output}/sum", node.origin)
    return rewriter.builder.node(a.operator, (inner,), node.output, a.origin)


def _raise_above(rewriter: Rewriter, node: Node) -> str | None:
    if node.operator != NHWC:
        return None
    both = rewriter.producer(node.inputs[0])
    if both is None or not isinstance(both.operator, Add | Multiply):
        return None
    makers = [rewriter.graph.producer(name) for name in both.inputs]
    turned = [maker is not None and maker.operator == NCHW for maker in makers]
    if not any(turned):
        return None
    builder, inputs = rewriter.builder, list[str]()
    for name, maker, plain in zip(both.inputs, makers, turned, strict=True):
        if maker is not None and plain:
            inputs.append(maker.inputs[0])
        elif name in rewriter.graph.constants:
            (values,) = NHWC.evaluate([rewriter.graph.constants[name]])
            inputs.append(builder.constant(f"{name}/turned", values))
        else:
            inputs.append(builder.node(NHWC, (name,), f"{name}/turned", node.origin))
    return builder.node(both.operator, tuple(inputs), node.output, both.origin)
