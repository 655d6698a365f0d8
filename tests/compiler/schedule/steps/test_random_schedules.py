"""Random functions and random steps: what applies keeps the meaning and all rules."""

import json

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.compiler.dtypes import DType
from dovetail.compiler.errors import GraphError
from dovetail.compiler.loops.equal import equal
from dovetail.compiler.loops.interpreter import interpret
from dovetail.compiler.loops.ir import Function
from dovetail.compiler.loops.parse import parse
from dovetail.compiler.loops.text import to_text
from dovetail.compiler.loops.verify import verify
from dovetail.compiler.schedule.steps.trace import replay, to_record
from tests.compiler.loops.strategies import arrays_for, functions

from .steps import schedules

EXACT = (DType.INT8, DType.INT32, DType.INT64, DType.UINT8, DType.FLOAT64)
"""Sums of the floats that ``arrays_for`` gives are exact in float64."""


@settings(max_examples=200, deadline=None)
@given(functions(dtypes=EXACT), st.data())
def test_a_scheduled_function_computes_the_same(function: Function, data: st.DataObject) -> None:
    schedule = data.draw(schedules(function))
    arrays = arrays_for(function)
    expected = interpret(function, arrays)["y"]
    try:
        verify(schedule.function)
    except GraphError as error:
        # A proof may be too hard; the interpreter then shows whether an index is out of range.
        if "guard or clamp it" not in str(error):
            raise
    found = interpret(schedule.function, arrays, seed=1)["y"]
    np.testing.assert_array_equal(
        found, expected, err_msg=f"{schedule.trace}\n{to_text(schedule.function)}"
    )


@settings(max_examples=50, deadline=None)
@given(functions(), st.data())
def test_a_trace_is_replayed_from_json(function: Function, data: st.DataObject) -> None:
    schedule = data.draw(schedules(function))
    record = json.loads(json.dumps(to_record(schedule)))
    again = replay(function, record)
    assert again.trace == schedule.trace
    assert equal(again.function, schedule.function)
    assert equal(parse(to_text(again.function)), schedule.function)
