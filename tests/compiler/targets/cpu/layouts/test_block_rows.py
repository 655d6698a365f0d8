"""Large tensors computed a block of rows at a time, against the graph as it was."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from dovetail.compiler.graph.interpreter import run
from dovetail.compiler.graph.ir import Graph, GraphBuilder
from dovetail.compiler.graph.operators.contractions import contract
from dovetail.compiler.graph.operators.elementwise import Binary, BinaryFunction, Where
from dovetail.compiler.graph.operators.repetition import Repeat
from dovetail.compiler.graph.operators.rows import SoftmaxRows
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.graph.verify import verify
from dovetail.compiler.pipeline.passes import Pipeline
from dovetail.compiler.targets.cpu.layouts.block_rows import BlockRows
from dovetail.compiler.targets.cpu.llvm.compile import LlvmOptions
from dovetail.compiler.targets.cpu.segment import compile_segment

PASS = BlockRows(largest=1000, block=700)
Shape = tuple[int, ...]


@dataclass
class Attention:
    """``softmax(q @ k + mask) @ v``, letters of the labels as in einsum."""

    sizes: dict[str, int]
    labels: tuple[str, str, str, str, str] = ("bhqd", "bhkd", "bhqk", "bhke", "bhqe")
    masks: tuple[Shape, ...] = ()
    same: bool = False
    returned: bool = False
    builder: GraphBuilder = field(default_factory=GraphBuilder)

    def operand(self, name: str, labels: str) -> str:
        shape = tuple(self.sizes[each] for each in labels)
        return self.builder.input(name, TensorType(shape, "float32"))

    def product(self, names: tuple[str, str], labels: tuple[str, str, str]) -> str:
        numbers = [[ord(each) for each in one] for one in labels]
        kinds = [self.builder.types[name] for name in names]
        operator = contract(kinds, numbers[:2], numbers[2], kinds[0].dtype)
        return self.builder.node(operator, names, "product", "product")

    def graph(self) -> Graph:
        b = self.builder
        q, k, s, v, y = self.labels
        first = self.operand("q", q)
        scores = self.product((first, first if self.same else self.operand("k", k)), (q, k, s))
        for number, shape in enumerate(self.masks):
            mask = b.input(f"mask{number}", TensorType(shape, "float32"))
            scores = b.node(Binary(BinaryFunction.ADD), (scores, mask), "masked", "mask")
        zero = b.constant("zero", np.zeros((), np.float32))
        less = b.node(Binary(BinaryFunction.LT), (scores, zero), "less", "mask")
        half = b.constant("half", np.full((), 0.5, np.float32))
        scaled = b.node(Binary(BinaryFunction.MUL), (scores, half), "scaled", "mask")
        chosen = b.node(Where(), (less, scaled, scores), "chosen", "mask")
        rows = b.node(SoftmaxRows(), (chosen,), "rows", "softmax")
        result = self.product((rows, self.operand("v", v)), (s, v, y))
        return b.build((result, rows) if self.returned else (result,))


def inputs_of(graph: Graph) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(4)
    return {
        name: generator.standard_normal(graph.types[name].shape, np.float32)
        for name in graph.inputs
    }


HEADS = {"b": 2, "h": 3, "q": 24, "k": 20, "d": 5, "e": 4}
CASES = [
    Attention(HEADS),
    Attention(HEADS, masks=((2, 1, 1, 20), (24, 20), (1, 3, 24, 1), (1,))),
    Attention({**HEADS, "b": 1}, masks=((1, 1, 24, 20),)),
    Attention(HEADS, ("bqhd", "bkhd", "bhqk", "bkhe", "bqhe")),
    Attention({**HEADS, "k": 24}, ("bhqd", "bhkd", "bhqk", "bhke", "bhqe"), same=True),
    Attention(HEADS, ("qd", "kd", "qk", "ke", "eq")),
    Attention(HEADS, ("hqd", "kd", "hqk", "hke", "qhe")),
]


@pytest.mark.parametrize("case", range(len(CASES)))
@pytest.mark.parametrize("threads", [1, 3])
def test_blocks_give_the_results_of_the_whole(case: int, threads: int) -> None:
    attention = CASES[case]
    attention.builder = GraphBuilder()
    graph = attention.graph()
    blocked = PASS.run(graph)
    verify(blocked)
    assert any(isinstance(node.operator, Repeat) for node in blocked.nodes)
    scores = tuple(attention.sizes[each] for each in attention.labels[2])
    assert scores not in {kind.shape for kind in blocked.types.values()}
    inputs = inputs_of(graph)
    expected, found = run(graph, inputs), run(blocked, inputs)
    compiled = compile_segment(graph, LlvmOptions(threads=threads), Pipeline((PASS,))).run(inputs)
    for name in graph.outputs:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(compiled[name], expected[name], rtol=1e-5, atol=1e-6)


def test_what_is_returned_or_small_stays_whole() -> None:
    graph = Attention(HEADS, returned=True).graph()
    assert PASS.run(graph) is graph
    graph = Attention(HEADS).graph()
    assert BlockRows(largest=1 << 20).run(graph) is graph


def test_a_prime_number_of_rows_stays_whole() -> None:
    graph = Attention({**HEADS, "q": 97}, ("qd", "kd", "qk", "ke", "qe")).graph()
    assert PASS.run(graph) is graph


def test_blocks_take_less_memory() -> None:
    graph = Attention({"b": 1, "h": 4, "q": 512, "k": 512, "d": 8, "e": 8}).graph()
    inputs = inputs_of(graph)
    whole = compile_segment(graph, passes=Pipeline(()))
    blocked = compile_segment(graph)
    assert whole.code.memory_bytes > 8 * 512 * 512 * 4 * 0.9
    assert blocked.code.memory_bytes < 4 * (1 << 18)
    for name in graph.outputs:
        a, b = whole.run(inputs)[name], blocked.run(inputs)[name]
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_weights_that_each_block_would_read_anew_are_read_once() -> None:
    """Two dense layers: 16 rows between weights of two times 400 kB, then between small ones."""
    wide = Attention({"q": 16, "d": 100, "k": 1000, "e": 100}, ("qd", "kd", "qk", "ke", "qe"))
    graph = wide.graph()
    few = BlockRows(largest=1000, block=1 << 15, near=1 << 16)
    assert few.run(graph) is graph
    assert BlockRows(largest=1000, block=1 << 15, near=1 << 20).run(graph) is not graph
    long = {"q": 1024, "d": 10, "k": 100, "e": 10}
    rows = Attention(long, ("qd", "kd", "qk", "ke", "qe")).graph()
    assert few.run(rows) is not rows
