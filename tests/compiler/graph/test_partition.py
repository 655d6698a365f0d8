"""Pieces of a graph, run one after the other, give what the graph gives."""

import itertools
import random

import numpy as np
import pytest

from dovetail.compiler.graph.interpreter import run
from dovetail.compiler.graph.ir import Graph, GraphBuilder, Node
from dovetail.compiler.graph.operators.integer.conversions import Dequantize, Quantize, Shift128
from dovetail.compiler.graph.operators.integer.values import Add, Lookup
from dovetail.compiler.graph.operators.integer.windows import MaxPool2d
from dovetail.compiler.graph.operators.movement import Reshape
from dovetail.compiler.graph.partition import Costs, Placed, cut, place_nodes
from dovetail.compiler.graph.types import TensorType

SHAPE = (1, 2, 3, 4)
SUM = Add(0.5, 0.25, 3, -7, 1, -128, 127)
FREE = Costs(lambda graph, node: 0, lambda graph, node: None, 0, 0)


def random_graph(seed: int, *, constant: bool = False) -> Graph:
    """Bytes of one shape, with floats here and there, several inputs and outputs; constant: one
    more of these.
    """
    rng, b = random.Random(seed), GraphBuilder()
    table = b.constant("table", np.random.default_rng(seed).integers(-128, 128, 256, np.int8))
    tensors = [b.input(f"x{n}", TensorType(SHAPE, "int8")) for n in range(rng.randint(1, 2))]
    floats = b.input("f", TensorType(SHAPE, "float32"))
    tensors.append(b.node(Quantize(0.5, 3), (floats,), "q", "q"))
    for number in range(rng.randint(2, 24)):
        x, y = (rng.choice(tensors[-5:]) for _ in range(2))
        name = f"n{number}"
        match rng.randrange(5):
            case 0:
                tensors.append(b.node(SUM, (x, y), name, name))
            case 1:
                tensors.append(b.node(MaxPool2d((1, 1), (1, 1), (0,) * 4), (x,), name, name))
            case 2:
                real = b.node(Dequantize(0.25, 1), (x,), f"{name}.real", name)
                tensors.append(b.node(Quantize(0.5, -3), (real,), name, name))
            case _:
                tensors.append(b.node(Lookup(), (x, table), name, name))
    outputs = [b.node(Shift128("uint8"), (tensors[-1],), "u", "u")]
    outputs += rng.sample([node.output for node in b.nodes[:-1]], rng.randint(0, 2))
    outputs += [table] * constant
    return b.build(tuple(outputs))


def is_host(node: Node) -> bool:
    return isinstance(node.operator, Quantize | Dequantize | Shift128 | Reshape)


def placed(graph: Graph, seed: int, costs: Costs = FREE) -> Placed:
    rng = random.Random(seed)
    own = [not is_host(node) and rng.random() < 0.7 for node in graph.nodes]
    return place_nodes(graph, own, costs)


@pytest.mark.parametrize("seed", range(60))
def test_pieces_one_after_the_other_are_the_graph(seed: int) -> None:
    graph = random_graph(seed, constant=seed % 3 == 0)
    found = placed(graph, seed)
    pieces = cut(found, is_host)
    rng = np.random.default_rng(seed)
    values = {name: rng.integers(-128, 128, SHAPE).astype(np.int8) for name in graph.inputs}
    values["f"] = rng.normal(0, 30, SHAPE).astype(np.float32)
    wanted = run(graph, values)
    for piece in pieces:
        given = {name: values[name] for name in piece.graph.inputs}
        results = run(piece.graph, given)
        values |= {name: results[name] for name in piece.graph.outputs}
    for name in graph.outputs:
        np.testing.assert_array_equal(values[name], wanted[name])
    assert all(a.own != b.own for a, b in itertools.pairwise(pieces))
    shares = [piece.share for piece in pieces if piece.own]
    assert not shares or sum(shares) == pytest.approx(1)
    outer = {*graph.inputs, *graph.outputs}
    own = {node.output for node, own in zip(graph.nodes, found.own, strict=True) if own}
    for piece in pieces:
        layers = {node.output for node in piece.graph.nodes if not is_host(node)}
        assert layers <= own if piece.own else not layers & own
        for name in {*piece.graph.inputs, *piece.graph.outputs} - outer:
            assert graph.types[name].dtype == "int8"


def chain(*kinds: str) -> Graph:
    """A chain of nodes: t for a table, c for one that only the CPU has."""
    b = GraphBuilder()
    x = b.input("x", TensorType(SHAPE, "int8"))
    table = b.constant("table", np.arange(-128, 128).astype(np.int8)[::-1].copy())
    for number, kind in enumerate(kinds):
        if kind == "t":
            x = b.node(Lookup(), (x, table), f"t{number}", f"t{number}")
        else:
            x = b.node(Add(1, 1, 0, 0, 0, -128, 127), (x, x), f"c{number}", f"c{number}")
    return b.build((x,))


def sides(graph: Graph, launch: float) -> str:
    costs = Costs(lambda graph, node: 0, lambda graph, node: 1, launch, 0)
    own = [isinstance(node.operator, Lookup) for node in graph.nodes]
    found = place_nodes(graph, own, costs).own
    return "".join("a" if each else "." for each in found)


@pytest.mark.parametrize(
    ("launch", "wanted"),
    [(0.5, "aa.a.aaaa"), (1.5, "aa...aaaa"), (3, ".....aaaa"), (9, ".....aaaa")],
)
def test_islands_cheaper_than_a_launch_stay_on_the_cpu(launch: float, wanted: str) -> None:
    assert sides(chain(*"ttctctttt"), launch) == wanted


def test_bytes_that_are_no_int8_do_not_cross() -> None:
    b = GraphBuilder()
    x = b.input("x", TensorType(SHAPE, "int8"))
    real = b.node(Dequantize(0.5, 0), (x,), "real", "real")
    graph = b.build((b.node(Quantize(0.5, 0), (real,), "q", "q"),))
    assert place_nodes(graph, [True, True], FREE).own == (True, True)
    assert place_nodes(graph, [True, False], FREE).own == (False, False)
