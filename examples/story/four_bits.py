"""Train the weights of a LLaMA decoder for 4 bits, and put them into its int8 file.

    python four_bits.py FLOAT.onnx INT8.onnx OUT.onnx [STEPS]

The files are two forms of one decoder of a token a run, as ``stories260k`` has them: inputs
``token``, ``position``, ``past_keys`` and ``past_values``, weights ``l0_wq_weight`` to
``logits_row_weight``, in the int8 file ``..._quantized`` and ``..._scale``.  It needs the extras
``train`` (JAX) and ``test`` (ONNX Runtime).

A weight is a number of 4 bits times a factor of 16 inputs (32 of ``wo``) times a scale of its
channel.  Factors and scales are fixed, by ``dovetail quantize``'s search; the numbers are trained:
rounded on the way forward, as if they were not on the way back (a straight-through estimator), to
give the float model's shares of the next token along stories that it tells.
"""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper
from onnxruntime import InferenceSession

from dovetail.compiler.front.onnx.quantize.four_bits import GROUP, four_bit_weights

STORIES, BATCH, RATE = 200, 4, 1e-3
MIXED = 2 * GROUP
"""Inputs of ``wo`` that share a factor: an accelerator of blocks of 16 takes channels of two heads
together.
"""
BEGIN = 1
"""The token that begins a story, and ends it."""

Weights = dict[str, jax.Array]


def stories(path: str, seed: int = 5000) -> NDArray[np.int32]:
    """Stories that the model tells, drawn by its shares: int32[STORIES, positions], -1 behind."""
    session, rng = InferenceSession(path), np.random.default_rng(seed)
    shape = next(each.shape for each in session.get_inputs() if each.name == "past_keys")
    rows = np.full((STORIES, shape[2]), -1, np.int32)
    for row in rows:
        caches = [np.zeros(shape, np.float32) for _ in range(2)]
        row[0] = BEGIN
        for position in range(shape[2] - 1):
            feed = {"token": row[position : position + 1].astype(np.int64)}
            feed |= {"position": np.array([position])}
            feed |= {"past_keys": caches[0], "past_values": caches[1]}
            logits, *new = session.run(["logits", "new_keys", "new_values"], feed)
            for cache, made in zip(caches, new, strict=True):
                cache[:, :, position] = made
            shares = np.exp(logits.astype(np.float64) - logits.max())
            row[position + 1] = rng.choice(len(shares), p=shares / shares.sum())
            if row[position + 1] == BEGIN:
                break
    return rows


