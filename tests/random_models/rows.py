"""Parts of transformers: attention, normalisations of rows, weights of 4 bits."""

from math import sqrt

import ml_dtypes
import numpy as np

from .drawing import Drawing

__all__ = ["attention", "cached_rows", "narrow_dense", "row_norm"]

INT64, F32 = np.int64, np.float32


def attention(d: Drawing, x: str) -> list[str]:
    """Softmax of scores between rows, times values; heads, scale, mask and order as exporters have
    them, or as they do not."""
    rows = _as_rows(d, x)
    if not rows:
        return []
    batch, length, width = d.shape(rows[0])
    heads = d.random.choice([n for n in (1, 2, 3, 4) if n == 1 or width % n == 0])
    depth = d.random.choice((width // heads, 4, 5, 8))
    parts = [_projected(d, rows[0], heads * depth) for _ in range(3)]
    if not all(parts):
        return []
    query, key, value = (_heads(d, part[0], heads, depth) for part in parts)
    total = length
    if d.chance(0.2):
        total += d.random.choice((1, 3, 16))
        cache = (batch, heads, total - length, depth)
        key, value = (_behind_cache(d, each, cache) for each in (key, value))
    if d.chance(0.2):
        value = key
    factor = F32(d.random.choice((1 / sqrt(depth), 0.25, 1, -0.3)))
    late = d.chance(0.6)
    if not late:
        (query,) = _again(d, d.node("Mul", [query, d.constant(factor)]), 0.7) or [query]
    turned = _again(d, d.node("Transpose", [key], perm=[0, 1, 3, 2]), 0.8, key)
    scores = _again(d, d.node("MatMul", [query, *turned]), 0.8)
    if scores and late:
        kind = d.random.choice(("Mul", "Div"))
        inverse = factor if kind == "Mul" else F32(1 / factor)
        scores = _again(d, d.node(kind, [*scores, d.constant(inverse)]), 0.8)
    if scores and d.chance(0.3):
        masks = [(length, total), (1, 1, 1, total), (1, heads, length, total)]
        mask = d.rng.choice((0.0, d.random.choice((-2.0, -50.0))), d.random.choice(masks))
        given = d.constant(mask.astype(F32))
        given = d.again(given) if d.chance(0.5) else given
        scores = _again(d, d.node("Add", [*scores, given]), 0.8)
    shares = d.node("Softmax", scores, axis=d.random.choice((-1, 3))) if scores else []
    shares = _again(d, shares, 0.9)
    summed = _again(d, d.node("MatMul", [*shares, value]), 0.8) if shares else []
    if not summed:
        return []
    (back,) = _again(d, d.node("Transpose", summed, perm=[0, 2, 1, 3]), 0.5, summed[0])
    shape = d.constant(np.array([batch, length, heads * depth], INT64))
    flat = d.node("Reshape", [back, shape])
    if d.chance(0.5):
        flat = _projected(d, _again(d, flat, 0.9, back)[0], width) or flat
    if d.chance(0.4) and d.shape(flat[0]) == d.shape(rows[0]):
        flat = d.node("Add", [rows[0], *_again(d, flat, 0.8)])
    return flat


def row_norm(d: Drawing, x: str) -> list[str]:
    """LayerNormalization with its attributes, or what it, or RMSNorm, is made of."""
    shape = d.shape(x)
    if len(shape) < 2 or shape[-1] < 2:
        return []
    gain, shift = (d.constant(d.rng.uniform(0.3, 1.7, shape[-1]).astype(F32)) for _ in range(2))
    epsilon = d.random.choice((1e-5, 1e-6, 1e-12, 0.1))
    match d.random.randrange(4):
        case 0:
            given = [x, gain, shift] if d.chance(0.7) else [x, gain]
            axis = d.random.choice((-1, len(shape) - 1))
            return d.node("LayerNormalization", given, axis=axis, epsilon=epsilon)
        case 1 if len(shape) > 2:
            gains = d.constant(d.rng.uniform(0.3, 1.7, shape[-2:]).astype(F32))
            return d.node("LayerNormalization", [x, gains], axis=-2, epsilon=epsilon)
        case 2:
            middle = d.node("Sub", [x, *_mean(d, x)])
        case _:
            middle = [x]
    if not middle:
        return []
    (middle_,) = middle
    square = (
        d.node("Pow", [middle_, d.constant(F32(2))])
        if d.chance(0.6)
        else d.node("Mul", [middle_, middle_])
    )
    spread = _mean(d, square[0]) if square else []
    total = d.node("Add", [*spread, d.constant(F32(epsilon))]) if spread else []
    root = d.node("Sqrt", total) if total else []
    if not root:
        return []
    if d.chance(0.3):
        inverse = d.node("Reciprocal", root)
        found = d.node("Mul", [middle_, *inverse]) if inverse else []
    else:
        found = d.node("Div", [middle_, *root])
    found = d.node("Mul", [*found, gain] if d.chance(0.7) else [gain, *found]) if found else []
    return d.node("Add", [*found, shift]) if found and d.chance(0.6) else found


def narrow_dense(d: Drawing, x: str) -> list[str]:
    """MatMul with weights of 4 bits and a scale for each block of a column."""
    shape = d.shape(x)
    if len(shape) < 2 or d.opset < 21:
        return []
    depth, out = shape[-1], d.random.choice((1, 5, 8, 16))
    block = d.random.choice((16, 32, depth))
    blocks = -(-depth // block)
    low, dtype = (-8, ml_dtypes.int4) if d.chance(0.6) else (0, ml_dtypes.uint4)
    steps = d.rng.integers(low, low + 16, (depth, out)).astype(dtype)
    scales = d.rng.uniform(0.01, 0.05) * d.rng.integers(1, d.random.choice((2, 8)), (blocks, out))
    given = [d.constant(steps), d.constant(scales.astype(F32))]
    if low == 0 or d.chance(0.3):
        zeros = d.rng.integers(low, low + 16, (blocks, out)) if d.chance(0.3) else None
        middle = np.full((blocks, out), low + 8) if zeros is None else zeros
        given.append(d.constant(middle.astype(dtype)))
    weights = d.node("DequantizeLinear", given, axis=0, block_size=block)
    return d.node("MatMul", [x, *weights]) if weights else []


def cached_rows(d: Drawing, x: str) -> list[str]:
    """Rows behind those of a constant, as of a cache, and a window of them."""
    shape = d.shape(x)
    if len(shape) < 3:
        return []
    axis = len(shape) - 2
    size = d.random.choice((1, 3, 16))
    kept = d.rng.normal(0, 1, (*shape[:axis], size, shape[-1])).astype(F32)
    if kept.size > d.largest:
        return []
    before = d.again(d.constant(kept), x)
    joined = _again(d, d.node("Concat", [before, x], axis=axis), 0.8, x)
    if not joined or d.chance(0.5):
        return joined
    ends = [d.constant(np.array([n], INT64)) for n in (1, np.iinfo(INT64).max, axis)]
    return d.node("Slice", [*joined, *ends])


def _as_rows(d: Drawing, x: str) -> list[str]:
    """Three dimensions: an image's pixels become rows."""
    shape = d.shape(x)
    if len(shape) == 3:
        return [x]
    if len(shape) != 4 or shape[2] * shape[3] > 64:
        return []
    sizes = d.constant(np.array([shape[0], shape[1], -1], INT64))
    flat = _again(d, d.node("Reshape", [x, sizes]), 0.7, x)
    return _again(d, d.node("Transpose", flat, perm=[0, 2, 1]), 0.8, x) if flat else []


def _projected(d: Drawing, x: str, out: int) -> list[str]:
    found = d.node("MatMul", [x, *d.weights((d.shape(x)[-1], out), 1, x)])
    if found and d.chance(0.5):
        found = d.node("Add", [*found, d.constant(d.rng.normal(0, 0.3, out).astype(F32))])
    return _again(d, found, 0.95)


def _heads(d: Drawing, x: str, heads: int, depth: int) -> str:
    batch, length = d.shape(x)[:2]
    sizes = d.constant(np.array([batch, length, heads, depth], INT64))
    apart = _again(d, d.node("Reshape", [x, sizes]), 0.5, x)
    return _again(d, d.node("Transpose", apart, perm=[0, 2, 1, 3]), 0.8, x)[0]


def _behind_cache(d: Drawing, rows: str, shape: tuple[int, ...]) -> str:
    """Rows of a token behind those of an input, the cache."""
    d.input(shape, 1.0)
    joined = d.node("Concat", [d.floats.pop(), rows], axis=2)
    return _again(d, joined, 0.9, rows)[0]


def _mean(d: Drawing, x: str) -> list[str]:
    if d.opset >= 18:
        return d.node("ReduceMean", [x, d.constant(np.array([-1], INT64))])
    return d.node("ReduceMean", [x], axes=[-1])


def _again(d: Drawing, names: list[str], often: float, like: str | None = None) -> list[str]:
    """Quantised, with a probability, in a quantised model; nothing of nothing."""
    return [d.again(name, like) if d.whole or d.chance(often) else name for name in names]
