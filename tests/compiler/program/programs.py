"""Programs of random graphs, with loops and without, for one thread and for several."""

from dovetail.compiler.graph.ir import Graph, GraphBuilder
from dovetail.compiler.graph.operators.elementwise import Binary, BinaryFunction
from dovetail.compiler.graph.operators.repetition import Repeat
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.program.ir import Program
from dovetail.compiler.targets.cpu.llvm.compile import LlvmOptions
from dovetail.compiler.targets.cpu.segment import float_passes, lower_graph

from ..random_graphs import random_graph
from ..random_loops import drawn

__all__ = ["long_loop", "lowered", "random_program"]


def lowered(graph: Graph, threads: int = 1) -> Program:
    """The program of a graph as CPUs get it."""
    return lower_graph(float_passes(True).run(graph), LlvmOptions("avx2", threads))


def random_program(seed: int) -> Program:
    """Every other one has loops, and every third one threads."""
    graph = drawn(seed) if seed % 2 else random_graph(seed)
    return lowered(graph, 1 if seed % 3 else 3)


def long_loop(count: int) -> Program:
    """Sums of slices: a state, a slice that is read backwards, and what is collected."""
    inner = GraphBuilder()
    inner.input("number", TensorType((), "int64"))
    total = inner.input("total", TensorType((4,), "float32"))
    part = inner.input("part", TensorType((4,), "float32"))
    added = inner.node(Binary(BinaryFunction.ADD), (total, part), "sum", "add")
    twice = inner.node(Binary(BinaryFunction.MUL), (added, part), "product", "mul")
    body = inner.build((added, twice))
    builder = GraphBuilder()
    start = builder.input("start", TensorType((4,), "float32"))
    parts = builder.input("parts", TensorType((count, 4), "float32"))
    operator = Repeat(body, count, 1, (True,), (False,))
    return lowered(builder.build(builder.node_outputs(operator, (start, parts), "y", "loop")))
