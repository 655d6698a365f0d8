"""The text form of graphs round-trips, and says where it is wrong."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.compiler.errors import GraphError
from dovetail.compiler.graph.ir import GraphBuilder
from dovetail.compiler.graph.operators.integer.values import Add, Lookup
from dovetail.compiler.graph.operators.integer.windows import AveragePool2d, MaxPool2d, Pad
from dovetail.compiler.graph.operators.movement import Reshape, Transpose
from dovetail.compiler.graph.parse import parse_text
from dovetail.compiler.graph.text import to_text
from dovetail.compiler.graph.types import TensorType

from ..random_graphs import random_graph
from .graphs import assert_same_meaning, convolution, image_builder

NAMES = st.text(min_size=1, max_size=12)
RATIOS = st.floats(1e-6, 1e6)
INT8 = st.integers(-128, 127)


@given(st.data())
def test_text_parses_back_to_the_same_graph(data: st.DataObject) -> None:
    draw = data.draw
    builder, name = GraphBuilder(), draw(NAMES)
    x = builder.input(name, TensorType((1, 4, 4, 2), "int8"))
    for _ in range(draw(st.integers(1, 6))):
        stem, origin = draw(NAMES), draw(NAMES)
        match draw(st.integers(0, 6)):
            case 0:
                add = Add(draw(RATIOS), draw(RATIOS), *draw(st.tuples(INT8, INT8, INT8)), -5, 9)
                x = builder.node(add, (x, x), stem, origin)
            case 1:
                size = draw(st.sampled_from([256]))
                table = builder.constant(draw(NAMES), np.arange(size).astype(np.int8))
                x = builder.node(Lookup(), (x, table), stem, origin)
            case 2:
                pool = AveragePool2d((1, 1), (1, 1), draw(INT8), draw(INT8), draw(RATIOS))
                x = builder.node(pool, (x,), stem, origin)
            case 3:
                x = builder.node(MaxPool2d((1, 1), (1, 1), (0, 0, 0, 0)), (x,), stem, origin)
            case 4:
                x = builder.node(Pad((0, 1, 0, 1), draw(INT8)), (x,), stem, origin)
            case 5:
                x = builder.node(Transpose((0, 2, 1, 3)), (x,), stem, origin)
            case _:
                x = convolution(builder, x, outputs=2)
    graph = builder.build((x,))
    text = to_text(graph)
    parsed = parse_text(text, graph.constants)
    assert to_text(parsed) == text
    assert parsed.nodes == graph.nodes
    assert dict(parsed.types) == {name: graph.types[name] for name in parsed.types}
    assert_same_meaning(graph, parsed)


def test_text_is_one_line_a_tensor_and_node() -> None:
    builder = image_builder((1, 2))
    builder.constant("c", np.array([1, -2], np.int32))
    builder.constant("large", np.arange(17, dtype=np.int8))
    y = builder.node(Reshape((2, 1)), ("x",), "y", 'a "node"')
    assert to_text(builder.build((y,))).splitlines() == [
        'input "x": int8[1, 2]',
        'constant "c": int32[2] = [1, -2]',
        'constant "large": int8[17] sha256 3e5718fea51a8f3f',
        'node "y": int8[2, 1] = Reshape(shape=(2, 1))("x") from "a \\"node\\""',
        'output "y"',
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tensor x", "line 1: found 'tensor', required input, constant, node or output"),
        ("input x: int8[1]", "line 1: Expecting value"),
        ('input "x": int8[1] more', "unexpected 'more' at the end"),
        ('input "x": int7[1]', "element type int7"),
        ('input "x": int8[1]\ninput "x": int8[1]', "line 2: 'x' is defined a second time"),
        ('constant "c": int8[2] sha256 00', "line 1: 'c'"),
        ('constant "d": int8[2] sha256 00', "the array given for 'd' has digest"),
        ('constant "c": int8[2] = [1]', "cannot reshape"),
        ('node "y": int8[1] = Nothing()("x") from "n"', "line 1: 'Nothing'"),
        ('node "y": int8[1] = Reshape(shape=(1,)', "an attribute list is not closed"),
        ('node "y": int8[1] = Reshape(size=1)("x") from "n"', "unexpected keyword argument 'size'"),
        ('node "y": int8[1] = Reshape(shape=(1,))("x") from "n"\noutput "y"', "reads 'x' before"),
    ],
)
def test_text_of_another_form_is_refused(text: str, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        parse_text(text, {"d": np.zeros(2, np.int8)})


@pytest.mark.parametrize("seed", range(30))
def test_graphs_of_general_operators_print_and_parse(seed: int) -> None:
    graph = random_graph(seed)
    text = to_text(graph)
    parsed = parse_text(text, graph.constants)
    assert to_text(parsed) == text
    assert parsed.nodes == graph.nodes
