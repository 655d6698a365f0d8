"""Small models of one token a run, one for each way in which exporters write caches.

Of tokens t the logits are ``sum((i + 1) * E[t[i]]) @ W``: they depend on every token and its place.
"""

from collections.abc import Sequence

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper, parser

__all__ = ["MODELS", "POSITIONS", "QUANTISED", "expected_tokens", "step_model"]

POSITIONS = 12
"""Positions of caches that do not grow."""
RNG = np.random.default_rng(5)
CONSTANTS = {
    "E": RNG.integers(-9, 9, (256, 8)).astype(np.float32),
    "W": RNG.integers(-9, 9, (8, 256)).astype(np.float32),
    "places": np.arange(POSITIONS)[None],
    "rows": np.arange(1, POSITIONS + 1, dtype=np.float32)[None],
    "one": np.ones(1, np.int64),
    "zero": np.zeros(1, np.float32),
    "flat": np.array([1, 8]),
    "long": np.array([1, 1, 8]),
}

ADD_ROW = """
  row = Gather(E, token)
  seen = Less(places, position)
  weights = Where(seen, rows, zero)
  old_rows = MatMul(weights, past_rows)
  old = Reshape(old_rows, flat)
  next = Add(position, one)
  weight = Cast<to = 1>(next)
  own = Mul(row, weight)
  sum = Add(old, own)
"""
MODELS = {
    "row": (
        "(int64[1] token, int64[1] position, float[1, 12, 8] past_rows)"
        " => (float[1, 256] logits, float[1, 1, 8] new_rows)",
        f"{ADD_ROW} logits = MatMul(sum, W) new_rows = Reshape(row, long)",
    ),
    "row without its axis": (
        "(int32[1] token, int64[1] position, float[1, 12, 8] past_rows)"
        " => (float[1, 256] logits, float[1, 8] new_rows)",
        f"{ADD_ROW} logits = MatMul(sum, W) new_rows = Identity(row)",
    ),
    "last": (
        "(int64[1, 1] input_ids, int64[1, 13] attention_mask, int64[1, 1] position_ids,"
        " float[1, 12, 8] past_key_values_0_key)"
        " => (float[1, 1, 256] logits, float[1, 13, 8] present_0_key)",
        """
  row = Gather(E, input_ids)
  row_1 = Reshape(row, long)
  present_0_key = Concat<axis = 1>(past_key_values_0_key, row_1)
  next = Add(position_ids, one)
  own = Cast<to = 1>(next)
  places_1 = Concat<axis = 1>(rows, own)
  seen = Cast<to = 1>(attention_mask)
  weights = Mul(places_1, seen)
  sum = MatMul(weights, present_0_key)
  logits = MatMul(sum, W)
""",
    ),
    "whole": (
        "(int64[1] token, bool[1, 12] mask, int64[1] cache_position, float[1, 12, 8] cache_in)"
        " => (float[1, 256] logits, float[1, 12, 8] cache_out)",
        """
  row = Gather(E, token)
  row_1 = Reshape(row, long)
  here = Equal(places, cache_position)
  at = Unsqueeze(here, two)
  cache_out = Where(at, row_1, cache_in)
  weights = Where(mask, rows, zero)
  sum_1 = MatMul(weights, cache_out)
  sum = Reshape(sum_1, flat)
  logits = MatMul(sum, W)
""",
    ),
    "growing": (
        "(int64[1, 1] input_ids, int64[1, T] attention_mask, float[1, P, 8] past_key_values_0_key)"
        " => (float[1, 1, 256] logits, float[1, T, 8] present_0_key)",
        """
  row = Gather(E, input_ids)
  row_1 = Reshape(row, long)
  present_0_key = Concat<axis = 1>(past_key_values_0_key, row_1)
  ages = CumSum(attention_mask, axis)
  weights = Cast<to = 1>(ages)
  sum = MatMul(weights, present_0_key)
  logits = MatMul(sum, W)
""",
    ),
}
"""Inputs, outputs and nodes, by what the outputs say of the caches."""
QUANTISED = "row, quantised"
STEP, RESULT_STEP = np.float32(4), np.float32(128)
MODELS[QUANTISED] = (
    MODELS["row"][0],
    f"""{ADD_ROW}
  new_rows = Reshape(row, long)
  small = QuantizeLinear(sum, step, nil)
  x = DequantizeLinear(small, step, nil)
  y = DequantizeLinear(W8, unit, nil)
  product = MatMul(x, y)
  found = QuantizeLinear(product, result_step, nil)
  logits = DequantizeLinear(found, result_step, nil)
""",
)
CONSTANTS |= {
    "two": np.full(1, 2),
    "axis": np.array(1),
    "unit": np.float32(1),
    "step": STEP,
    "result_step": RESULT_STEP,
    "nil": np.int8(0),
    "W8": CONSTANTS["W"].astype(np.int8),
}


def expected_tokens(prompt: Sequence[int], count: int, quantised: bool = False) -> list[int]:
    """The tokens of a text of ``count`` beside the prompt, by the formula above."""
    tokens = list(prompt)
    for _ in range(count):
        total = np.arange(1, len(tokens) + 1, dtype=np.float32) @ CONSTANTS["E"][tokens]
        total = _rounded(total, STEP) if quantised else total
        logits = total @ CONSTANTS["W"]
        tokens.append(int(np.argmax(_rounded(logits, RESULT_STEP) if quantised else logits)))
    return tokens


def _rounded(values: NDArray[np.float32], step: np.float32) -> NDArray[np.float32]:
    """To multiples of ``step`` that are an int8."""
    return np.clip(np.rint(values / step), -128, 127) * step


def step_model(name: str) -> onnx.ModelProto:
    """A model of ``MODELS``."""
    signature, body = MODELS[name]
    head = '<ir_version: 8, opset_import: ["" : 17]>'
    model = parser.parse_model(f"{head} step {signature} {{ {body} }}")
    used = {each for node in model.graph.node for each in node.input}
    for constant in sorted(used & CONSTANTS.keys()):
        model.graph.initializer.append(
            numpy_helper.from_array(np.asarray(CONSTANTS[constant]), constant)
        )
    onnx.checker.check_model(model)
    return model
