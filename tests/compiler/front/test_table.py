"""A front end of this file alone: its models go through the whole compiler."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from dovetail.compiler import compile
from dovetail.compiler.errors import ModelError
from dovetail.compiler.front.onnx import table as onnx_table
from dovetail.compiler.front.source import Imported, InputSignature
from dovetail.compiler.front.stored import StoredModel
from dovetail.compiler.front.table import open_model, store_model
from dovetail.compiler.front.tflite import table as tflite_table
from dovetail.compiler.front.torch import table as torch_table
from dovetail.compiler.graph.ir import GraphBuilder
from dovetail.compiler.graph.operators.elementwise import Binary, BinaryFunction
from dovetail.compiler.graph.types import TensorType
from dovetail.runtime.session import run


@dataclass(frozen=True)
class Sum:
    """The format of this front: ``a + b`` of so many floats."""

    size: int

    @property
    def quantizes(self) -> bool:
        return False

    def open_sizes(self) -> tuple[InputSignature, ...]:
        return ()

    def bind(self, dims: Mapping[str, int]) -> "Sum":
        if dims:
            raise ModelError("a sum has no symbolic dimensions")
        return self

    def to_graph(self, batch: int | None = None) -> Imported:
        builder = GraphBuilder()
        kind = TensorType((self.size,), "float32")
        names = (builder.input("a", kind), builder.input("b", kind))
        result = builder.node(Binary(BinaryFunction.ADD), names, "y", "sum")
        return Imported(builder.build((result,)), {"sum": "Sum"})

    def to_graph_and_rest(self, batch: int | None = None) -> Imported:
        return self.to_graph(batch)


def test_a_front_of_ones_own_reaches_the_cpu() -> None:
    module = compile(Sum(5), "cpu")
    a, b = np.arange(5, dtype=np.float32), np.full(5, 0.5, np.float32)
    np.testing.assert_array_equal(run(module, {"a": a, "b": b}).outputs["y"], a + b)


def test_its_errors_are_the_users() -> None:
    with pytest.raises(ModelError, match="no symbolic dimensions"):
        compile(Sum(5), "cpu", dims={"n": 3})


def test_a_missing_file_is_said_to_be_missing() -> None:
    with pytest.raises(ModelError, match="no model file"):
        open_model("there/is/none.onnx")


def test_a_model_is_stored_as_the_front_end_reads_it(tmp_path: Path) -> None:
    """A file whose suffix tells nothing is ONNX, as ``open_model`` takes it."""
    model = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["": 18]> m (float[2] x) => (float[2] y) { y = Abs (x) }'
    )
    for name in ("model.onnx", "model", "model.bin"):
        onnx.save(model, tmp_path / name)
        stored = store_model(tmp_path / name)
        assert stored == StoredModel(".onnx", model.SerializeToString())


@pytest.mark.parametrize("table", [onnx_table, tflite_table, torch_table])
def test_every_operator_has_one_converter(table: Any) -> None:
    """A second one, in the table of another family, would never be called."""
    others = [each for name, each in vars(table).items() if name.isupper() and name != "CONVERTERS"]
    families = [each for each in others if isinstance(each, Mapping)]
    families = [each for each in families if callable(next(iter(each.values())))]
    assert len(families) > 10
    assert sum(map(len, families)) == len(table.CONVERTERS)
