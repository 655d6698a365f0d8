"""Loops of window reductions against their NumPy meaning, and that against a definition."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dovetail.compiler.errors import GraphError
from dovetail.compiler.graph.ir import GraphBuilder
from dovetail.compiler.graph.operators.windows import (
    WindowArgMax,
    WindowFunction,
    WindowReduce,
    lowest,
)
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.targets.cpu.llvm.compile import LlvmOptions
from dovetail.compiler.targets.cpu.segment import compile_segment

from .single import interpreted

DTYPES = (np.float32, np.int8, np.uint8, np.float64)


@st.composite
def windows(draw: st.DrawFn) -> tuple[tuple[Any, ...], NDArray[Any]]:
    """Attributes, and an input of a drawn dtype."""
    rank = draw(st.integers(1, 2))
    kernel = draw(st.tuples(*(st.integers(1, 3) for _ in range(rank))))
    strides = draw(st.tuples(*(st.integers(1, 3) for _ in range(rank))))
    dilations = draw(st.tuples(*(st.integers(1, 2) for _ in range(rank))))
    pads = tuple((draw(st.integers(0, 2)), draw(st.integers(0, 2))) for _ in range(rank))
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    sizes = [extent + draw(st.integers(0, 18)) for extent in extents]
    first = draw(st.integers(0, 1))
    shape = [draw(st.integers(1, 2)) for _ in range(first)] + sizes
    dtype = draw(st.sampled_from(DTYPES))
    seed = draw(st.integers(0, 99))
    x = np.random.default_rng(seed).integers(0, 9, shape).astype(dtype)
    axes = tuple(range(first, first + rank))
    return (axes, kernel, strides, dilations, pads), x


def elements(
    attributes: tuple[Any, ...], x: NDArray[Any], place: tuple[int, ...]
) -> list[tuple[int, Any]]:
    """Flat spatial index and value of each element of a window that is in the tensor."""
    axes, kernel, strides, dilations, pads = attributes
    found = []
    for tap in np.ndindex(*kernel):
        at = list(place)
        for axis, t, s, d, pad in zip(axes, tap, strides, dilations, pads, strict=True):
            at[axis] = place[axis] * s + t * d - pad[0]
        if all(0 <= i < size for i, size in zip(at, x.shape, strict=True)):
            flat = 0
            for axis in axes:
                flat = flat * x.shape[axis] + at[axis]
            found.append((flat, x[tuple(at)]))
    return found


@settings(max_examples=30, deadline=None)
@given(case=windows(), function=st.sampled_from(WindowFunction))
def test_a_window_is_reduced(
    case: tuple[tuple[Any, ...], NDArray[Any]], function: WindowFunction
) -> None:
    attributes, x = case
    operator = WindowReduce(*attributes, function)
    (expected,) = operator.evaluate([x])
    np.testing.assert_array_equal(interpreted(operator, x)[0], expected)
    for place in np.ndindex(*expected.shape):
        values = [value for _, value in elements(attributes, x, place)]
        if function == WindowFunction.MAX:
            assert expected[place] == max(values, default=lowest(x.dtype))
        else:
            assert expected[place] == np.sum(values, dtype=x.dtype)


@settings(max_examples=20, deadline=None)
@given(case=windows())
def test_the_first_maximum_is_found(case: tuple[tuple[Any, ...], NDArray[Any]]) -> None:
    attributes, x = case
    operator = WindowArgMax(*attributes)
    (expected,) = operator.evaluate([x])
    (found,) = interpreted(operator, x)
    for place in np.ndindex(*expected.shape):
        values = elements(attributes, x, place)
        if values:
            best = max(value for _, value in values)
            first = next(flat for flat, value in values if value == best)
            assert expected[place] == found[place] == first


@pytest.mark.parametrize("function", list(WindowFunction))
@pytest.mark.parametrize(
    ("shape", "kernel", "strides", "pads"),
    [
        ((2, 3, 21, 150), (3, 3), (2, 2), ((1, 1), (1, 1))),
        ((1, 2, 9, 66), (5, 3), (1, 1), ((2, 2), (1, 0))),
        ((2, 40), (7,), (3,), ((3, 2),)),
        ((1, 5, 6, 7), (5, 6, 7), (1, 1, 1), ((4, 4), (5, 5), (6, 6))),
        ((1, 2, 30, 30), (3, 3), (3, 4), ((0, 0), (0, 0))),
        ((1, 2, 3, 3), (2, 2), (1, 1), ((5, 5), (4, 4))),
    ],
)
def test_machine_code_of_padded_windows(
    shape: tuple[int, ...],
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    pads: tuple[tuple[int, int], ...],
    function: WindowFunction,
) -> None:
    axes = tuple(range(len(shape) - len(kernel), len(shape)))
    operator = WindowReduce(axes, kernel, strides, (1,) * len(kernel), pads, function)
    for dtype in (np.float32, np.int8):
        x = np.random.default_rng(1).integers(-50, 50, shape).astype(dtype)
        builder = GraphBuilder()
        name = builder.input("x", TensorType(shape, str(x.dtype)))
        graph = builder.build((builder.node(operator, (name,), "y", "n"),))
        (expected,) = operator.evaluate([x])
        segment = compile_segment(graph, LlvmOptions(verify=True))
        np.testing.assert_array_equal(segment.run({"x": x})["y"], expected)


@pytest.mark.parametrize("function", list(WindowFunction))
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    ("shape", "kernel", "strides", "dilations", "pads"),
    [
        ((2, 3, 21, 17, 16), (3, 3), (2, 2), (1, 1), ((1, 1), (1, 1))),
        ((1, 2, 40, 40, 16), (3, 3), (1, 2), (1, 1), ((0, 2), (2, 0))),
        ((1, 1, 19, 30, 70), (2, 3), (1, 1), (2, 3), ((3, 3), (4, 5))),
        ((1, 1, 5, 30, 16), (9, 1), (2, 1), (1, 1), ((8, 4), (0, 0))),
        ((1, 2, 30, 30, 16), (6, 6), (6, 5), (1, 1), ((0, 0), (0, 0))),
    ],
)
def test_machine_code_of_windows_of_blocks(
    shape: tuple[int, ...],
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
    pads: tuple[tuple[int, int], ...],
    threads: int,
    function: WindowFunction,
) -> None:
    operator = WindowReduce((2, 3), kernel, strides, dilations, pads, function)
    for dtype in (np.float32, np.uint8):
        x = np.random.default_rng(1).integers(0, 90, shape).astype(dtype)
        builder = GraphBuilder()
        name = builder.input("x", TensorType(shape, str(x.dtype)))
        graph = builder.build((builder.node(operator, (name,), "y", "n"),))
        (expected,) = operator.evaluate([x])
        found = compile_segment(graph, LlvmOptions(threads=threads)).run({"x": x})["y"]
        np.testing.assert_array_equal(found, expected)


def test_windows_that_do_not_fit_are_refused() -> None:
    with pytest.raises(GraphError, match="required attributes of one length"):
        WindowReduce((0,), (2, 2), (1,), (1,), ((0, 0),), WindowFunction.MAX)
    with pytest.raises(GraphError, match="required kernel, strides and dilations of at least 1"):
        WindowArgMax((0,), (0,), (1,), (1,), ((0, 0),))
    operator = WindowReduce((1,), (3,), (1,), (1,), ((0, 0),), WindowFunction.ADD)
    with pytest.raises(GraphError, match=r"required dimensions \(1,\)"):
        operator.result((TensorType((4,), "float32"),))
    with pytest.raises(GraphError, match="a window of 3 on 2"):
        operator.result((TensorType((4, 2), "float32"),))
