"""Random programs under random schedules give the interpreter's result as machine code."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.compiler.dtypes import DType
from dovetail.compiler.loops.ir import Function

from ....loops.strategies import functions
from ....schedule.steps.steps import schedules
from .kernels import LEVELS
from .test_random import agree

EXACT = (DType.INT8, DType.INT32, DType.INT64, DType.UINT8, DType.FLOAT64)


@pytest.mark.parametrize("level", LEVELS[1:])
@given(function=functions(dtypes=EXACT, max_size=9), data=st.data())
@settings(max_examples=30, deadline=None)
def test_a_scheduled_program_equals_the_interpreter(
    level: str, function: Function, data: st.DataObject
) -> None:
    scheduled = data.draw(schedules(function, cpu=True)).function
    agree(function, scheduled, level)
