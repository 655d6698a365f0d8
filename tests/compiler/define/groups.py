"""Groups of contractions and what is fused with them, float and of bytes."""

from collections.abc import Iterator
from itertools import product

import numpy as np

from dovetail.compiler.graph.groups import group_nodes
from dovetail.compiler.graph.ir import Graph, GraphBuilder, Node
from dovetail.compiler.graph.operators.contractions import Axis, Contract, Convolution, contract
from dovetail.compiler.graph.operators.elementwise import Binary, Unary
from dovetail.compiler.graph.operators.functions import BinaryFunction, UnaryFunction
from dovetail.compiler.graph.operators.movement import PadTensor
from dovetail.compiler.graph.types import TensorType

__all__ = ["groups"]


def groups() -> Iterator[tuple[Graph, tuple[Node, ...]]]:
    """One at a time: each contraction with each epilogue."""
    for build, epilogue in product((_matrices, _image, _windows, _bytes), ("", "act", "border")):
        builder = GraphBuilder()
        y = build(builder)
        if epilogue:
            kind = builder.types[y]
            bias = builder.input("bias", TensorType((kind.shape[-1],), kind.dtype))
            y = builder.node(Binary(BinaryFunction.ADD), (y, bias), "biased", "b")
            y = builder.node(Unary(UnaryFunction.ABS), (y,), "activated", "a")
        if epilogue == "border":
            rank = kind.rank
            fill = builder.constant("fill", np.full((), 3, kind.dtype.numpy))
            pads = (*(0,) * (rank - 2), 1, 2), (*(0,) * (rank - 2), 2, 0)
            y = builder.node(PadTensor(*pads), (y, fill), "padded", "p")
        graph = builder.build((y,))
        for nodes in group_nodes(graph):
            yield graph, nodes


def _axes(*labels: int) -> tuple[Axis, ...]:
    return tuple(((label, 1),) for label in labels)


def _matrices(builder: GraphBuilder) -> str:
    kinds = TensorType((7, 5), "float32"), TensorType((5, 37), "float32")
    names = [builder.input(name, kind) for name, kind in zip("ab", kinds, strict=True)]
    operator = contract(kinds, ((0, 1), (1, 2)), (0, 2), kinds[0].dtype)
    return builder.node(operator, tuple(names), "y", "product")


def _image(builder: GraphBuilder) -> str:
    """A convolution of blocks of channels, strided."""
    x = builder.input("x", TensorType((1, 2, 9, 19, 4), "float32"))
    w = builder.input("w", TensorType((3, 2, 3, 3, 4, 16), "float32"))
    x_axes = (((0, 1),), ((5, 1),), ((2, 2), (6, 1)), ((3, 2), (7, 1)), ((8, 1),))
    operator = Contract(
        (1, 3, 4, 9, 16, 2, 3, 3, 4),
        (x_axes, _axes(1, 5, 6, 7, 8, 4)),
        _axes(0, 1, 2, 3, 4),
        "float32",
    )
    return builder.node(operator, (x, w), "y", "convolution")


def _windows(builder: GraphBuilder) -> str:
    x = builder.input("x", TensorType((1, 4, 6, 7), "float32"))
    w = builder.input("w", TensorType((6, 2, 3, 3), "float32"))
    operator = Convolution((2, 1), (1, 1), ((1, 1), (0, 2)), (1, 1), 2, "float32")
    return builder.node(operator, (x, w), "y", "windows")


def _bytes(builder: GraphBuilder) -> str:
    """Rows of bytes, by weights packed for dot products of four neighbours."""
    x = builder.input("x", TensorType((9, 12), "uint8"))
    w = builder.input("w", TensorType((2, 3, 16, 4), "int8"))
    x_axes = (((0, 1),), ((1, 4), (2, 1)))
    operator = Contract((9, 3, 4, 2, 16), (x_axes, _axes(3, 1, 4, 2)), _axes(0, 3, 4), "int32")
    return builder.node(operator, (x, w), "y", "bytes")
