"""Schedules of matrix products as machine code, against NumPy."""

import numpy as np
import pytest

from dovetail.compiler.loops.expressions import Scope
from dovetail.compiler.loops.parse import parse
from dovetail.compiler.loops.verify import verify
from dovetail.compiler.schedule.steps.schedule import Schedule
from dovetail.compiler.targets.cpu.llvm.compile import LlvmOptions, compile_functions

from .kernels import LEVELS, require

MATMUL = """
function "matmul"
  input a: float32[29, 30]
  input b: float32[30, 70]
  output c: float32[29, 70]
  alloc t: float32[29, 70] local:
    for i0 in 29:
      for j0 in 70:
        t[i0, j0] = 0.0:float32
    for i in 29:
      for j in 70:
        for k in 30:
          t[i, j] add= a[i, k] * b[k, j]
    for p in 29:
      for q in 70:
        c[p, q] = max(t[p, q], 0.0:float32)
"""


def scheduled() -> Schedule:
    """Tiles of 6 by 32 in registers, of panels of b."""
    return (
        Schedule.of(parse(MATMUL))
        .split("p", 6)
        .split("q", 32)
        .reorder("q.o", "p.o", "p.i", "q.i")
        .compute_at("t", "p.o")
        .cache_read("b", "q.o", Scope.LOCAL, "panel")
        .set_scope("t", Scope.REGISTER)
        .reorder("k", "i", "j")
        .vectorize("panel.1")
        .vectorize("j0")
        .unroll("i0")
        .vectorize("j")
        .unroll("i")
        .vectorize("q.i")
        .unroll("p.i")
        .parallel("q.o")
    )


@pytest.mark.parametrize("level", LEVELS)
def test_a_matrix_product_in_register_tiles(level: str) -> None:
    require(level)
    function = scheduled().function
    verify(function, scheduled=True)
    generator = np.random.default_rng(5)
    a, b = (generator.standard_normal(s).astype(np.float32) for s in ((29, 30), (30, 70)))
    (found,) = compile_functions([function], LlvmOptions(level)).run("matmul", [a, b])
    expected = np.maximum(a.astype(np.float64) @ b.astype(np.float64), 0)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
