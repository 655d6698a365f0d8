"""Settings of the tests of boards."""

from collections.abc import Iterator

import pytest

from dovetail.vta_hw import build

from ..quick_builds import SHORT_FUNCTIONS


@pytest.fixture(scope="module", autouse=True)
def long_functions(quick_builds: None) -> Iterator[None]:
    """Emulated boards run for millions of cycles: what is saved of their build would be lost."""
    flags = tuple(each for each in build.VERILATOR_FLAGS if each not in SHORT_FUNCTIONS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "VERILATOR_FLAGS", flags)
        yield
