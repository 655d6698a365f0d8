"""Whoever makes a constant whose size a file decides asks for its room before."""

from math import prod
from typing import Any

import numpy as np
import pytest

from dovetail.compiler.dtypes import DType
from dovetail.compiler.front.torch.context import Context
from dovetail.compiler.front.torch.table import CONVERTERS
from dovetail.compiler.graph.formulas import Term
from dovetail.compiler.graph.ir import GraphBuilder, TensorType

PICTURE, FLAT = (1, 2, 7, 9), (1, 12, 35)
CALLS: dict[str, tuple[tuple[int, ...] | None, tuple[Any, ...]]] = {
    "aten.im2col": (PICTURE, ((2, 3), 1, 0, 1)),
    "aten.col2im": (FLAT, ((6, 9), (2, 3), 1, 0, 1)),
    "aten.adaptive_avg_pool2d": (PICTURE, ((4, 5),)),
    "aten.adaptive_max_pool2d": (PICTURE, ((4, 5),)),
    "aten.avg_pool2d": (PICTURE, (3, 2, 1)),
    "aten.upsample_nearest2d": (PICTURE, ((11, 30),)),
    "aten.upsample_bilinear2d": (PICTURE, ((11, 30), False)),
    "aten._upsample_bilinear2d_aa": (PICTURE, ((5, 30), False)),
    "aten.unfold": (PICTURE, (3, 4, 1)),
    "aten.as_strided": (PICTURE, ((5, 8), (2, 1))),
    "aten.one_hot": ((3,), (40,)),
    "aten.arange": (None, (50,)),
    "aten.linspace": (None, (0, 1, 50)),
    "aten.eye": (None, (7, 9)),
    "aten.tril_indices": (None, (7, 9)),
    "aten.triu_indices": (None, (9, 7)),
}
"""An input of each operator that is not known, and its other arguments."""


@pytest.mark.parametrize("name", CALLS)
def test_room_is_asked_for_all_that_is_made(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    context = Context(GraphBuilder())
    shape, given = CALLS[name]
    context.declared = (DType.INT64 if name.endswith("indices") else DType.FLOAT32,)
    asked, beyond, make = [1], list[int](), Context.constant

    def constant(made: Context, array: Any, dtype: Any = None) -> Any:
        if np.size(array) > 2 * max(asked):  # indices of triangles are pairs
            beyond.append(np.size(array))
        return make(made, array, dtype)

    monkeypatch.setattr(Context, "require_room", lambda _, *sizes: asked.append(prod(sizes)))
    monkeypatch.setattr(Context, "constant", constant)
    inputs = []
    if shape is not None:
        dtype = "int64" if name == "aten.one_hot" else "float32"
        x = context.builder.input("x", TensorType(shape, dtype))
        inputs.append(Term(context, context.tensor(x)))
    CONVERTERS[name](context, *inputs, *given)
    assert len(asked) > 1
    assert not beyond, f"{max(asked)} elements asked for"
