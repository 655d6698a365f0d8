"""Caches that a run writes a row of: attention over them has the same results in another order."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

from dovetail.compiler.front.onnx.quantize.calibrate import tensors_of
from dovetail.compiler.front.onnx.quantize.evaluate import Evaluator
from dovetail.compiler.front.onnx.quantize.model import FloatModel, read_model
from dovetail.compiler.front.onnx.quantize.written_caches import ReadWrittenCaches
from dovetail.compiler.graph.ir import Array

N, HEADS, SIZE = 6, 2, 3
CACHE, ROW = f"float[1, {HEADS}, {N}, {SIZE}]", f"float[1, {HEADS}, 1, {SIZE}]"
TEXT = f"""
<ir_version: 8, opset_import: ["" : 17]>
written (int64[1] position, {ROW} q, {ROW} k, {ROW} v, {CACHE} past_k, {CACHE} past_v)
  => (float[1, {HEADS}, 1, {SIZE}] mixed, {CACHE} new_k, {CACHE} new_v)
{{
  where = Reshape(position, four)
  places = Expand(where, row_shape)
  new_k = ScatterElements<axis = 2>(past_k, places, k)
  turned_v = Transpose<perm = [2, 0, 1, 3]>(past_v)
  turned_row = Transpose<perm = [2, 0, 1, 3]>(v)
  index = Reshape(position, two)
  written_v = ScatterND(turned_v, index, turned_row)
  new_v = Transpose<perm = [1, 2, 0, 3]>(written_v)
  columns = Transpose<perm = [0, 1, 3, 2]>(new_k)
  scores = MatMul(q, columns)
  seen = LessOrEqual(ages, position)
  bias = Where(seen, nothing, hidden)
  risen = Mul(scores, slopes)
  masked = Add(risen, bias)
  shares = Softmax<axis = 3>(masked)
  mixed = MatMul(shares, new_v)
}}
"""
CONSTANTS = {
    "four": np.array([1, 1, 1, 1]),
    "two": np.array([1, 1]),
    "three": np.array(3),
    "row_shape": np.array([1, HEADS, 1, SIZE]),
    "ages": np.arange(N),
    "nothing": np.float32(0),
    "hidden": np.float32(-1e9),
    "slopes": np.linspace(1, 2, HEADS * N, dtype=np.float32).reshape(1, HEADS, 1, N),
}


def written(text: str = TEXT) -> onnx.ModelProto:
    model = parser.parse_model(text)
    for name, value in CONSTANTS.items():
        model.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    return model


def sample(position: int) -> dict[str, Array]:
    rng = np.random.default_rng(position)
    shapes = {"q": 1, "k": 1, "v": 1, "past_k": N, "past_v": N}
    return {"position": np.array([position])} | {
        name: rng.standard_normal((1, HEADS, count, SIZE)).astype(np.float32)
        for name, count in shapes.items()
    }


def read(model: FloatModel) -> FloatModel:
    return ReadWrittenCaches(tensors_of(model, sample(0))[0]).run(model)


@pytest.mark.parametrize("position", [0, 3, N - 1])
def test_results_and_caches_stay(position: int) -> None:
    model = read_model(written())
    found = read(model)
    assert {node.kind for node in found.nodes} > {"Concat", "ScatterElements", "ScatterND"}
    product = next(node for node in found.nodes if node.outputs == ("mixed",))
    assert "new_v" not in product.inputs
    given = sample(position)
    wanted, own = (dict(Evaluator(each).run(given)) for each in (model, found))
    for name in model.outputs:
        np.testing.assert_allclose(own[name], wanted[name], atol=1e-6)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Softmax<axis = 3>(masked)", "CumSum(masked, three)"),
        ("ScatterElements<axis = 2>", 'ScatterElements<axis = 2, reduction = "add">'),
        ("MatMul(shares, new_v)", "MatMul(shares, past_v)"),
    ],
    ids=["order", "sum", "values-as-they-are"],
)
def test_what_sees_the_order_stays(before: str, after: str) -> None:
    model = read_model(written(TEXT.replace(before, after)))
    assert read(model) is model
