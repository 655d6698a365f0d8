"""Values that operators, expressions and graphs refuse when they are made."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dovetail.compiler.dtypes import DType
from dovetail.compiler.errors import CalibrationError, GraphError
from dovetail.compiler.graph.ir import Graph
from dovetail.compiler.graph.operators.contractions import contract
from dovetail.compiler.graph.operators.movement import Transpose
from dovetail.compiler.graph.operators.reductions import ArgReduce, Reduce, ReduceFunction
from dovetail.compiler.graph.operators.windows import WindowFunction, WindowReduce
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.loops.expressions import (
    Binary,
    BinaryFunction,
    Constant,
    Select,
    Unary,
    UnaryFunction,
)
from dovetail.compiler.quantize.data.labels import read_classes
from dovetail.isa.errors import EncodingError
from dovetail.isa.formats import Field, Format

KIND = TensorType((2, 3), DType.FLOAT32)
TRUE, ONE, LONG = (Constant(1, each) for each in (DType.BOOL, DType.INT32, DType.INT64))
SUM = ReduceFunction.SUM


def windows(**given: Any) -> WindowReduce:
    known = {"axes": (1, 2), "kernel": (2, 2), "strides": (1, 1), "dilations": (1, 1)}
    known |= {"pads": ((0, 0), (0, 0)), "function": WindowFunction.MAX}
    return WindowReduce(**{**known, **given})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (partial(Graph, ("x",), {}, (), (), {}), "'x' has no type"),
        (partial(contract, [KIND], [[0]], [0], KIND.dtype), "its operand has 1 labels"),
        (partial(contract, [KIND], [[0, 0]], [0], KIND.dtype), "sizes 2 and 3 of one label"),
        (
            partial(contract, [KIND], [[0, 1]], [0, 7], KIND.dtype),
            r"\[7\] are of no operand",
        ),
        (partial(Transpose, (0, 2)), "required a permutation of 0, 1"),
        (partial(Transpose, (1, 1)), "required a permutation of 0, 1"),
        (partial(Reduce, SUM, (1, 1), True), "required different axes"),
        (partial(ArgReduce, SUM, 1), "required min or max"),
        (partial(windows, axes=(1, 1)), "required each axis once"),
        (partial(windows, pads=((0, 0),)), "required attributes of one length"),
        (partial(windows, kernel=(2, 0)), "strides and dilations of at least 1"),
        (partial(windows, strides=(0, 1)), "strides and dilations of at least 1"),
        (partial(windows, dilations=(1, 0)), "strides and dilations of at least 1"),
        (partial(Select, ONE, ONE, ONE), "operands are int32, int32 and int32; required bool"),
        (partial(Select, TRUE, ONE, LONG), "required bool and two of one dtype"),
    ],
)
def test_graphs_and_loops_are_not_made_of_what_fits_nowhere(
    make: Callable[[], object], message: str
) -> None:
    with pytest.raises(GraphError, match=message):
        make()


def test_expressions_are_shown_and_compared_by_what_they_are_made_of() -> None:
    select = Select(TRUE, ONE, ONE)
    made = [select, Binary(BinaryFunction.ADD, ONE, ONE), Unary(UnaryFunction.NEG, ONE)]
    for each in made:
        assert each.dtype is DType.INT32
        assert repr(each).count("dtype=") == repr(each).count("Constant(")
    assert len({*made, Select(TRUE, ONE, ONE)}) == len(made)


def test_names_are_given_once(tmp_path: Path) -> None:
    fields = Field("a", 3, "first"), Field("a", 2, "second")
    with pytest.raises(EncodingError, match="format f names a field twice"):
        Format("f", 8, fields)
    (tmp_path / "classes.txt").write_text("cat\ndog\ncat\n")
    with pytest.raises(CalibrationError, match=r"class 'cat' twice; required each name once"):
        read_classes(tmp_path / "classes.txt")
