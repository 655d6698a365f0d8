"""Softmax of long rows is reductions, and means the same."""

import numpy as np
import pytest

from dovetail.compiler.graph.interpreter import run
from dovetail.compiler.graph.ir import GraphBuilder
from dovetail.compiler.graph.operators.rows import SoftmaxRows
from dovetail.compiler.graph.passes.split_softmax import SplitSoftmax
from dovetail.compiler.graph.types import TensorType


@pytest.mark.parametrize("logarithm", [False, True])
@pytest.mark.parametrize("shape", [(1, 1001), (3, 5, 64), (2, 63)])
def test_long_rows_are_reductions(shape: tuple[int, ...], logarithm: bool) -> None:
    builder = GraphBuilder()
    x = builder.input("x", TensorType(shape, "float32"))
    before = builder.build((builder.node(SoftmaxRows(logarithm), (x,), "y", "softmax"),))
    after = SplitSoftmax().run(before)
    kinds = {type(node.operator).__name__ for node in after.nodes}
    assert ("SoftmaxRows" not in kinds) == ("Reduce" in kinds) == (shape[-1] >= 64)
    given = {"x": 9 * np.random.default_rng(0).standard_normal(shape).astype(np.float32)}
    want = run(before, given)[before.outputs[0]]
    found = run(after, given)[after.outputs[0]]
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-7)
    assert SplitSoftmax().run(after) is after
