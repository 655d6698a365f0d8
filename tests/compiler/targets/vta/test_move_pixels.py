"""Pixels that lie in one row, moved to the rows of an image."""

from dovetail.compiler.graph.ir import GraphBuilder
from dovetail.compiler.graph.operators.integer.windows import MaxPool2d
from dovetail.compiler.graph.operators.movement import Reshape, Transpose
from dovetail.compiler.graph.types import TensorType

from .test_parts import assert_exact, compiled


def test_patches_fold_into_an_image_of_many_rows() -> None:
    """Each of its 16 rows lies elsewhere: no smaller number of them is a period."""
    builder = GraphBuilder()
    x = builder.input("x", TensorType((1, 1, 257, 4), "int8"))
    y = builder.node(MaxPool2d((1, 2), (1, 1), (0, 0, 0, 0)), (x,), "pixels", "pool")
    for operator in (
        Reshape((2, 2, 8, 8, 4)),
        Transpose((2, 0, 3, 1, 4)),
        Reshape((1, 16, 16, 4)),
        MaxPool2d((3, 3), (1, 1), (1, 1, 1, 1)),
    ):
        y = builder.node(operator, (y,), "y", "folded")
    graph = builder.build((y,))
    assert_exact(graph, compiled(graph, "tiny"), "sim")
