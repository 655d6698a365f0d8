"""A model in two: what each half is, by hand."""

import onnx
from onnx import parser

from dovetail.compiler.front.onnx.split import early_model, late_model
from dovetail.compiler.graph.types import TensorType

TEXT = """
<ir_version: 9, opset_import: ["": 17, "own": 3]>
whole (float[4] x, bool b, float[4] z) => (float[4] first, float[N] last, float[4] same)
<float[4] given = {1, 2, 3, 4}, float[N] open>
{
    made = Constant<value_float=2.0>()
    scale = Add(made, made)
    first = Mul(x, scale)
    inner = Neg(first)
    root = own.Shape_of_data(inner, given)
    other = Add(root, scale)
    last = If(b) <
        then_branch = then () => (own_last) { t = Add(other, x) own_last = Add(t, given) },
        else_branch = else () => (z) {}
    >
    same = Abs(x)
}
<domain: "own", opset_import: ["": 17]>
Shape_of_data (a, w) => (y) { y = Add(a, w) }
"""


def model() -> onnx.ModelProto:
    found = parser.parse_model(TEXT)
    sparse = found.graph.sparse_initializer.add()
    sparse.values.name = "few"
    return found


def names(values: object) -> list[str]:
    return [each.name for each in values]  # type: ignore[attr-defined]


def about(found: onnx.ModelProto) -> tuple[object, ...]:
    opsets = {each.domain: each.version for each in found.opset_import}
    return (
        *(found.ir_version, opsets, names(found.functions), found.graph.name),
        *(names(found.graph.initializer), [s.values.name for s in found.graph.sparse_initializer]),
    )


KEPT = 9, {"": 17, "own": 3}, ["Shape_of_data"], "whole", ["given"], ["few"]


def test_the_early_model_gives_what_the_late_one_reads() -> None:
    whole = model()
    found = early_model(whole, {"root"})
    made = [each.output[0] for each in found.graph.node]
    assert made == ["made", "scale", "first", "inner", "same"]
    assert names(found.graph.input) == ["x", "b", "z"]
    assert names(found.graph.output) == ["first", "same", "inner"]
    shapes = [each.type.tensor_type.HasField("shape") for each in found.graph.output]
    assert shapes == [True, True, False]
    assert about(found) == KEPT


def test_the_late_model_has_constants_of_its_own() -> None:
    types = {
        name: TensorType(shape, dtype)
        for name, shape, dtype in (
            *(("inner", (4,), "float32"), ("b", (), "bool")),
            *(("x", (4,), "float32"), ("z", (4,), "float32")),
        )
    }
    found = late_model(model(), {"root"}, types)
    assert [each.output[0] for each in found.graph.node] == [
        *("made", "scale", "root", "other", "last")
    ]
    assert names(found.graph.input) == ["inner", "b", "x", "z"]
    kinds = [each.type.tensor_type.elem_type for each in found.graph.input]
    assert kinds == [1, 9, 1, 1]
    assert [len(each.type.tensor_type.shape.dim) for each in found.graph.input] == [1, 0, 1, 1]
    assert names(found.graph.output) == ["last"]
    assert about(found) == KEPT
