"""Embeddings, masks, attention and normalisations of rows, as exporters write them."""

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from dovetail.compiler import compile
from dovetail.compiler.errors import ModelError
from dovetail.compiler.front.onnx.quantize import QuantizedModel, compare, quantize_model
from dovetail.compiler.front.onnx.quantize.masks import Scores
from dovetail.compiler.front.onnx.quantize.model import read_model
from dovetail.compiler.front.onnx.quantize.norms import find_norms
from dovetail.compiler.graph.ir import Array
from dovetail.runtime import run
from tests.compiler.front.onnx.quantize.kept_models import check_model

from .floats import random

WORDS, ROWS, WIDTH = 50, 12, 32


def node(kind: str, inputs: str, out: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(kind, inputs.split(), [out], name=out, **attributes)


CONSTANTS: dict[str, Array] = {
    "table": random((WORDS, WIDTH), 1, 0.5),
    "places": random((1, ROWS, WIDTH), 2, 0.2),
    "gain": random((WIDTH,), 3, 0.2) + 1,
    "shift": random((WIDTH,), 4, 0.1),
    "wq": random((WIDTH, WIDTH), 5, 0.2),
    "wk": random((WIDTH, WIDTH), 6, 0.2),
    "wv": random((WIDTH, WIDTH), 7, 0.2),
    "root": np.float32(WIDTH**0.5),
    "lowest": np.array(np.finfo(np.float32).min, np.float32),
    "infinite": np.array(-np.inf, np.float32),
    "zero": np.float32(0),
    "one": np.float32(1),
    "two": np.float32(2),
    "tiny": np.float32(1e-5),
    "none": np.int64(0),
    "middle": np.array([1]),
    "causal": np.tril(np.ones((1, ROWS, ROWS), bool)),
}
EMBEDDING = [node("Gather", "table ids", "words"), node("Add", "words places", "x")]
ATTENTION = [
    node("MatMul", "n wq", "q"),
    node("MatMul", "n wk", "k"),
    node("MatMul", "n wv", "v"),
    node("Transpose", "k", "kt", perm=[0, 2, 1]),
    node("MatMul", "q kt", "products"),
    node("Div", "products root", "scores"),
]
RESULT = [node("MatMul", "p v", "attended"), node("Add", "x attended", "y")]
NORM = [node("LayerNormalization", "x gain shift", "n", axis=-1)]
ADDED = [
    node("Cast", "mask", "real", to=TensorProto.FLOAT),
    node("Sub", "one real", "left_out"),
    node("Mul", "left_out lowest", "depth"),
    node("Unsqueeze", "depth middle", "added"),
    node("Add", "scores added", "masked"),
    node("Softmax", "masked", "p", axis=-1),
]
CHOSEN = [
    node("Where", "causal scores infinite", "masked"),
    node("Softmax", "masked", "p0", axis=-1),
    node("IsNaN", "p0", "undefined"),
    node("Where", "undefined zero p0", "p"),
]
DECOMPOSED = [
    node("ReduceMean", "x", "mean", axes=[-1]),
    node("Sub", "x mean", "less"),
    node("Pow", "less two", "square"),
    node("ReduceMean", "square", "variance", axes=[2]),
    node("Add", "variance tiny", "moved"),
    node("Sqrt", "moved", "deviation"),
    node("Div", "less deviation", "unit"),
    node("Mul", "unit gain", "gained"),
    node("Add", "shift gained", "n"),
]
ROOT_MEAN_SQUARE = [
    node("Mul", "x x", "square"),
    node("ReduceMean", "square", "power", axes=[-1]),
    node("Add", "tiny power", "moved"),
    node("Sqrt", "moved", "deviation"),
    node("Div", "one deviation", "factor"),
    node("Mul", "x factor", "unit"),
    node("Mul", "gain unit", "n"),
]
LENGTH = [
    node("ReduceL2", "x", "length", axes=[-1]),
    node("Clip", "length tiny", "least"),
    node("Div", "x least", "n"),
]
TWO_MASKS = [
    node("Where", "causal scores lowest", "earlier"),
    *ADDED[:-2],
    node("Add", "earlier added", "masked"),
    ADDED[-1],
]
MODELS = {
    "mask added": [*EMBEDDING, *NORM, *ATTENTION, *ADDED, *RESULT],
    "mask chosen": [*EMBEDDING, *NORM, *ATTENTION, *CHOSEN, *RESULT],
    "two masks": [*EMBEDDING, *NORM, *ATTENTION, *TWO_MASKS, *RESULT],
    "normalisation in arithmetic": [*EMBEDDING, *DECOMPOSED, *ATTENTION, *CHOSEN, *RESULT],
    "root mean square": [*EMBEDDING, *ROOT_MEAN_SQUARE, *ATTENTION, *ADDED, *RESULT],
}


def model_of(nodes: list[onnx.NodeProto], *outputs: str) -> onnx.ModelProto:
    used = {name for each in nodes for name in each.input}
    inputs = {"ids": (1, ROWS), "mask": (1, ROWS)}
    graph = helper.make_graph(
        nodes,
        "transformer",
        [
            helper.make_tensor_value_info(name, TensorProto.INT64, shape)
            for name, shape in inputs.items()
            if name in used
        ],
        [helper.make_empty_tensor_value_info(name) for name in outputs or ("y",)],
        [numpy_helper.from_array(array, n) for n, array in CONSTANTS.items() if n in used],
    )
    opset = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=8)
    return onnx.shape_inference.infer_shapes(model)


