"""Products of matrices with what is fused after them."""

from dovetail.compiler.define.definition import Definition
from dovetail.compiler.define.group import define_group
from dovetail.compiler.dtypes import DType
from dovetail.compiler.graph.ir import GraphBuilder
from dovetail.compiler.graph.operators.contractions import contract
from dovetail.compiler.graph.operators.elementwise import Binary
from dovetail.compiler.graph.operators.functions import BinaryFunction
from dovetail.compiler.graph.types import TensorType

__all__ = ["by_rows", "product"]


def product(rows: int, columns: int, depth: int) -> Definition:
    """``a @ b + bias``."""
    builder = GraphBuilder()
    kinds = TensorType((rows, depth), "float32"), TensorType((depth, columns), "float32")
    names = [builder.input(name, kind) for name, kind in zip("ab", kinds, strict=True)]
    bias = builder.input("bias", TensorType((columns,), "float32"))
    operator = contract(kinds, ((0, 1), (1, 2)), (0, 2), kinds[0].dtype)
    y = builder.node(operator, tuple(names), "y", "product")
    y = builder.node(Binary(BinaryFunction.ADD), (y, bias), "z", "sum")
    graph = builder.build((y,))
    return define_group(graph, graph.nodes)


def by_rows(rows: int, columns: int, depth: int, dtypes: tuple[DType, DType]) -> Definition:
    """``a @ b.T`` in int32, or float32 of floats."""
    builder = GraphBuilder()
    shapes = (rows, depth), (columns, depth)
    kinds = tuple(TensorType(*each) for each in zip(shapes, dtypes, strict=True))
    names = tuple(builder.input(name, kind) for name, kind in zip("ab", kinds, strict=True))
    total = DType.FLOAT32 if dtypes[0].is_float else DType.INT32
    operator = contract(kinds, ((0, 1), (2, 1)), (0, 2), total)
    graph = builder.build((builder.node(operator, names, "y", "product"),))
    return define_group(graph, graph.nodes)
