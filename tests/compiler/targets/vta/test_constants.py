"""Placement of constants in DRAM."""

import numpy as np

from dovetail.compiler.targets.vta.constants import DramMap

from .programs import TINY


def test_constants_lie_aligned_and_apart() -> None:
    dram = DramMap(TINY)
    parts = [np.full(size, value, np.int8) for value, size in ((1, 3), (2, 200), (3, 64))]
    place = dram.reserve(10)
    addresses = [dram.add(part) for part in parts]
    image = np.frombuffer(dram.image(), np.int8)
    assert len(image) == dram.size
    assert all(address % TINY.burst_bytes == 0 for address in addresses)
    assert not image[place : place + 10].any()
    for part, address in zip(parts, addresses, strict=True):
        assert np.array_equal(image[address : address + part.size], part)


def test_equal_constants_share_their_place() -> None:
    dram = DramMap(TINY)
    first, other, again = (dram.add(np.full(8, value, np.int8)) for value in (1, 2, 1))
    assert first == again != other
