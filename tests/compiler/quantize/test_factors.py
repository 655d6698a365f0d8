"""Factors of channels, held to what the two sources say of single channels."""

import numpy as np
import pytest

from dovetail.compiler.quantize.factors import FIXED, LayerRanges, channel_factors

NONE = np.zeros(3)


def layers(written: tuple[float, ...], read: tuple[float, ...]) -> tuple[LayerRanges, LayerRanges]:
    """One layer writes classes 1 and 2, and one reads them; its input and output are fixed."""
    first = LayerRanges(
        np.array(written).reshape(1, -1, 1),
        np.array([[FIXED]]),
        np.array([np.arange(len(written)) + 1]),
    )
    second = LayerRanges(
        np.array(read).reshape(1, 1, -1),
        np.array([np.arange(len(read)) + 1]),
        np.array([[FIXED]]),
    )
    return first, second


def test_what_a_channel_is_written_by_becomes_what_reads_it() -> None:
    written, read, activations = (8.0, 0.5), (2.0, 32.0), np.array([1.0, 32.0, 2.0])
    found = channel_factors(layers(written, read), activations, NONE)
    # sqrt(w / f * a / f) = r * f
    wanted = [
        (w * a) ** 0.25 / r**0.5 for w, a, r in zip(written, activations[1:], read, strict=True)
    ]
    np.testing.assert_allclose(found, [1, *wanted])


def test_the_largest_of_several_readers_and_writers_counts() -> None:
    first, second = layers((8.0, 0.5), (2.0, 32.0))
    more = (
        LayerRanges(np.array([[[1.0], [4.0]]]), first.reads, first.writes),
        LayerRanges(
            np.array([[[4.0, 1.0]], [[1.0, 1.0]]]),
            np.array([[1, 2]] * 2),
            np.zeros((2, 1), np.int64),
        ),
    )
    activations = np.array([1.0, 32.0, 2.0])
    found = channel_factors((first, second, *more), activations, NONE)
    wanted = channel_factors(layers((8.0, 4.0), (4.0, 32.0)), activations, NONE)
    np.testing.assert_allclose(found, wanted)


def test_a_channel_without_weights_on_one_side_keeps_its_factor() -> None:
    for written, read in (((0.0, 0.5), (2.0, 32.0)), ((8.0, 0.5), (0.0, 32.0))):
        found = channel_factors(layers(written, read), np.array([1.0, 32.0, 2.0]), NONE)
        assert found[1] == 1
        assert found[2] != 1


def test_factors_are_no_larger_than_float32_bears() -> None:
    found = channel_factors(layers((1e30, 1e-30), (1e-30, 1e30)), np.ones(3), NONE)
    np.testing.assert_array_equal(found, [1, 2.0**20, 2.0**-20])


@pytest.mark.parametrize(("least", "wanted"), [(0.25, 0.25), (1e-3, 0.125)])
def test_behind_what_is_cut_off_no_factor_is_above_1(least: float, wanted: float) -> None:
    """Factors of 16 and 2: what they have in common is left out, and none is less than reached."""
    ranges = layers((256.0, 4.0), (1.0, 1.0))
    free = channel_factors(ranges, np.array([1.0, 256.0, 4.0]), NONE)
    np.testing.assert_allclose(free, [1, 16, 2])
    reached = np.array([0.0, least, least])
    found = channel_factors(ranges, np.array([1.0, 256.0, 4.0]), reached)
    np.testing.assert_allclose(found, [1, 1, wanted])
