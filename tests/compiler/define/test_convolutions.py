"""Loops of convolutions against their definition."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dovetail.compiler.dtypes import DType
from dovetail.compiler.graph.operators.contractions import Convolution
from dovetail.compiler.graph.types import TensorType

from ..schedule.rules.cpu.single import interpreted

RNG = np.random.default_rng(0)
F32 = DType.FLOAT32


def numbers(*shape: int) -> NDArray[np.float32]:
    """Small integers: sums of their products are exact."""
    return RNG.integers(-4, 5, shape).astype(np.float32)


@st.composite
def convolutions(draw: st.DrawFn) -> tuple[Convolution, tuple[int, ...], tuple[int, ...]]:
    """An operator, and shapes of its input and weights."""
    rank = draw(st.integers(1, 2))
    small = st.tuples(*(st.integers(1, 2) for _ in range(rank)))
    strides, dilations, expansions = draw(small), draw(small), draw(small)
    pads = tuple((draw(st.integers(-1, 2)), draw(st.integers(0, 2))) for _ in range(rank))
    groups, outputs, inputs = (draw(st.integers(1, 3)) for _ in range(3))
    kernel = draw(st.tuples(*(st.integers(1, 3) for _ in range(rank))))
    sizes = tuple((k - 1) * 2 + 2 + draw(st.integers(0, 3)) for k in kernel)
    operator = Convolution(strides, dilations, pads, expansions, groups, F32)
    x = (draw(st.integers(1, 2)), groups * inputs, *sizes)
    return operator, x, (groups * outputs, inputs, *kernel)


def slow_convolution(
    operator: Convolution, x: NDArray[Any], w: NDArray[Any], shape: tuple[int, ...]
) -> NDArray[Any]:
    """The definition, one product after the other."""
    y = np.zeros(shape)
    per_group = w.shape[1]
    for n, o, *place in np.ndindex(*shape):
        group = o // (shape[1] // operator.groups)
        for c, *tap in np.ndindex(*w.shape[1:]):
            at = [
                p * s + t * d - pad[0]
                for p, s, t, d, pad in zip(
                    place, operator.strides, tap, operator.dilations, operator.pads, strict=True
                )
            ]
            if all(i % e == 0 for i, e in zip(at, operator.expansions, strict=True)):
                source = tuple(i // e for i, e in zip(at, operator.expansions, strict=True))
                if all(0 <= i < size for i, size in zip(source, x.shape[2:], strict=True)):
                    value = x[(n, group * per_group + c, *source)]
                    y[(n, o, *place)] += value * w[(o, c, *tap)]
    return y


@settings(max_examples=25, deadline=None)
@given(case=convolutions())
def test_a_convolution_is_its_definition(
    case: tuple[Convolution, tuple[int, ...], tuple[int, ...]],
) -> None:
    operator, x_shape, w_shape = case
    x, w = numbers(*x_shape), numbers(*w_shape)
    (kind,) = operator.result((TensorType(x_shape, F32), TensorType(w_shape, F32)))
    expected = slow_convolution(operator, x, w, kind.shape)
    np.testing.assert_array_equal(operator.evaluate((x, w))[0], expected)
    np.testing.assert_array_equal(interpreted(operator, x, w)[0], expected)
