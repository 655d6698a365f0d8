"""A run that says too little to be a profile."""

import pytest

from dovetail.runtime.errors import DeviceError
from dovetail.runtime.profile.profile import make_profile
from dovetail.runtime.result import RunResult

from ..sample import copy_module


def test_a_profile_needs_the_time_of_each_instruction() -> None:
    result = RunResult({}, "board", 0.0, 0.0, 0.0, 100, 0)
    with pytest.raises(DeviceError, match="'board' does not say when each instruction ran"):
        make_profile("model", copy_module(), result)