def sample_of(model: onnx.ModelProto, seed: int) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    given = {
        "ids": rng.integers(0, WORDS, (1, ROWS)),
        "mask": (np.arange(ROWS) < rng.integers(4, ROWS + 1))[None].astype(np.int64),
    }
    return {each.name: given[each.name] for each in model.graph.input}


def quantized(model: onnx.ModelProto) -> QuantizedModel:
    return quantize_model(model, [sample_of(model, seed) for seed in range(12)])


def onnx_runtime(model: onnx.ModelProto, sample: dict[str, Array]) -> list[Array]:
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    return onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, sample)


@pytest.mark.parametrize("name", MODELS)
def test_a_block_is_near_its_floats_and_the_same_everywhere(name: str) -> None:
    model = model_of(MODELS[name])
    found = quantized(model)
    check_model(found)
    module = compile(found.model, "cpu")
    for seed in (3, 7):
        # Both decided ranges: what lies outside of them is another loss.
        sample = sample_of(model, seed)
        (exact,), (value,) = onnx_runtime(model, sample), onnx_runtime(found.model, sample)
        rows = slice(int(sample["mask"].sum()) if "mask" in sample else ROWS)
        error = np.linalg.norm((value - exact)[:, rows]) / np.linalg.norm(exact[:, rows])
        assert error < 0.04
        (own,) = run(module, sample, "cpu").outputs.values()
        # Where a byte of a normalisation or Softmax is a step from ONNX Runtime's, a row differs.
        step = next(each for each in found.model.graph.initializer if each.name == "y/scale")
        steps = np.rint(np.abs(own - value) / numpy_helper.to_array(step))
        assert steps.max() <= 1
        assert (steps > 0).mean() < 0.15


def test_only_what_makes_the_mask_stays_float() -> None:
    kept = quantized(model_of(MODELS["mask added"])).kept
    assert [str(where).split("'")[1] for where, _ in kept] == ["real", "left_out", "depth"]
    assert quantized(model_of(MODELS["mask chosen"])).kept == ()


