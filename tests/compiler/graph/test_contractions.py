"""Contractions: the indices that they read, and what an operand must have."""

import numpy as np
import pytest

from dovetail.compiler.errors import GraphError
from dovetail.compiler.graph.operators.contractions import Contract
from dovetail.compiler.graph.types import TensorType

WINDOW = Contract((3, 2), ((((0, 2), (1, 1)),), (((1, 1),),)), (((0, 1),),), "int32")  # type: ignore
"""``y[p] = sum(x[2 * p + k] * w[k])`` for three p and two k."""

W = TensorType((2,), "int32")


@pytest.mark.parametrize(("size", "fits"), [(7, True), (6, True), (5, False), (0, False)])
def test_an_operand_has_all_indices_that_are_read(size: int, *, fits: bool) -> None:
    x = TensorType((size,), "int32")
    if fits:
        assert WINDOW.result((x, W)) == (TensorType((3,), "int32"),)
    else:
        with pytest.raises(GraphError, match=r"required at least \[6\]"):
            WINDOW.result((x, W))


def test_an_extent_counts_gaps_and_is_0_where_a_label_has_no_values() -> None:
    assert [WINDOW.extent(axis) for axis in (((0, 2), (1, 1)), ((0, 2),), ((1, 3),), ())] == [
        *(6, 5, 4, 1),
    ]
    empty = Contract((0, 2), WINDOW.operands, WINDOW.output, WINDOW.dtype)
    assert (empty.extent(((0, 2), (1, 1))), empty.extent(((1, 1),))) == (0, 2)
    assert empty.result((TensorType((0,), "int32"), W)) == (TensorType((0,), "int32"),)


def test_what_is_beyond_the_last_index_is_not_read() -> None:
    x, w = np.arange(7, dtype=np.int32), np.array([10, 1], np.int32)
    for size in (6, 7):
        (y,) = WINDOW.evaluate((x[:size], w))
        assert y.tolist() == [1, 23, 45]
    assert (WINDOW.kept, WINDOW.summed) == ((0,), (1,))


def test_an_axis_of_the_output_may_have_several_labels() -> None:
    outer = Contract((2, 3), ((((0, 1),),), (((1, 1),),)), (((0, 3), (1, 1)),), "int32")  # type: ignore
    found = outer.evaluate((np.array([1, 10], np.int32), np.array([1, 2, 3], np.int32)))[0]
    assert found.tolist() == [1, 2, 3, 10, 20, 30]
    with pytest.raises(GraphError, match=r"required steps \[3, 1\]"):
        Contract(outer.sizes, outer.operands, (((0, 2), (1, 1)),), outer.dtype)
