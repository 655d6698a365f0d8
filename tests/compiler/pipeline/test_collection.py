"""The collector of cycles rests within, and is afterwards what it was before."""

import gc

import pytest

from dovetail.compiler.pipeline.collection import paused_collection


def fail_within() -> None:
    with paused_collection():
        assert not gc.isenabled()
        raise ZeroDivisionError


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_is_afterwards_what_it_was(enabled: bool) -> None:
    before = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        with pytest.raises(ZeroDivisionError):
            fail_within()
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if before else gc.disable)()
