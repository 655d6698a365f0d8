"""Rings: words of a memory given out in turn."""

import pytest

from dovetail.compiler.errors import DoesNotFitError
from dovetail.compiler.targets.vta.ring import Ring
from dovetail.isa.memories import Memory

from .programs import TINY


def test_a_ring_gives_out_its_words_in_turn_and_wraps() -> None:
    ring = Ring(TINY, Memory.WGT)
    assert [ring.take(50, "layer").start for _ in range(4)] == [0, 50, 100, 22]


def test_a_ring_holds_a_grant_until_its_words_are_given_out_again() -> None:
    ring = Ring(TINY, Memory.WGT)
    first = ring.take(TINY.wgt_depth // 2, "layer")
    second = ring.take(TINY.wgt_depth // 2, "layer")
    assert ring.holds(first)
    ring.take(1, "layer")
    assert not ring.holds(first)
    assert ring.holds(second)


def test_a_ring_refuses_more_than_it_has() -> None:
    with pytest.raises(DoesNotFitError, match="wgt scratchpad: 129 words required, 128 available"):
        Ring(TINY, Memory.WGT).take(129, "layer")
