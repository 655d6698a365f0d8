"""Parts of tensors whose channels lie apart."""

import pytest

from dovetail.compiler.graph.operators.movement import Concatenate, Slice

from .test_parts import POOL, assert_exact, compiled, drawn


@pytest.mark.parametrize("config", ["tiny", "zynq7020"])
@pytest.mark.parametrize(("outer", "inner"), [((1, 9), (2, 5)), ((4, 7), (1, 6)), ((5, 6), (3, 3))])
def test_channels_of_channels_that_were_joined(
    outer: tuple[int, int], inner: tuple[int, int], config: str
) -> None:
    """The two parts that are joined fill no blocks, so there are gaps between their channels."""
    builder, q = drawn(1, 3, 3, 6)
    parts = [builder.node(POOL, (q,), name, name) for name in ("a", "b")]
    x = builder.node(Concatenate(3), parts, "joined", "joined")
    for name, (first, count) in (("outer", outer), ("inner", inner)):
        part = Slice((0, 0, 0, first), (1, 1, 1, 1), (1, 2, 2, count))
        x = builder.node(part, (x,), name, name)
    graph = builder.build((builder.node(POOL, (x,), "y", "y"),))
    assert_exact(graph, compiled(graph, config), "sim")
