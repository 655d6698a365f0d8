"""Models that targets once got wrong, made small."""

from collections.abc import Callable

import numpy as np
import pytest

from tests.compiler.graph.passes.integer_layers.models import ModelBuilder

from .compare import check
from .draw import Sample

Build = Callable[[ModelBuilder], tuple[str, tuple[int, ...], str]]
"""Builds a model that reads ``x``: its output's name, the shape of ``x``, the type of both."""


def _dequantized(b: ModelBuilder, x: str = "x", scale: float = 0.05) -> str:
    return b.dequantize(x, scale, np.int8(3))


def _conv(b: ModelBuilder, x: str, channels: int, to: int, kernel: int = 1) -> str:
    """A convolution with scales that are no powers of two, dequantised again."""
    rng = np.random.default_rng(channels)
    weights = rng.integers(-127, 128, (to, channels, kernel, kernel), np.int8)
    w = b.dequantize(b.constant(weights), 0.0037, np.int8(0))
    return _dequantized(b, b.quantize(b.node("Conv", [x, w]), 0.0411, np.int8(3)), 0.0411)


def joined_along_the_batch(b: ModelBuilder) -> tuple[str, tuple[int, ...], str]:
    """After a transpose, what are channels for the join are batches for the accelerator."""
    x = _conv(b, _dequantized(b), 3, 4)
    turned = b.node("Transpose", [x], perm=[2, 0, 3, 1])
    joined = b.node("Concat", [turned, turned], axis=1)
    return b.quantize(joined, 0.0411, np.int8(3)), (1, 3, 4, 5), "int8"


def softmax_in_small_steps(b: ModelBuilder) -> tuple[str, tuple[int, ...], str]:
    """Exponentials times the steps of 1 were infinite for scales below 1 / (148 * 16)."""
    x = b.node("Flatten", [_conv(b, _dequantized(b, scale=0.01), 2, 4)])
    return b.quantize(b.node("Softmax", [x], axis=-1), 0.0003, np.int8(-128)), (1, 2, 2, 2), "int8"


FOUND: tuple[Build, ...] = (joined_along_the_batch, softmax_in_small_steps)


@pytest.mark.parametrize("target", ["cpu", "vta:tiny"])
@pytest.mark.parametrize("build", FOUND, ids=lambda build: build.__name__)
def test_a_model_is_right(build: Build, target: str) -> None:
    b = ModelBuilder()
    output, shape, dtype = build(b)
    model = b.build({"x": (dtype, shape)}, output, dtype)
    rng = np.random.default_rng(1)
    limits = np.iinfo(dtype)
    x = rng.integers(limits.min, limits.max + 1, shape, dtype)
    check(Sample(model, ({"x": x},)), target)
