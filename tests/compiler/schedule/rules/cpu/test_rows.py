"""Loops of operators on rows against their NumPy meaning."""

import numpy as np
import pytest

from dovetail.compiler.errors import GraphError
from dovetail.compiler.graph.operators.rows import SoftmaxRows
from dovetail.compiler.graph.types import TensorType

from .single import interpreted


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("logarithm", [False, True])
@pytest.mark.parametrize("shape", [(3, 37), (2, 1, 16), (5,), (3, 1), (0, 4)])
def test_softmax_of_rows(shape: tuple[int, ...], logarithm: bool, dtype: type) -> None:
    x = (np.random.default_rng(0).standard_normal(shape) * 30).astype(dtype)
    operator = SoftmaxRows(logarithm)
    (expected,) = operator.evaluate([x])
    (found,) = interpreted(operator, x)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    if not logarithm:
        np.testing.assert_allclose(expected.sum(axis=-1), np.ones(shape[:-1]), rtol=1e-5)


def test_rows_of_integers_are_refused() -> None:
    with pytest.raises(GraphError, match="required rows of float32 or float64"):
        SoftmaxRows().result((TensorType((2, 3), "int32"),))
