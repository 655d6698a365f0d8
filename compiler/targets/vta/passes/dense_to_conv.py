"""Rewrite every dense layer as a convolution.

    Dense(Reshape(x))             ->  Reshape(Conv2d(x)) with a kernel as large as x
    Dense(Reshape(Transpose(x)))  ->  the same, with the kernel's elements in x's order
    Dense(x)                      ->  Reshape(Conv2d(Reshape(x))) with a 1x1 kernel

Each Dense is visited once and none is made, so the pass ends.
"""

import numpy as np

from dovetail.isa.frozen import frozen

from ....graph.ir import Array, Graph, GraphBuilder, Node
from ....graph.operators.integer.products import Conv2d, Dense
from ....graph.operators.movement import Reshape, Transpose

__all__ = ["DenseToConv"]


@frozen
class DenseToConv:
    """See the module's docstring."""

    name: str = "dense_to_conv"

    def run(self, graph: Graph) -> Graph:
        """The rewritten graph."""
        builder = GraphBuilder(
            list(graph.inputs), [], dict(graph.constants), {n: graph.types[n] for n in graph.inputs}
        )
        builder.types |= {name: graph.types[name] for name in graph.constants}
        for node in graph.nodes:
            if isinstance(node.operator, Dense) and graph.types[node.inputs[0]].shape[0] == 1:
                _rewrite(graph, builder, node)
            else:
                builder.nodes.append(node)
                builder.types |= {name: graph.types[name] for name in node.outputs}
        return builder.build(graph.outputs)


def _rewrite(graph: Graph, builder: GraphBuilder, node: Node) -> None:
    operator = node.operator
    assert isinstance(operator, Dense)
    weights = graph.constants[node.inputs[1]]
    image, kernel = _image(graph, node.inputs[0], weights)
    if image is None:
        image = builder.node(
            Reshape((1, 1, 1, weights.shape[1])), node.inputs[:1], f"{node.output}/x", node.origin
        )
        kernel = weights.reshape(len(weights), 1, 1, -1)
    constant = builder.constant(f"{node.output}/kernel", kernel)
    zero_points = (operator.zero_point, operator.weight_zero_point)
    conv = Conv2d((1, 1), (0, 0, 0, 0), 1, *zero_points)
    inputs = (image, constant, node.inputs[2])
    out = builder.node(conv, inputs, f"{node.output}/conv", node.origin)
    reshape = Reshape(graph.types[node.output].shape)
    builder.nodes.append(Node(reshape, (out,), node.output, node.origin))
    builder.types[node.output] = graph.types[node.output]


def _image(graph: Graph, name: str, weights: Array) -> tuple[str | None, Array]:
    """The NHWC tensor behind a flattening, and the weights as OHWI; None when there is none."""
    node = graph.producer(name)
    while node and isinstance(node.operator, Reshape):
        source = node.inputs[0]
        shape = graph.types[source].shape
        before = graph.producer(source)
        if before and isinstance(before.operator, Transpose):
            image = before.inputs[0]
            if before.operator.permutation == (0, 3, 1, 2):
                _, height, width, channels = graph.types[image].shape
                kernel = weights.reshape(len(weights), channels, height, width)
                return image, np.ascontiguousarray(kernel.transpose(0, 2, 3, 1))
            return None, weights
        if len(shape) == 4 and shape[1:3] == (1, 1) and not _is_reshape(before):
            return source, weights.reshape(len(weights), 1, 1, shape[3])
        node = before
    return None, weights


def _is_reshape(node: Node | None) -> bool:
    return node is not None and isinstance(node.operator, Reshape)
