"""Attention, recurrent layers and quantisation of torch, against formulas in NumPy."""

from typing import Any

import numpy as np
import pytest

from dovetail.compiler.dtypes import DType
from dovetail.compiler.errors import UnsupportedOperatorError

from .calls import RNG, call, check

F32 = np.float32
Q, K, V = (RNG.normal(size=(1, heads, 3, 4)).astype(F32) for heads in (4, 2, 2))
X = RNG.normal(size=(3, 2, 5)).astype(F32)
HIDDEN = 4


def attended(q: np.ndarray, k: np.ndarray, v: np.ndarray, factor: float, added: Any) -> np.ndarray:
    """``softmax(q @ k.T * factor + added) @ v``; rows that see nothing are 0."""
    scores = np.exp(q @ k.swapaxes(-1, -2) * F32(factor) + added)
    sums = scores.sum(-1, keepdims=True)
    return scores / np.where(sums, sums, 1) @ v


def test_attention_sees_what_its_mask_says() -> None:
    name, heads = "aten.scaled_dot_product_attention", (K.repeat(2, 1), V.repeat(2, 1))
    seen = np.array([[1, 0, 1], [0, 0, 0], [1, 1, 0]], bool)
    hidden = np.where(seen, F32(0), F32("-inf"))
    causal = np.where(np.tri(3) > 0, F32(0), F32("-inf"))
    bias = RNG.normal(size=(3, 3)).astype(F32)
    check(name, (Q, *heads), {}, attended(Q, *heads, 0.5, 0))
    check(name, (Q, K, V), {"enable_gqa": True}, attended(Q, *heads, 0.5, 0))
    check(name, (Q, *heads), {"scale": 2.0}, attended(Q, *heads, 2, 0))
    check(name, (Q, *heads), {"is_causal": True}, attended(Q, *heads, 0.5, causal))
    check(name, (Q, *heads, bias), {}, attended(Q, *heads, 0.5, bias))
    check(name, (Q, *heads, seen), {}, attended(Q, *heads, 0.5, hidden))
    given = (Q, *heads, 0.0, True, bias, 2.0)
    flash = call("aten._scaled_dot_product_flash_attention_for_cpu", *given)[0]
    np.testing.assert_allclose(flash, attended(Q, *heads, 2, bias + causal), atol=1e-5)
    with pytest.raises(UnsupportedOperatorError, match="dropout in training"):
        call(name, Q, *heads, None, 0.5)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def step(
    kind: str, x: np.ndarray, h: np.ndarray, c: np.ndarray, weights: list[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """The next states.  Source: the formulas of nn.RNN, nn.LSTM and nn.GRU."""
    a = x @ weights[0].T + (weights[2] if len(weights) > 3 else 0)
    b = h @ weights[1].T + (weights[3] if len(weights) > 3 else 0)
    if kind.startswith("rnn"):
        return (np.tanh(a + b) if kind == "rnn_tanh" else np.maximum(a + b, 0)), c
    if kind == "gru":
        (ar, az, an), (br, bz, bn) = (np.split(each, 3, -1) for each in (a, b))
        z, n = sigmoid(az + bz), np.tanh(an + sigmoid(ar + br) * bn)
        return (1 - z) * n + z * h, c
    i, f, g, o = np.split(a + b, 4, -1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    h = sigmoid(o) * np.tanh(c)
    return h @ weights[-1].T if len(weights) in (3, 5) else h, c


def drawn(kind: str, size: int, state: int, biased: bool, projected: bool) -> list[np.ndarray]:
    gates = {"lstm": 4, "gru": 3}.get(kind, 1) * HIDDEN
    shapes: list[tuple[int, ...]] = [(gates, size), (gates, state)]
    shapes += [(gates,)] * 2 * biased + [(state, HIDDEN)] * projected
    return [RNG.normal(0, 0.5, shape).astype(F32) for shape in shapes]


CALLS = [
    *((kind, True, True, False, 2) for kind in ("gru", "lstm", "rnn_relu", "rnn_tanh")),
    *((kind, False, False, False, 1) for kind in ("gru", "lstm")),
    ("lstm", True, True, True, 2),
    ("lstm", False, False, True, 1),
]


@pytest.mark.parametrize(("kind", "biased", "both", "projected", "layers"), CALLS)
@pytest.mark.parametrize("batch_first", [False, True])
def test_a_recurrent_layer_goes_step_by_step(
    kind: str, biased: bool, both: bool, projected: bool, layers: int, batch_first: bool
) -> None:
    ways, state = 1 + both, 3 if projected else HIDDEN
    h = RNG.normal(size=(layers * ways, 2, state)).astype(F32)
    c = RNG.normal(size=(layers * ways, 2, HIDDEN)).astype(F32)
    params: list[np.ndarray] = []
    line, ends = X, ([], [])
    for layer in range(layers):
        outputs = []
        for way in range(ways):
            weights = drawn(kind, line.shape[2], state, biased, projected)
            params += weights
            now = h[layer * ways + way], c[layer * ways + way]
            found = []
            for x in line[::-1] if way else line:
                now = step(kind, x, *now, weights)
                found.append(now[0])
            outputs.append(np.stack(found[::-1] if way else found))
            for each, last in zip(ends, now, strict=True):
                each.append(last)
        line = np.concatenate(outputs, 2)
    x, wanted = (each.swapaxes(0, 1) if batch_first else each for each in (X, line))
    states = (h, c) if kind == "lstm" else h
    given = (x, states, tuple(params), biased, layers, 0.0, False, both, batch_first)
    expected = (wanted, np.stack(ends[0]), *([np.stack(ends[1])] if kind == "lstm" else []))
    check(f"aten.{kind}.input", given, {}, expected)
    if layers == 1 and not projected:
        cell = (X[0], (h[0], c[0]) if kind == "lstm" else h[0], *params)
        after = step(kind, X[0], h[0], c[0], params)
        check(f"aten.{kind}_cell", cell, {}, after if kind == "lstm" else after[0])


def test_a_layer_with_other_weights_or_dropout_is_refused() -> None:
    h, weights = np.zeros((1, 2, HIDDEN), F32), drawn("gru", 5, HIDDEN, True, False)
    with pytest.raises(ValueError, match="4 weights of a layer"):
        call("aten.gru.input", X, h, tuple(weights), False, 1, 0.0, False, False, False)
    with pytest.raises(ValueError, match="4 weights and 2 states"):
        call("aten.gru.input", X, (h, h), tuple(weights), True, 1, 0.0, False, False, False)
    with pytest.raises(UnsupportedOperatorError, match="dropout in training"):
        call("aten.gru.input", X, h, tuple(weights), True, 1, 0.5, True, False, False)


def test_bytes_stand_for_numbers_at_steps() -> None:
    x = X * 3
    q = "quantized_decomposed.quantize_per_"
    steps = np.clip(np.rint(x / F32(0.1)) + 3, -128, 127).astype(np.int8)
    check(f"{q}tensor", (x, 0.1, 3, -128, 127, DType.INT8), {}, steps)
    narrow = np.clip(steps, -20, 20)
    check(f"{q}tensor", (x, 0.1, 3, -20, 20, DType.INT8), {}, narrow)
    scales, zeros = np.array([0.1, 0.2], F32), np.array([3, 4])
    each = np.rint(x / scales[:, None]) + zeros[:, None]
    lines = np.clip(each, 0, 255).astype(np.uint8)
    unsigned: dict[str, Any] = {"quant_min": 0, "quant_max": 255, "dtype": DType.UINT8}
    found = call(f"{q}channel", x, scales, zeros, -2, declared=np.uint8, **unsigned)
    np.testing.assert_array_equal(found, lines)
    d = "quantized_decomposed.dequantize_per_"
    back = (steps.astype(F32) - 3) * F32(0.1)
    found = call(f"{d}tensor", steps, 0.1, 3, -128, 127, DType.INT8, declared=F32)
    np.testing.assert_allclose(found, back, rtol=1e-6)
    found = call(f"{d}channel", lines, scales, zeros, -2, declared=F32, **unsigned)
    expected = (lines.astype(F32) - zeros[:, None]) * scales[:, None]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    found = call(f"{d}channel", lines, scales, None, 1, declared=F32, **unsigned)
    np.testing.assert_allclose(found, lines * scales[:, None], rtol=1e-6)
    with pytest.raises(UnsupportedOperatorError, match="quantises to int32"):
        call(f"{q}tensor", x, 0.1, 3, -128, 127, DType.INT32)
