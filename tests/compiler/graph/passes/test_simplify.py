"""Each rewriting pass does what its docstring says and keeps the graph's meaning."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.compiler.errors import GraphError
from dovetail.compiler.graph.ir import Node
from dovetail.compiler.graph.operators.integer.products import Conv2d
from dovetail.compiler.graph.operators.integer.values import Add, Lookup, Requantize
from dovetail.compiler.graph.operators.integer.windows import MaxPool2d, Pad
from dovetail.compiler.graph.operators.movement import Reshape, Slice, Transpose
from dovetail.compiler.graph.passes.convert_layout import ConvertLayout
from dovetail.compiler.graph.passes.eliminate_dead import EliminateDead
from dovetail.compiler.graph.passes.fold_constants import FoldConstants
from dovetail.compiler.graph.passes.fold_lookups import FOLD_LOOKUPS
from dovetail.compiler.graph.passes.fold_pads import FOLD_PADS
from dovetail.compiler.graph.passes.simplify import SIMPLIFY, simplify
from dovetail.compiler.graph.rewrite import Rewriter, rewrite
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.graph.verify import verify

from ..graphs import assert_same_meaning, convolution, image_builder, kinds

NCHW, NHWC = Transpose((0, 3, 1, 2)), Transpose((0, 2, 3, 1))
TABLE = np.arange(127, -129, -1).astype(np.int8)
SUM = Add(0.4, 0.7, 3, -5, 1, -128, 127)


@pytest.mark.parametrize("each", SIMPLIFY, ids=lambda each: each.name)
def test_a_pass_with_nothing_to_do_returns_the_graph_itself(each: object) -> None:
    builder = image_builder()
    graph = builder.build((convolution(builder, "x"),))
    assert each.run(graph) is graph  # type: ignore[attr-defined]


def test_constant_nodes_are_evaluated() -> None:
    builder = image_builder((1, 4))
    table = builder.constant("t", TABLE)
    c = builder.constant("c", np.array([[1, 2, 3, 4]], np.int8))
    turned = builder.node(Lookup(), (c, table), "d", "n")
    y = builder.node(SUM, ("x", turned), "y", "n")
    before = builder.build((y,))
    after = FoldConstants().run(before)
    assert kinds(after) == ["Add"]
    assert_same_meaning(before, after)


def test_what_no_output_needs_is_removed() -> None:
    builder = image_builder((1, 4))
    builder.constant("unused", TABLE)
    builder.node(Reshape((4, 1)), ("x",), "dead", "n")
    before = builder.build((builder.node(SUM, ("x", "x"), "y", "n"),))
    after = EliminateDead().run(before)
    assert kinds(after) == ["Add"]
    assert set(after.types) == {"x", "y"}
    assert_same_meaning(before, after)


def test_two_transposes_cancel_across_a_lookup_and_an_add() -> None:
    builder = image_builder()
    left = builder.node(NCHW, ("x",), "a", "n")
    table = builder.constant("t", TABLE)
    left = builder.node(Lookup(), (left, table), "b", "n")
    right = builder.node(NCHW, ("x",), "c", "n")
    total = builder.node(SUM, (left, right), "d", "n")
    before = builder.build((builder.node(NHWC, (total,), "y", "n"),))
    after = ConvertLayout().run(before)
    assert kinds(after) == ["Lookup", "Add"]
    assert_same_meaning(before, after)


@pytest.mark.parametrize("fixed", [False, True])
def test_a_transpose_behind_a_sum_goes_to_the_operand_that_has_none(fixed: bool) -> None:
    builder = image_builder((1, 4, 6, 5))
    builder.input("z", TensorType((1, 6, 5, 4), "int8"))
    turned = builder.node(NCHW, ("z",), "a", "n")
    other = builder.constant("k", np.arange(120, dtype=np.int8).reshape(1, 4, 6, 5))
    total = builder.node(SUM, (other if fixed else "x", turned), "d", "n")
    before = builder.build((builder.node(NHWC, (total,), "y", "n"),))
    after = ConvertLayout().run(before)
    assert kinds(after) == [*["Transpose"] * (not fixed), "Add"]
    assert after.nodes[0].operator == (SUM if fixed else NHWC)
    assert_same_meaning(before, after)


def test_a_transpose_that_moves_nothing_is_a_reshape() -> None:
    builder = image_builder((1, 1, 1, 7))
    flat = builder.node(NCHW, ("x",), "a", "n")
    before = builder.build((builder.node(Reshape((1, 7)), (flat,), "y", "n"),))
    after = ConvertLayout().run(before)
    assert kinds(after) == ["Reshape"]
    assert_same_meaning(before, after)


@given(st.lists(st.permutations(range(4)), min_size=1, max_size=5))
def test_any_chain_of_transposes_becomes_at_most_one(steps: list[list[int]]) -> None:
    builder = image_builder((2, 6, 5, 3))
    name = "x"
    for step in steps:
        name = builder.node(Transpose(tuple(step)), (name,), "t", "n")
    before = builder.build((name,))
    after = ConvertLayout().run(before)
    assert len(after.nodes) == 1
    assert_same_meaning(before, after)


@given(st.integers(0, 2**32 - 1), st.integers(2, 4))
def test_chains_of_tables_become_one(seed: int, count: int) -> None:
    rng, builder, name = np.random.default_rng(seed), image_builder((1, 256)), "x"
    for _ in range(count):
        table = builder.constant("t", rng.integers(-128, 128, 256).astype(np.int8))
        name = builder.node(Lookup(), (name, table), "y", "n")
    before = builder.build((name,))
    after = FOLD_LOOKUPS.run(before)
    assert kinds(after) == ["Lookup"]
    assert_same_meaning(before, after)


@given(st.integers(-128, 127), st.integers(-128, 127), st.integers(-128, 0))
def test_a_table_that_clips_becomes_limits(one: int, other: int, low: int) -> None:
    builder = image_builder()
    y = convolution(builder, "x", low=low)
    limits = (min(one, other), max(one, other))
    table = builder.constant("t", np.clip(np.arange(-128, 128), *limits).astype(np.int8))
    before = builder.build((builder.node(Lookup(), (y, table), "z", "relu"),))
    after = FOLD_LOOKUPS.run(before)
    assert kinds(after) == ["Conv2d", "Requantize"]
    operator = after.nodes[-1].operator
    assert isinstance(operator, Requantize)
    assert operator.low == np.clip(low, *limits)
    assert_same_meaning(before, after)


def test_a_tensor_that_others_read_keeps_its_limits() -> None:
    builder = image_builder()
    y = convolution(builder, "x")
    table = builder.constant("t", np.maximum(np.arange(-128, 128), 0).astype(np.int8))
    z = builder.node(Lookup(), (y, table), "z", "relu")
    before = builder.build((builder.node(SUM, (y, z), "out", "add"),))
    assert FOLD_LOOKUPS.run(before) is before


def test_a_border_of_the_zero_point_goes_into_the_convolution() -> None:
    builder = image_builder()
    padded = builder.node(Pad((0, 1, 2, 3), 5), ("x",), "p", "pad")
    before = builder.build((convolution(builder, padded, zero_point=5),))
    after = FOLD_PADS.run(before)
    assert kinds(after) == ["Conv2d", "Requantize"]
    assert_same_meaning(before, after)


@pytest.mark.parametrize(
    ("starts", "shape", "pads"),
    [((0, 2, 0, 0), (1, 6, 6, 4), (2, 2, 0, 1)), ((0, 5, 0, 0), (1, 4, 7, 4), None)],
)
def test_a_convolution_stops_where_its_results_are_read_no_more(
    starts: tuple[int, ...], shape: tuple[int, ...], pads: tuple[int, ...] | None
) -> None:
    builder = image_builder()
    padded = builder.node(Pad((3, 1, 2, 3), 5), ("x",), "p", "pad")
    y = convolution(builder, padded, zero_point=5)
    before = builder.build((builder.node(Slice(starts, (1,) * 4, shape), (y,), "z", "cut"),))
    after = FOLD_PADS.run(before)
    assert kinds(after) == ["Conv2d", "Requantize", *["Slice"] * (pads is None)]
    conv = after.nodes[0].operator
    assert isinstance(conv, Conv2d)
    assert conv.pads == (pads or (4, 2, 3, 4))
    assert_same_meaning(before, after)


@pytest.mark.parametrize(("value", "count"), [(-128, 1), (0, 2)])
def test_a_border_goes_into_a_maximum_only_if_it_never_wins(value: int, count: int) -> None:
    builder = image_builder()
    padded = builder.node(Pad((1, 1, 0, 0), value), ("x",), "p", "pad")
    pool = MaxPool2d((2, 2), (1, 1), (0, 0, 0, 0))
    before = builder.build((builder.node(pool, (padded,), "y", "pool"),))
    after = FOLD_PADS.run(before)
    assert len(after.nodes) == count
    assert_same_meaning(before, after)


def test_another_border_stays() -> None:
    builder = image_builder()
    padded = builder.node(Pad((1, 1, 0, 0), 4), ("x",), "p", "pad")
    graph = builder.build((convolution(builder, padded, zero_point=5),))
    assert FOLD_PADS.run(graph) is graph


def test_all_passes_together_keep_the_meaning() -> None:
    builder = image_builder()
    padded = builder.node(Pad((1, 1, 1, 1), 5), ("x",), "p", "pad")
    y = convolution(builder, padded, zero_point=5)
    relu = builder.constant("t", np.maximum(np.arange(-128, 128), -4).astype(np.int8))
    y = builder.node(Lookup(), (y, relu), "relu", "relu")
    y = builder.node(NHWC, (builder.node(NCHW, (y,), "a", "n"),), "b", "n")
    before = builder.build((convolution(builder, y, outputs=2),))
    after = simplify(before)
    verify(after)
    assert kinds(after) == ["Conv2d", "Requantize"] * 2
    assert_same_meaning(before, after)


def test_patterns_that_undo_each_other_are_reported() -> None:
    def again(rewriter: Rewriter, node: Node) -> str | None:
        return rewriter.builder.node(node.operator, node.inputs, node.output, node.origin)

    builder = image_builder((1, 4))
    graph = builder.build((builder.node(SUM, ("x", "x"), "y", "n"),))
    with pytest.raises(GraphError, match="patterns still match after"):
        rewrite(graph, (again,))


def test_a_replacement_of_another_type_is_reported() -> None:
    def flatten(rewriter: Rewriter, node: Node) -> str | None:
        return rewriter.builder.node(Reshape((4,)), node.inputs[:1], node.output, node.origin)

    builder = image_builder((1, 4))
    graph = builder.build((builder.node(SUM, ("x", "x"), "y", "n"),))
    with pytest.raises(GraphError, match=r"node 'n': replaced int8\[1, 4\] by int8\[4\]"):
        rewrite(graph, (flatten,))


def test_what_a_round_has_replaced_takes_no_other_place_in_that_round() -> None:
    builder = image_builder((4, 4))
    x = builder.node(Lookup(), ("x", builder.constant("t", TABLE)), "looked up", "n")
    for number in range(6):
        x = builder.node(Reshape((4, 4)), (x,), f"r{number}", "n")
    graph = builder.build((builder.node(Transpose((1, 0)), (x,), "y", "n"),))

    def first(rewriter: Rewriter, node: Node) -> str | None:
        if isinstance(node.operator, Transpose):
            return None
        (name,) = node.inputs[:1]
        while (made := rewriter.graph.producer(name)) and isinstance(made.operator, Reshape):
            name = made.inputs[0]
        return name

    (left,) = rewrite(graph, (first,)).nodes
    assert left.inputs == ("x",)
