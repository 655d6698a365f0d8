"""Attention in one kernel: interpreted PTX, OpenCL and NumPy in float64 agree."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dovetail.compiler.define.group import define_group
from dovetail.compiler.dtypes import DType
from dovetail.compiler.errors import GraphError
from dovetail.compiler.graph.ir import GraphBuilder
from dovetail.compiler.graph.operators.attention import Attention
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.loops.intrinsic import BARRIER
from dovetail.compiler.loops.ir import Function, Invoke, Stmt, block
from dovetail.compiler.loops.rewrite import map_statement
from dovetail.compiler.loops.traverse import walk
from dovetail.compiler.schedule.rules.gpu.group import schedule_group
from dovetail.compiler.targets.gpu.kernels import kernels_of
from dovetail.compiler.targets.gpu.llvm.module import ARCHITECTURES, ptx_of
from dovetail.compiler.targets.gpu.lower import launches_of
from dovetail.compiler.targets.gpu.tensor_cores import INTRINSICS
from dovetail.runtime.device import Device
from tests.ptx.assembler import PACKAGE, assemble, find_ptxas
from tests.ptx.running import program_of, run_ptx

from .programs import run_function

LABELS = (0, 1, 3), (0, 2, 3), (0, 2, 4), (0, 1, 2), (1, 0, 4)
"""Heads, rows, columns, depth, values."""
TILED = (1, 23, 50, 40, 16)
"""Sizes for tensor cores: two tiles for rows, the depth and columns."""
RAGGED = Attention(*LABELS, 0.4, added=True, chosen=True, other=float("-inf"))

Arrays = Sequence[NDArray[Any]]


def operands(operator: Attention, sizes: Sequence[int], dtype: DType) -> list[NDArray[Any]]:
    """q, k and v, of about 3 at most, then a bias for each column and a choice for each score."""
    heads, rows, columns, depth, values = sizes
    rng = np.random.default_rng(rows)
    shapes = (heads, rows, depth), (heads, columns, depth), (heads, columns, values)
    given = [rng.standard_normal(each).astype(dtype.numpy) for each in shapes]
    if operator.added:
        given.append(rng.standard_normal(columns).astype(np.float32))
    if operator.chosen:
        # Each row has one score at least; of the first, only the last.
        given.append(rng.random((rows, columns)) < 0.6)
        given[-1][0], given[-1][:, -1] = False, True
    return given


def exact(operator: Attention, given: Arrays) -> NDArray[np.float64]:
    """In float64, by plain softmax."""
    q, k, v, *masks = (each.astype(np.float64) for each in given)
    scores = np.einsum("hrd,hcd->hrc", q, k) * operator.scale
    scores = scores + masks[0] if operator.added else scores
    scores = np.where(masks[-1], scores, operator.other) if operator.chosen else scores
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.einsum("hrc,hce->rhe", weights / weights.sum(axis=-1, keepdims=True), v)


@cache
def kernel(
    operator: Attention, sizes: tuple[int, ...], dtype: DType, tensor_cores: bool = True
) -> Function:
    builder = GraphBuilder()
    names = [
        builder.input(f"x{n}", TensorType(each.shape, str(each.dtype)))
        for n, each in enumerate(operands(operator, sizes, dtype))
    ]
    graph = builder.build((builder.node(operator, tuple(names), "y", "attention"),))
    definition = define_group(graph, graph.nodes)
    return schedule_group(definition, INTRINSICS if tensor_cores else None).function


def named(given: Arrays) -> dict[str, NDArray[Any]]:
    return {f"in{n}": each for n, each in enumerate(given)}


@pytest.mark.parametrize(
    ("operator", "sizes", "dtype", "atol"),
    [
        (RAGGED, (1, 33, 34, 5, 3), DType.FLOAT32, 1e-6),
        (Attention(*LABELS), (1, 16, 64, 8, 8), DType.FLOAT32, 1e-6),
        # Weights of at most 1 are rounded to 11 bits.
        (RAGGED, TILED, DType.FLOAT16, 2e-3),
    ],
)
def test_interpreted_ptx_is_near_the_exact_result(
    operator: Attention, sizes: tuple[int, ...], dtype: DType, atol: float
) -> None:
    given = operands(operator, sizes, dtype)
    function = kernel(operator, sizes, dtype)
    calls = [each.intrinsic for each in walk(function.body) if isinstance(each, Invoke)]
    assert calls.count("mma_float16_float16") == (2 if sizes == TILED else 0)
    # Values of 3 fill no tiles: a thread has a row.
    assert (BARRIER in calls) == (sizes[-1] > 3)
    found = run_ptx(function, named(given))["out0"]
    np.testing.assert_allclose(found, exact(operator, given), rtol=1e-5, atol=atol)


def test_each_barrier_is_needed() -> None:
    function = kernel(RAGGED, TILED, DType.FLOAT16)
    kernels_of(function)
    seen: list[Stmt] = []

    def without(number: int) -> Function:
        def change(stmt: Stmt) -> Stmt:
            if isinstance(stmt, Invoke) and stmt.intrinsic == BARRIER:
                seen.append(stmt)
                return block() if len(seen) == number else stmt
            return stmt

        seen.clear()
        return replace(function, body=map_statement(function.body, None, change))

    for number in range(1, 6):
        with pytest.raises(GraphError, match="at the same time"):
            kernels_of(without(number))
    assert len(seen) == 5


def test_opencl_is_near_the_exact_result(opencl: Device) -> None:
    sizes = (3, 70, 45, 8, 8)
    given = operands(RAGGED, sizes, DType.FLOAT16)
    function = kernel(RAGGED, sizes, DType.FLOAT16, tensor_cores=False)
    found = run_function(opencl, function, named(given))["out0"]
    np.testing.assert_allclose(found, exact(RAGGED, given), atol=2e-3)


def test_scores_and_their_sums_stay_in_the_kernel() -> None:
    function = kernel(RAGGED, (2, 64, 200, 64, 64), DType.FLOAT32)
    launches = launches_of(program_of(function))
    (found,) = launches.kernels.values()
    assert launches.memory_bytes == 0
    assert len(found.parameters) == len(function.inputs) + 1


@pytest.mark.parametrize(
    ("architecture", "dtype"),
    list(zip(ARCHITECTURES, (DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16), strict=True)),
)
def test_kernels_are_assembled(architecture: str, dtype: DType) -> None:
    ptxas = find_ptxas()
    if ptxas is None:
        pytest.skip(f"no ptxas: pip install {PACKAGE} (47 MB)")
    function = kernel(RAGGED, TILED, dtype)
    text = ptx_of(launches_of(program_of(function)).kernels, architecture)
    ((_, spilled),) = assemble(ptxas, text, architecture).values()
    assert spilled == 0
