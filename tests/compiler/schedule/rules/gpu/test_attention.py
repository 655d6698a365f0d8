"""Attention that the rules take."""

import pytest

from dovetail.compiler.errors import ScheduleError
from dovetail.compiler.schedule.rules.gpu.attention import _require_one

LOOPS = {"r2": 16, "c0": 16, "k0": 16, "e2": 16, "c4": 16}


@pytest.mark.parametrize("gone", [None, "k0", "e2", "c4"])
@pytest.mark.parametrize("more", [None, "k1", "e4"])
def test_tiles_have_one_depth_and_one_label_of_values(gone: str | None, more: str | None) -> None:
    loops = {name: size for name, size in LOOPS.items() if name != gone}
    loops |= {more: 4} if more else {}
    if gone is None and more is None:
        _require_one(loops)
    else:
        with pytest.raises(ScheduleError, match="required one depth, one label of values"):
            _require_one(loops)
