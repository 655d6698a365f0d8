"""Normalisations as ONNX Runtime computes them."""

import numpy as np

from .nodes import compiled, model_of, runtime

RNG = np.random.default_rng(0)


def test_batch_normalisation_has_the_same_bytes() -> None:
    """A quantised model rounds them: the last bit may decide."""
    x = RNG.standard_normal((1, 64, 5, 7)).astype(np.float32)
    limits = ((0.5, 1.5), (-0.5, 0.5), (-1, 1), (0.2, 3))
    statistics = [RNG.uniform(*pair, 64).astype(np.float32) for pair in limits]
    model = model_of("BatchNormalization", [x, *statistics], constant=(1, 2, 3, 4))
    (found,), (expected,) = compiled(model, [x]), runtime(model, [x])
    np.testing.assert_array_equal(found, expected)
