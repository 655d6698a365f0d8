"""Loops of sorting and selection against NumPy's stable sort."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.compiler.graph.ir import GraphBuilder
from dovetail.compiler.graph.operators.sorting import Sort
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.targets.cpu.llvm.compile import LlvmOptions
from dovetail.compiler.targets.cpu.segment import compile_segment

from .single import Array, interpreted

DTYPES = ("float32", "float64", "float16", "int8", "uint8", "int64", "uint32", "bool")


def compiled(operator: Sort, x: Array) -> list[Array]:
    builder = GraphBuilder()
    name = builder.input("x", TensorType(x.shape, str(x.dtype)))
    outputs = builder.node_outputs(operator, (name,), "y", "test")
    segment = compile_segment(builder.build(tuple(outputs)), LlvmOptions(verify=True))
    results = segment.run({"x": x})
    return [results[each] for each in outputs]


def equal(found: list[Array], expected: tuple[Array, ...]) -> None:
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


@settings(max_examples=6, deadline=None)
@given(
    size=st.integers(1, 90),
    count=st.integers(0, 90),
    values=st.integers(1, 60),
    descending=st.booleans(),
    seed=st.integers(0, 99),
)
def test_rows_are_sorted(size: int, count: int, values: int, descending: bool, seed: int) -> None:
    x = np.random.default_rng(seed).integers(0, values, (1, size)).astype(np.int16)
    operator = Sort(min(count, size), descending)
    equal(list(interpreted(operator, x)), operator.evaluate([x]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("size", "count"), [(1, 1), (64, 64), (65, 3), (300, 300), (1000, 7), (2047, 100), (5000, 90)]
)
def test_every_dtype_sorts(dtype: str, size: int, count: int) -> None:
    generator = np.random.default_rng(size)
    x = (generator.standard_normal((3, size)) * 40).astype(dtype)
    for descending in (False, True):
        operator = Sort(count, descending)
        equal(compiled(operator, x), operator.evaluate([x]))


@pytest.mark.parametrize("order", ["rising", "falling", "equal", "infinite"])
def test_rows_that_are_in_some_order_already(order: str) -> None:
    x = {
        "rising": np.arange(9000.0),
        "falling": -np.arange(9000.0),
        "equal": np.zeros(9000),
        "infinite": np.repeat([-np.inf, np.inf, -0.0, 0.0], 2250),
    }[order].astype(np.float32)
    for descending in (False, True):
        operator = Sort(500, descending)
        equal(compiled(operator, x), operator.evaluate([x]))


def test_nan_is_beyond_infinity_and_positions_are_all_different() -> None:
    x = np.random.default_rng(3).standard_normal(700).astype(np.float32)
    x[::3] = np.nan
    x[1] = np.inf
    for count in (10, 700):
        for descending in (False, True):
            _, places = compiled(Sort(count, descending), x)
            assert len(set(places.tolist())) == count
            assert places.min() >= 0
            assert places.max() < 700
            assert np.isnan(x[places[:10]]).all() == descending
