"""Programs to schedule, and what every schedule must keep."""

from collections.abc import Mapping

import numpy as np

from dovetail.compiler.loops.interpreter import interpret
from dovetail.compiler.loops.intrinsic import Intrinsic
from dovetail.compiler.loops.ir import Function
from dovetail.compiler.loops.parse import parse
from dovetail.compiler.loops.text import to_text
from dovetail.compiler.loops.verify import verify
from dovetail.compiler.schedule.steps.schedule import Schedule
from tests.compiler.loops.strategies import arrays_for

__all__ = ["body_of", "keeps", "program", "scheduled"]

HEADERS = {
    "map": ("input x: float32[12]", "output y: float32[12]"),
    "square": ("input x: int32[6, 8]", "output y: int32[6, 8]"),
    "sum": ("input x: int32[6, 8]", "output y: int32[6]"),
    "bytes": ("input x: uint8[3, 40]", "output y: uint8[40, 3]"),
    "blocks": ("input x: uint8[3, 40]", "output y: uint8[2, 40, 3]"),
    "packed": ("input x: int32[8, 16]", "output y: uint8[8, 16]"),
    "row": ("input x: int32[10]", "output y: int32[10]"),
    "strips": ("input x: int32[3, 40]", "output y: int32[3, 40]", "output z: int32[3]"),
    "cube": ("input x: int32[8, 16]", "output y: uint8[4, 4, 16]"),
    "matmul": ("input a: int32[6, 10]", "input b: int32[10, 8]", "output c: int32[6, 8]"),
}


def program(kind: str, body: str) -> Function:
    """A function of the parameters of ``kind``; ``body`` is text indented by 2 or more."""
    lines = ['function "f"', *(f"  {line}" for line in HEADERS[kind])]
    return parse("\n".join(lines) + "\n" + body.strip("\n"))


def scheduled(kind: str, body: str, intrinsics: Mapping[str, Intrinsic] | None = None) -> Schedule:
    """A schedule of such a program."""
    return Schedule.of(program(kind, body), intrinsics)


def body_of(schedule: Schedule) -> str:
    """The text of the body, as ``program`` takes it."""
    lines = to_text(schedule.function).splitlines()
    return "\n".join(line for line in lines[1:] if not line.startswith(("  input", "  output")))


def keeps(schedule: Schedule, original: Function) -> None:
    """The schedule keeps all rules and computes what the original does, in any order."""
    verify(schedule.function, schedule.intrinsics)
    arrays = arrays_for(original)
    expected = interpret(original, arrays, intrinsics=schedule.intrinsics)
    for seed in (None, 1, 2):
        found = interpret(schedule.function, arrays, seed=seed, intrinsics=schedule.intrinsics)
        for name, array in expected.items():
            np.testing.assert_array_equal(found[name], array, err_msg=to_text(schedule.function))
