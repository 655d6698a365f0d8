"""Whoever makes a constant whose size a file decides asks for its room before."""

from math import prod
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tflite", reason="tflite, which reads the files, is not installed")

from dovetail.compiler.front.tflite.context import ImportContext
from dovetail.compiler.front.tflite.source import TfliteModel

from .case import Const, F, In, Operands, Out, State, case, floats, i32

ROWS, PICTURE = In((5, 70)), In((1, 6, 7, 1))
HALF = Const(np.float32(0.5))
CASES: dict[str, tuple[Operands, Out, str, dict[str, Any]]] = {
    "ONE_HOT": ([In((3,), "int32"), i32(50), HALF, HALF], F, "OneHotOptions", {"Axis": -1}),
    "RANGE": ([i32(0), i32(150), i32(3)], Out("int32"), "RangeOptions", {}),
    "DYNAMIC_UPDATE_SLICE": (
        [ROWS, In((4, 20)), i32(0, 0)], F, "DynamicUpdateSliceOptions", {},
    ),
    "MIRROR_PAD": ([ROWS, Const(np.array([[0, 0], [60, 60]], "int32"))], F, "MirrorPadOptions", {}),
    "MATRIX_DIAG": ([In((2, 9))], F, "MatrixDiagOptions", {}),
    "MATRIX_SET_DIAG": ([In((2, 9, 8)), In((2, 8))], F, "MatrixSetDiagOptions", {}),
    "RESIZE_BILINEAR": ([PICTURE, i32(80, 3)], F, "ResizeBilinearOptions", {}),
    "RESIZE_NEAREST_NEIGHBOR": ([PICTURE, i32(3, 80)], F, "ResizeNearestNeighborOptions", {}),
    "MEAN": (
        [In((1, 9, 9, 4), "int8", scale=0.1), i32(1, 2)],
        *(Out("int8", 0.1), "ReducerOptions", {"KeepDims": False}),
    ),
    "AVERAGE_POOL_2D": (
        [In((1, 9, 9, 1))], F, "Pool2DOptions",
        {"Padding": 0, "StrideH": 1, "StrideW": 1, "FilterHeight": 2, "FilterWidth": 2},
    ),
    "RNN": (
        [In((50, 3)), floats(4, 3), floats(4, 4), floats(4), State((50, 4))], F, "RNNOptions", {},
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", CASES)
def test_room_is_asked_for_all_that_is_made(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    operands, result, table, options = CASES[kind]
    asked, beyond, make = [16], list[int](), ImportContext.constant

    def constant(made: ImportContext, array: Any, dtype: Any = None) -> Any:
        if np.size(array) > 2 * max(asked):
            beyond.append(np.size(array))
        return make(made, array, dtype)

    monkeypatch.setattr(ImportContext, "require_room", lambda _, *sizes: asked.append(prod(sizes)))
    monkeypatch.setattr(ImportContext, "constant", constant)
    TfliteModel.of(case(kind, operands, [result], table, options).content).to_graph()
    assert len(asked) > 1
    assert not beyond, f"{max(asked)} elements asked for"
