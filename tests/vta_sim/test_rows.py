"""The simulator's quotients and roots, uncompiled, at the edges of every rounding."""

from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.isa import rows
from dovetail.isa.rows import ROOT_TABLE
from dovetail.vta_sim.rows import _over, _over_root

LARGEST = (1 << 31) - 1


def totals(rng: np.random.Generator) -> NDArray[np.int32]:
    """Around powers of two, where float32 rounds, ties of it among them; and any."""
    powers = 1 << np.arange(31)
    near = (powers[:, np.newaxis] + np.arange(-3, 4)).reshape(-1)
    ties = [(mantissa << step) + (1 << step - 1) for step in (1, 2, 7) for mantissa in MANTISSAS]
    found = np.concatenate([near, ties, rng.integers(1, LARGEST, 100), [LARGEST]])
    return np.clip(found, 1, LARGEST).astype(np.int32)


MANTISSAS = ((1 << 23), (1 << 23) + 1, (1 << 24) - 2, (1 << 24) - 1)


def scales(rng: np.random.Generator, count: int) -> NDArray[np.uint32]:
    """Scales of every size; subnormal ones, the smallest and the largest normal ones, and NaN."""
    edges = [0, 1, 0x7FFFFF, 0x800000, 0x800001, 0x1000000, 0x7F7FFFFF, 0x7F800000, 0x7FC00000]
    found = np.concatenate([edges, rng.integers(0, LARGEST, count - len(edges))])
    return rng.permutation(found).astype(np.uint32)


def test_quotients_are_those_of_the_semantics() -> None:
    rng = np.random.default_rng(1)
    total = totals(rng)
    for bits in (scales(rng, len(total)), np.full(len(total), 0x3F800000, np.uint32)):
        expected = rows.quotient(bits.view(np.float32), total).view(np.uint32)
        found = [_over(*pair) for pair in zip(bits.tolist(), total.tolist(), strict=True)]
        assert found == expected.tolist()


def test_scales_over_roots_are_those_of_the_semantics() -> None:
    rng = np.random.default_rng(2)
    total = totals(rng)
    memories: Any = SimpleNamespace(roots=ROOT_TABLE.reshape(-1).tolist())
    none = np.zeros(len(total), np.int32)
    for shift in (0, 19, 31):
        bits = scales(rng, len(total))
        over = rows.over_root(total[:, np.newaxis], none, bits.view(np.float32), shift)
        found = [
            _over_root(memories, *pair, shift)
            for pair in zip(bits.tolist(), total.tolist(), strict=True)
        ]
        assert found == over.view(np.uint32).tolist()