@pytest.mark.parametrize(
    ("nodes", "between"),
    [(DECOMPOSED, ["less", "square", "unit", "gained"]), (ROOT_MEAN_SQUARE, ["square", "unit"])],
)
def test_nothing_is_quantised_within_a_normalisation(
    nodes: list[onnx.NodeProto], between: list[str]
) -> None:
    nodes = [*EMBEDDING, *nodes, node("MatMul", "n wq", "y")]
    written = {name for each in quantized(model_of(nodes)).model.graph.node for name in each.output}
    assert {"x/quantized", "n/quantized"} <= written
    assert written.isdisjoint(f"{name}/quantized" for name in between)
    # What something else reads, too, does not only lie between.
    shown = {
        name
        for each in quantized(model_of(nodes, "y", between[-1])).model.graph.node
        for name in each.output
    }
    assert f"{between[-1]}/quantized" in shown


def test_rows_over_their_lengths_are_bytes_where_nothing_else_reads_the_lengths() -> None:
    model = read_model(model_of([*EMBEDDING, *LENGTH], "n"))
    (norm,) = find_norms(model, {"x": (1, ROWS, 8)})
    single = read_model(model_of([*EMBEDDING, node("LpNormalization", "x", "n")], "n"))
    assert [(each.x, each.y) for each in find_norms(single, {})] == [("x", "n")]
    assert (norm.x, norm.y, norm.between) == ("x", "n", {"length", "least"})
    for shown in norm.between:
        assert not find_norms(read_model(model_of([*EMBEDDING, *LENGTH], "n", shown)), {})


@pytest.mark.parametrize(("axis", "count"), [(-1, 1), (2, 1), (1, 0), (-2, 0)])
def test_a_normalisation_is_over_the_last_dimension(axis: int, count: int) -> None:
    model = model_of([*EMBEDDING, node("LayerNormalization", "x gain shift", "y", axis=axis)])
    assert len(find_norms(read_model(model), {"x": (1, ROWS, 8)})) == count
    assert not find_norms(read_model(model), {"x": ()})


def test_a_mask_reaches_just_below_the_scores() -> None:
    found = quantized(model_of(MODELS["mask added"])).model
    scales = {each.name: numpy_helper.to_array(each) for each in found.graph.initializer}
    span = 255 * scales["scores/scale"]
    assert span + 16 <= 255 * scales["added/scale"] * 1.01 <= (span + 16) * 1.03
    assert 255 * scales["masked/scale"] < span + 17


def test_a_mask_of_scores_that_were_moved_reaches_as_far() -> None:
    """Scores share the range of what they are moved elements of, as biases of positions make it."""
    scores = Scores(frozenset(), frozenset(), {"mask": frozenset(["moved"])}, {"moved": "summed"})
    assert scores.limited({"mask": (-1e6, 0.0), "summed": (-2.0, 3.0)})["mask"] == (-21.0, 0.0)


def test_an_embedding_is_stored_as_bytes() -> None:
    found = quantized(model_of(MODELS["mask chosen"])).model
    stored = {each.name: each for each in found.graph.initializer}
    assert "table" not in stored
    assert stored["table/quantized"].data_type == TensorProto.INT8
    scale = numpy_helper.to_array(stored["table/scale"])
    assert scale == numpy_helper.to_array(stored["words/scale"])


def test_whole_numbers_come_out_as_they_are() -> None:
    nodes = [
        *EMBEDDING,
        node("MatMul", "x wq", "y"),
        node("ArgMax", "y", "place", axis=-1, keepdims=0),
    ]
    model = model_of(nodes, "place", "y")
    found = quantized(model)
    samples = [sample_of(model, 30)]
    place, y = onnx_runtime(found.model, samples[0])
    np.testing.assert_array_equal(place, y.argmax(-1))
    assert place.dtype == np.int64
    assert compare(model, found.model, samples).tensors["x"] < 0.02


def test_weights_of_infinity_are_refused() -> None:
    model = model_of([*EMBEDDING, node("MatMul", "x wq", "y")])
    weights = next(each for each in model.graph.initializer if each.name == "wq")
    array = numpy_helper.to_array(weights).copy()
    array[0, 0] = -np.inf
    weights.CopyFrom(numpy_helper.from_array(array, "wq"))
    with pytest.raises(ModelError, match="constant 'wq' has a NaN or infinity"):
        quantized(model)
