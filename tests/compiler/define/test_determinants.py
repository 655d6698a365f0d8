"""Loops of determinants against NumPy."""

import numpy as np
import pytest

from dovetail.compiler.graph.operators.contractions import Determinant

from ..schedule.rules.cpu.single import interpreted

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("shape", [(1, 1), (2, 3, 3), (4, 4), (3, 0, 0)])
def test_determinants_are_numpys(shape: tuple[int, ...]) -> None:
    x = RNG.standard_normal(shape).astype(np.float32)
    (found,) = interpreted(Determinant(), x)
    np.testing.assert_allclose(found, np.linalg.det(x), rtol=1e-4, atol=1e-6)


def test_singular_matrices_have_determinant_0() -> None:
    (found,) = interpreted(Determinant(), np.ones((2, 3, 3), np.float32))
    np.testing.assert_array_equal(found, [0, 0])