class Decoder:
    """The float model on whole stories."""

    def __init__(self, path: str) -> None:
        model = onnx.load(path)
        found = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
        self.p = {n: jnp.asarray(v) for n, v in found.items() if v.dtype == np.float32}
        self.shape = next(
            [dim.dim_value for dim in each.type.tensor_type.shape.dim]
            for each in model.graph.input
            if each.name == "past_keys"
        )
        self.names = [n for n, v in found.items() if n.endswith("_weight") and v.ndim == 2]

    def logits(self, w: Weights, tokens: jax.Array) -> jax.Array:
        """float32[N, T, tokens] of int32[N, T], with the products' weights ``w``."""
        layers, shared, _, head = self.shape
        p, x, (count, length) = self.p, self.p["embedding"][tokens], tokens.shape
        angles = [p[f"{n}_table"].reshape(-1, 1, head // 2)[:length] for n in ("cos", "sin")]
        causal = jnp.tril(jnp.ones((length, length), bool))
        for n in range(layers):
            a = _norm(x, p[f"l{n}_att_norm_weight"])
            q, k, v = (
                (a @ w[f"l{n}_{each}_weight"]).reshape(count, length, -1, head)
                for each in ("wq", "wk", "wv")
            )
            q, k = (_turned(each, *angles) for each in (q, k))
            q = q.reshape(count, length, shared, -1, head)
            scores = jnp.einsum("nikgd,njkd->nkgij", q, k) * head**-0.5
            shares = jax.nn.softmax(jnp.where(causal, scores, -1e4))
            mixed = jnp.einsum("nkgij,njkd->nikgd", shares, v).reshape(count, length, -1)
            x = x + mixed @ w[f"l{n}_wo_weight"]
            a = _norm(x, p[f"l{n}_ffn_norm_weight"])
            inner = jax.nn.silu(a @ w[f"l{n}_w1_weight"]) * (a @ w[f"l{n}_w3_weight"])
            x = x + inner @ w[f"l{n}_w2_weight"]
        return _norm(x, p["final_norm_weight"]) @ w["logits_row_weight"]


def _norm(x: jax.Array, gain: jax.Array) -> jax.Array:
    return x / jnp.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * gain


def _turned(x: jax.Array, cos: jax.Array, sin: jax.Array) -> jax.Array:
    even, odd = x[..., ::2], x[..., 1::2]
    turned = jnp.stack([even * cos - odd * sin, even * sin + odd * cos], -1)
    return turned.reshape(x.shape)


def train(decoder: Decoder, rows: NDArray[np.int32], forms: dict, steps: int) -> Weights:
    """Weights after ``steps`` steps of Adam; forms: scale and factor of each, as one step."""
    w = {name: decoder.p[name] for name in decoder.names}
    mean = square = jax.tree.map(jnp.zeros_like, w)

    def rounded(w: Weights) -> Weights:
        near = {n: jnp.clip(jnp.round(w[n] / forms[n]), -8, 7) * forms[n] for n in w}
        return {n: w[n] + jax.lax.stop_gradient(near[n] - w[n]) for n in w}

    def loss(w: Weights, tokens: jax.Array, counted: jax.Array) -> jax.Array:
        wanted = jax.nn.log_softmax(decoder.logits(decoder.p, tokens))
        found = jax.nn.log_softmax(decoder.logits(rounded(w), tokens))
        apart = (jnp.exp(wanted) * (wanted - found)).sum(-1)
        return (apart * counted).sum() / counted.sum()

    @jax.jit
    def step(w: Weights, mean: Weights, square: Weights, t: jax.Array, row: jax.Array) -> tuple:
        value, slope = jax.value_and_grad(loss)(w, jnp.maximum(row, BEGIN), row >= 0)
        mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, slope)
        square = jax.tree.map(lambda s, g: 0.99 * s + 0.01 * g * g, square, slope)
        rate = RATE / 2 * (1 + jnp.cos(jnp.pi * (t - 1) / steps))

        def moved(x: jax.Array, m: jax.Array, s: jax.Array) -> jax.Array:
            return x - rate * (m / (1 - 0.9**t)) / (jnp.sqrt(s / (1 - 0.99**t)) + 1e-8)

        return jax.tree.map(moved, w, mean, square), mean, square, value

    rng = np.random.default_rng(0)
    for t in range(1, steps + 1):
        row = jnp.asarray(rows[rng.integers(0, len(rows), BATCH)])
        w, mean, square, value = step(w, mean, square, jnp.float32(t), row)
        if t % 25 == 0:
            print(f"step {t}: {float(value):.4f}", flush=True)
    return w


def main(source: str, integer: str, target: str, steps: int = 400) -> None:
    """Train, and write."""
    decoder = Decoder(source)
    scales, factors = {}, {}
    for name in decoder.names:
        weights, group = np.asarray(decoder.p[name]), MIXED if name.endswith("wo_weight") else GROUP
        found = four_bit_weights(weights, None, np.float32(1), 1, group)
        assert found.factors is not None
        scales[name], factors[name] = found.scales, found.factors
    forms = {name: jnp.asarray(factors[name] * scales[name]) for name in decoder.names}
    w = train(decoder, stories(source), forms, steps)
    model = onnx.load(integer)
    for each in model.graph.initializer:
        stem, _, kind = each.name.rpartition("_")
        if stem in w and kind == "quantized":
            numbers = np.clip(np.rint(np.asarray(w[stem] / forms[stem])), -8, 7)
            weights = (numbers * factors[stem]).astype(np.int8)
            each.CopyFrom(numpy_helper.from_array(weights, each.name))
        elif stem in w and kind == "scale":
            each.CopyFrom(numpy_helper.from_array(scales[stem], each.name))
    Path(target).write_bytes(model.SerializeToString())


if __name__ == "__main__":
    main(*sys.argv[1:4], *(int(each) for each in sys.argv[4:]))
