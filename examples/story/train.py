"""Train the story model on ``stories.txt``, quantise it, and write it as ``story_int8.onnx``.

``make train-story`` runs it: it needs the extra ``train`` (JAX) and takes a minute on one core.
Five stories of some 180 characters are learned by heart: the example shows how such a model runs,
not what it knows.
"""

import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import onnx
from model import HEADS, INNER, LAYERS, POSITIONS, WIDTH, step_model
from numpy.typing import NDArray

import dovetail
from dovetail.compiler.front.onnx.quantize import quantize_model
from dovetail.compiler.quantize.data import read_data
from dovetail.compiler.quantize.data.texts import text_source
from dovetail.runtime import Session
from dovetail.runtime.generate.decoder import Decoder
from dovetail.runtime.generate.tokenizer import Bytes

FOLDER = Path(__file__).parent
STEPS, RATE, SEED = 1200, 3e-3, 1
WRONG, NOISE = 0.05, 0.1
"""The share of characters that are replaced, and the deviation of what is added behind norms, while
it is trained: a rounding then does not lead it out of what it knows.
"""

SAMPLES = 512
"""Characters that decide ranges."""

Parameters = dict[str, jax.Array]


def stories() -> list[str]:
    """The texts."""
    return (FOLDER / "stories.txt").read_text(encoding="utf-8").strip().split("\n\n")


def sequences() -> NDArray[np.int32]:
    """int32[stories, POSITIONS + 1]: the bytes of each story between zeros."""
    texts = stories()
    rows = np.zeros((len(texts), POSITIONS + 1), np.int32)
    for row, text in zip(rows, texts, strict=True):
        row[1 : len(text) + 1] = list(text.encode())
    return rows


def initial(key: jax.Array) -> Parameters:
    """Normal weights of variance ``1 / fan_in``."""
    shapes = {"embedding": (256, WIDTH), "positions": (POSITIONS, WIDTH)}
    for n in range(LAYERS):
        shapes |= {f"{name}_{n}": (WIDTH, WIDTH) for name in ("wq", "wk", "wv", "wo")}
        shapes |= {f"w1_{n}": (WIDTH, INNER), f"w2_{n}": (INNER, WIDTH)}
    keys = jax.random.split(key, len(shapes))
    return {
        name: jax.random.normal(each, shape) * (shape[0] if name[0] == "w" else WIDTH) ** -0.5
        for each, (name, shape) in zip(keys, shapes.items(), strict=True)
    }


def norm(x: jax.Array) -> jax.Array:
    return x / jnp.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)


def forward(p: Parameters, tokens: jax.Array, key: jax.Array) -> jax.Array:
    """Logits float32[N, T, 256] of int32[N, T], with random noise."""
    count, length = tokens.shape
    keys = iter(jax.random.split(key, 2 * LAYERS))

    def noisy(x: jax.Array) -> jax.Array:
        return norm(x) + NOISE * jax.random.normal(next(keys), x.shape)

    x = p["embedding"][tokens] + p["positions"][:length]
    causal = jnp.tril(jnp.ones((length, length), bool))
    for n in range(LAYERS):
        a = noisy(x)
        q, k, v = (
            (a @ p[f"{name}_{n}"]).reshape(count, length, HEADS, -1) for name in ("wq", "wk", "wv")
        )
        scores = jnp.einsum("nihd,njhd->nhij", q, k) * (WIDTH // HEADS) ** -0.5
        shares = jax.nn.softmax(jnp.where(causal, scores, -1e4))
        x += jnp.einsum("nhij,njhd->nihd", shares, v).reshape(x.shape) @ p[f"wo_{n}"]
        x += jax.nn.relu(noisy(x) @ p[f"w1_{n}"]) @ p[f"w2_{n}"]
    return norm(x) @ p["embedding"].T


def loss(p: Parameters, rows: jax.Array, key: jax.Array) -> jax.Array:
    """Mean negative log likelihood of each story's characters and the zero that ends it."""
    before, after = rows[:, :-1], rows[:, 1:]
    where, what, noise = jax.random.split(key, 3)
    wrong = jax.random.bernoulli(where, WRONG, before.shape)
    before = jnp.where(wrong, jax.random.randint(what, before.shape, 32, 127), before)
    logits = jax.nn.log_softmax(forward(p, before, noise))
    found = jnp.take_along_axis(logits, after[..., None], -1)[..., 0]
    counted = jnp.concatenate([jnp.ones_like(after[:, :1]), after[:, :-1] != 0], 1)
    return -(found * counted).sum() / counted.sum()


def train() -> Parameters:
    """Parameters after ``STEPS`` steps of Adam."""
    rows = jnp.asarray(sequences())
    p = initial(jax.random.key(SEED))
    mean = square = jax.tree.map(jnp.zeros_like, p)

    @jax.jit
    def step(p: Parameters, mean: Parameters, square: Parameters, t: jax.Array) -> tuple:
        value, slope = jax.value_and_grad(loss)(
            p, rows, jax.random.fold_in(jax.random.key(SEED), t.astype(int))
        )
        mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, slope)
        square = jax.tree.map(lambda s, g: 0.99 * s + 0.01 * g * g, square, slope)
        rate = RATE * jnp.minimum(1, 2 * (1 - t / STEPS))

        def moved(x: jax.Array, m: jax.Array, s: jax.Array) -> jax.Array:
            return x - rate * (m / (1 - 0.9**t)) / (jnp.sqrt(s / (1 - 0.99**t)) + 1e-8)

        return jax.tree.map(moved, p, mean, square), mean, square, value

    for t in range(1, STEPS + 1):
        p, mean, square, value = step(p, mean, square, jnp.float32(t))
        if t % 100 == 0:
            print(f"step {t}: {float(value):.4f}", flush=True)
    return p


def quantized(model: onnx.ModelProto) -> onnx.ModelProto:
    """In int8, by what the model reads along the stories."""
    decoder = Decoder(Session(dovetail.compile(model, "cpu")))
    with tempfile.TemporaryDirectory() as folder:
        for number, text in enumerate(stories()):
            (Path(folder) / f"{number}.txt").write_text(text, encoding="utf-8")
        data = read_data(
            Path(folder), (), texts=lambda name, path: text_source(name, path, decoder, Bytes())
        )
        return quantize_model(model, list(data.spread(SAMPLES))).model


def main() -> None:
    """Train, write, quantise."""
    parameters = {name: np.asarray(value) for name, value in train().items()}
    onnx.save(quantized(step_model(parameters)), FOLDER / "story_int8.onnx")


if __name__ == "__main__":
    main()
