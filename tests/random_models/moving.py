"""Operators that move elements."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from .drawing import Drawing
from .running import Array

__all__ = [
    "depth",
    "gather",
    "join",
    "pad",
    "place",
    "repeat",
    "reshape",
    "resize",
    "slice_",
    "split",
    "transpose",
]

INT64, F32 = np.int64, np.float32


def join(d: Drawing, x: str) -> list[str]:
    """Concat of two or three tensors."""
    axis = d.random.randrange(len(d.shape(x)))
    if len(d.shape(x)) == 4 and d.chance(0.6):
        axis = 1
    fitting = [name for name in d.floats if _joins(d.shape(name), d.shape(x), axis)]
    parts = [x, *(d.random.choice(fitting) for _ in range(d.random.choice((0, 1, 1, 1, 2, 2, 5))))]
    d.random.shuffle(parts)
    return d.node("Concat", parts, axis=axis - len(d.shape(x)) * d.chance(0.2))


def split(d: Drawing, x: str) -> list[str]:
    """Split."""
    axis = d.random.randrange(len(d.shape(x)))
    size = d.shape(x)[axis]
    if size < 2:
        return []
    at = d.random.randrange(1, size)
    return d.node("Split", [x, d.constant(np.array([at, size - at], INT64))], 2, axis=axis)


def slice_(d: Drawing, x: str) -> list[str]:
    """Slice, with steps and backwards."""
    shape = d.shape(x)
    axes = [n for n in range(len(shape)) if d.chance(0.4)] or [len(shape) - 1]
    starts, ends, steps = [], [], []
    for axis in axes:
        step = d.random.choice((1, 1, 1, 1, 2, 3, -1, -2))
        low, high = sorted(d.random.randrange(shape[axis]) for _ in range(2))
        most, back = np.iinfo(INT64).max, shape[axis] * d.chance(0.2)
        starts.append((low if step > 0 else high) - back)
        ends.append(high + 1 - back if step > 0 else low - 1 - back if low else -most)
        if d.chance(0.1):  # all that is left
            ends[-1] = most if step > 0 else -most
        if back and step > 0 and ends[-1] == 0:
            ends[-1] = most
        steps.append(step)
    given = [d.constant(np.array(each, INT64)) for each in (starts, ends, axes, steps)]
    return d.node("Slice", [x, *given])


def gather(d: Drawing, x: str) -> list[str]:
    """Gather: picked, reordered, repeated, or one."""
    axis = d.random.randrange(len(d.shape(x)))
    size = d.shape(x)[axis]
    places: Array = d.rng.integers(-size, size, d.random.choice((1, 2, 3, 5)))
    if d.chance(0.4):
        places = d.rng.permutation(size)
    elif d.chance(0.2) and len(d.shape(x)) > 1:
        places = places[0]
    return d.node("Gather", [x, d.constant(places)], axis=axis)


def transpose(d: Drawing, x: str) -> list[str]:
    """Transpose."""
    order = list(range(len(d.shape(x))))
    d.random.shuffle(order)
    return d.node("Transpose", [x], **({} if d.chance(0.1) else {"perm": order}))


def reshape(d: Drawing, x: str) -> list[str]:
    """Reshape, Flatten, Squeeze, Unsqueeze."""
    shape = d.shape(x)
    match d.random.randrange(5):
        case 0:
            return d.node("Flatten", [x], axis=d.random.choice((1, 1, -1, 2, 0)))
        case 1:
            ones = [n for n, size in enumerate(shape) if size == 1 and n]
            axes = d.random.sample(ones, d.random.randint(0, len(ones)))
            return d.node("Squeeze", [x, d.constant(np.array(axes, INT64))]) if axes else []
        case 2 if len(shape) < 4:
            axis = d.random.randrange(1, len(shape) + 1)
            return d.node("Unsqueeze", [x, d.constant(np.array([axis], INT64))])
        case 3 if len(shape) > 1:
            n = d.random.randrange(1, len(shape))
            factor = d.random.choice([f for f in range(1, shape[n] + 1) if shape[n] % f == 0])
            sizes = [*shape[:n], factor, shape[n] // factor, *shape[n + 1 :]]
            if len(sizes) == 5:
                return _shuffle(d, x, sizes)
        case _:
            total, sizes = prod(shape[1:]), list(shape[:1]) or [1]
            for _ in range(d.random.choice((1, 2, 3))):
                sizes.append(d.random.choice([f for f in range(1, total + 1) if total % f == 0]))
                total //= sizes[-1]
            sizes[-1] *= total
    if d.chance(0.15):
        sizes[d.random.randrange(len(sizes))] = -1
    if d.chance(0.15):
        sizes = [0 if n < len(shape) and shape[n] == m else m for n, m in enumerate(sizes)]
    elif len(shape) > 1 and d.chance(0.1):  # channels become images
        sizes = [shape[0] * shape[1], 1, *shape[2:]]
    return d.node("Reshape", [x, d.constant(np.array(sizes, INT64))])


def _shuffle(d: Drawing, x: str, sizes: Sequence[int]) -> list[str]:
    """Five dimensions in another order, and four again."""
    order = [0, *d.random.sample(range(1, 5), 4)]
    if d.chance(0.5):
        order = [0, 2, 1, 3, 4]
    apart = d.node("Reshape", [x, d.constant(np.array(sizes, INT64))])
    turned = d.node("Transpose", apart, perm=order)
    moved = [sizes[n] for n in order]
    at = d.random.choice((1, 1, 2, 3))
    joined = [*moved[:at], moved[at] * moved[at + 1], *moved[at + 2 :]]
    return d.node("Reshape", [*turned, d.constant(np.array(joined, INT64))])


def pad(d: Drawing, x: str) -> list[str]:
    """Pad."""
    rank = len(d.shape(x))
    widths = [
        0 if n % rank < 2 and d.chance(0.7) else d.random.randrange(3) for n in range(2 * rank)
    ]
    if d.chance(0.1):  # crops on one side
        widths = [n if d.chance(0.8) else -1 for n in widths]
    mode = d.random.choice(("constant", "constant", "reflect", "edge"))
    given = [x, d.constant(np.array(widths, INT64))]
    if mode == "constant" and d.chance(0.7):
        value = d.random.choice(
            (0, 0, float(np.round(d.rng.normal(), 2)), float(d.values[x].min()))
        )
        given.append(d.constant(F32(value)))
    return d.node("Pad", given, mode=mode)


def resize(d: Drawing, x: str) -> list[str]:
    """Resize to the nearest or linear."""
    shape = d.shape(x)
    if len(shape) < 3:
        return []
    mode = d.random.choice(("nearest", "nearest", "linear"))
    attributes: dict[str, Any] = {"mode": mode}
    attributes["coordinate_transformation_mode"] = d.random.choice(
        ("asymmetric", "half_pixel", "align_corners", "pytorch_half_pixel")
    )
    if mode == "nearest":
        attributes["nearest_mode"] = d.random.choice(("round_prefer_floor", "round_prefer_ceil"))
        if attributes["coordinate_transformation_mode"] == "asymmetric":
            # Elsewhere places that are whole numbers come out as less in ONNX Runtime's float32.
            attributes["nearest_mode"] = d.random.choice(("floor", "floor", "ceil"))
    if d.chance(0.5):
        sizes = [*shape[:2], *(d.random.choice((1, n, 2 * n, 3 * n, n + 1)) for n in shape[2:])]
        return d.node("Resize", [x, "", "", d.constant(np.array(sizes, INT64))], **attributes)
    factors = [1, 1, *(d.random.choice((1, 2, 2, 3, 1.5, 0.5)) for _ in shape[2:])]
    if attributes["coordinate_transformation_mode"] == "align_corners":
        # Documented: ONNX Runtime rounds lengths down first.
        pairs = zip(factors, shape, strict=True)
        factors = [factor if float(factor * size).is_integer() else 1 for factor, size in pairs]
    return d.node("Resize", [x, "", d.constant(np.array(factors, F32))], **attributes)


def depth(d: Drawing, x: str) -> list[str]:
    """DepthToSpace or SpaceToDepth."""
    shape = d.shape(x)
    if len(shape) != 4:
        return []
    size = d.random.choice((2, 2, 3))
    if shape[1] % size**2 == 0:
        return d.node("DepthToSpace", [x], blocksize=size, mode=d.random.choice(("DCR", "CRD")))
    return d.node("SpaceToDepth", [x], blocksize=size) if not shape[2] % size else []


def repeat(d: Drawing, x: str) -> list[str]:
    """Tile or Expand."""
    shape = d.shape(x)
    times = [1, *(d.random.choice((1, 1, 2)) for _ in shape[1:])]
    if d.chance(0.5):
        return d.node("Tile", [x, d.constant(np.array(times, INT64))])
    sizes = [n * m if n == 1 else n for n, m in zip(shape, times, strict=True)]
    return d.node("Expand", [x, d.constant(np.array(sizes, INT64))])


def place(d: Drawing, x: str) -> list[str]:
    """ArgMax or ArgMin, or the first of TopK; an output of its own."""
    axis = d.random.randrange(-len(d.shape(x)), len(d.shape(x)))
    kind = d.random.choice(("ArgMax", "ArgMin"))
    last = d.random.choice((0, 0, 1))
    keep = d.random.choice((0, 1))
    d.ends += d.node(kind, [x], axis=axis, keepdims=keep, select_last_index=last)
    return []


def _joins(shape: Sequence[int], to: Sequence[int], axis: int) -> bool:
    return len(shape) == len(to) and all(
        n == axis or a == b for n, (a, b) in enumerate(zip(shape, to, strict=True))
    )
