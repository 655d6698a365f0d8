"""An operator's sum of products, as the rules see it."""

from dovetail.compiler.define.group import define_group
from dovetail.compiler.graph.ir import GraphBuilder
from dovetail.compiler.graph.operators.contractions import Contract
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.schedule.rules.cpu.products import Products, products_of
from dovetail.compiler.schedule.steps.reduction import read_reduction

__all__ = ["products"]


def products(operator: Contract) -> Products:
    """Products of operands that are as large as they need to be."""
    builder = GraphBuilder()
    names = [
        builder.input(f"x{n}", TensorType(tuple(map(operator.extent, axes)), operator.dtype))
        for n, axes in enumerate(operator.operands)
    ]
    graph = builder.build((builder.node(operator, tuple(names), "y", "test"),))
    return products_of(read_reduction(define_group(graph, graph.nodes).function, "acc0", "test"))
