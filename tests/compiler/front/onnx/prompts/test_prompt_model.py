"""A decoder's model for blocks of tokens: the rows that the decoder makes one after the other."""

from collections.abc import Callable, Sequence

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from dovetail.compiler.errors import ModelError
from dovetail.compiler.front.onnx.prompts.model import prompt_model
from tests.runtime.generate.attending import CACHE_SHAPE, SIZE, attending_model
from tests.runtime.generate.step_models import step_model

TOKENS = [int(each) for each in np.random.default_rng(1).integers(1, 256, 30)]
BLOCK = 17
Array = NDArray[np.float32]
Run = Callable[[Sequence[int], Sequence[int], Array, Array], list[Array]]


def runner(model: onnx.ModelProto) -> Run:
    session = ort.InferenceSession(model.SerializeToString())

    def run(
        tokens: Sequence[int], places: Sequence[int], keys: Array, values: Array
    ) -> list[Array]:
        fed = {"token": np.array(tokens), "position": np.array(places)}
        fed |= {"past_keys": keys, "past_values": values}
        return list(session.run(["new_keys", "new_values"], fed))

    return run


def caches(run: Run, size: int, past: int) -> tuple[Array, Array]:
    """Keys and values of all tokens, in runs of ``size`` of them."""
    keys, values = np.zeros((2, *CACHE_SHAPE), np.float32)
    for first in range(0, len(TOKENS), size):
        some = TOKENS[first : first + size]
        places = range(first, first + size)
        padded = some + [0] * (size - len(some))
        new = run(padded, places, keys[:, :, :past], values[:, :, :past])
        for cache, rows in zip((keys, values), new, strict=True):
            each = rows if size > 1 else rows[None]
            cache[:, :, first : first + len(some)] = np.moveaxis(each[: len(some)], 0, 2)
    return keys, values


def test_a_block_makes_the_rows_of_its_tokens() -> None:
    model = attending_model()
    made = caches(runner(prompt_model(model, 16)), BLOCK, SIZE - 16)
    for found, expected in zip(made, caches(runner(model), 1, SIZE), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "axis"),
    [("q0", 1), ("q0", -1), ("q_rows0", 2), ("k_rows0", 0), ("mixed0", -1), ("mixed0", 1)],
)
def test_tensors_may_be_cut_and_joined(name: str, axis: int) -> None:
    model = attending_model()
    nodes = model.graph.node
    at = next(n for n, node in enumerate(nodes) if name in node.output)
    nodes[at].output[0] = "whole"
    nodes.insert(at + 1, helper.make_node("Split", ["whole"], ["first", "second"], axis=axis))
    nodes.insert(at + 2, helper.make_node("Concat", ["first", "second"], [name], axis=axis))
    made = caches(runner(prompt_model(model, BLOCK)), BLOCK, SIZE - 16)
    for found, expected in zip(made, caches(runner(model), 1, SIZE), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-5)


def biased(bias: NDArray[np.float64]) -> tuple[onnx.ModelProto, int]:
    """A constant is added to the first layer's scores; the number of the node before that."""
    model = attending_model()
    constant = numpy_helper.from_array(bias.astype(np.float32), "bias")
    model.graph.initializer.append(constant)
    at = next(n for n, node in enumerate(model.graph.node) if "masked0" in node.output)
    model.graph.node[at].output[0] = "unmoved"
    model.graph.node.insert(at + 1, helper.make_node("Add", ["unmoved", "bias"], ["masked0"]))
    return model, at


@pytest.mark.parametrize("shape", [(SIZE + 1,), (2, 1, SIZE + 1), (2, 2, SIZE + 1), (2, 1, 1)])
def test_scores_may_have_a_bias_of_each_position_and_head(shape: tuple[int, ...]) -> None:
    model, _ = biased(np.random.default_rng(2).standard_normal(shape))
    made = caches(runner(prompt_model(model, BLOCK)), BLOCK, SIZE - 16)
    for found, expected in zip(made, caches(runner(model), 1, SIZE), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_scores_have_as_many_places_as_before() -> None:
    """So a sum over them has as many terms of masked places."""
    for tokens, size in ((2, 17), (17, 17), (18, 33)):
        block = prompt_model(attending_model(), tokens)
        inferred = onnx.shape_inference.infer_shapes(block).graph
        shapes = {
            each.name: [dim.dim_value for dim in each.type.tensor_type.shape.dim]
            for each in [*inferred.input, *inferred.output, *inferred.value_info]
        }
        assert shapes["past_keys"] == [2, 2, SIZE + 1 - size, 2]
        assert shapes["new_values"] == [size, 2, 2, 2]
        assert shapes["scores0"] == [2, 2 * size, SIZE + 1]
        assert "logits" not in shapes


def test_what_has_no_rule_is_refused() -> None:
    model = attending_model()
    gather = next(node for node in model.graph.node if "past_k0" in node.output)
    gather.op_type = "Shape"
    del gather.input[1]
    with pytest.raises(ModelError, match=r"\(Shape\) of a cache: no rule for it"):
        prompt_model(model, 4)
    with pytest.raises(ModelError, match="blocks of 17 tokens, and caches of 12"):
        prompt_model(step_model("row"), 4)
    with pytest.raises(ModelError, match="gives caches of the length that it takes"):
        prompt_model(step_model("whole"), 4)
    with pytest.raises(ModelError, match=r"attention_mask: int64\[1, any\]: open sizes"):
        prompt_model(step_model("growing"), 4)
    with pytest.raises(ModelError, match="blocks of 49 tokens, and caches of 48"):
        prompt_model(attending_model(), 34)
    with pytest.raises(ModelError, match="required at least 2"):
        prompt_model(attending_model(), 1)
    model, at = biased(np.ones((2, 2, 1)))
    with pytest.raises(ModelError, match="an operand with rows of its own"):
        prompt_model(model, 4)
    model.graph.node[at + 1].op_type = "Reshape"
    model.graph.node[at + 1].input[1] = "position"
    with pytest.raises(ModelError, match="an operand that differs from token to token"):
        prompt_model(model, 4)


@pytest.mark.parametrize("kind", ["CumSum", "Slice"])
def test_what_sees_the_order_of_positions_is_refused(kind: str) -> None:
    """In a block they are in another order."""
    model = attending_model()
    numbers = {"last": [-1], "from": [0], "to": [SIZE + 1]}
    for name, value in numbers.items():
        model.graph.initializer.append(helper.make_tensor(name, onnx.TensorProto.INT64, [1], value))
    at = next(n for n, node in enumerate(model.graph.node) if "masked0" in node.output)
    model.graph.node[at].output[0] = "unmoved"
    inputs = {"CumSum": ["unmoved", "last"], "Slice": ["unmoved", "from", "to", "last"]}[kind]
    model.graph.node.insert(at + 1, helper.make_node(kind, inputs, ["masked0"]))
    with pytest.raises(
        ModelError, match=rf"\({kind}\) in blocks of tokens: no rule for it over pos"
    ):
        prompt_model(model, 4)


def test_attention_as_one_operator_over_a_cache_is_refused() -> None:
    model = attending_model()
    node = next(node for node in model.graph.node if "mixed0" in node.output)
    node.op_type, node.domain = "Unknown", "own"
    model.opset_import.append(helper.make_opsetid("own", 1))
    shape = helper.make_tensor_value_info("mixed0", onnx.TensorProto.FLOAT, [2, 2, 2])
    model.graph.value_info.append(shape)
    with pytest.raises(ModelError, match=r"\(Unknown\) in blocks of tokens: no rule for it over a"):
        prompt_model(model, 4)
