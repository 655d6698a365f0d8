"""Operators and attributes that exporters seldom write, several results, and other names."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .drawing import Drawing

__all__ = ["alias", "masked", "picked", "rare_norm", "rare_pool", "rare_resize", "several"]

INT64, F32 = np.int64, np.float32


def alias(d: Drawing, x: str) -> list[str]:
    """Another name for the same elements, which may be an output beside the first."""
    shape = d.shape(x)
    match d.random.randrange(7):
        case 0:
            return d.node("Identity", [x])
        case 1:
            return d.node("Reshape", [x, d.constant(np.array(shape, INT64))])
        case 2:
            return d.node("Transpose", [x], perm=list(range(len(shape))))
        case 3:
            return d.node("Concat", [x], axis=d.random.randrange(len(shape)))
        case 4:
            return d.node("Expand", [x, d.constant(np.array([1] * len(shape), INT64))])
        case 5:
            return d.node("Pad", [x, d.constant(np.zeros(2 * len(shape), INT64))])
    return d.node("Dropout", [x])


def several(d: Drawing, x: str) -> list[str]:
    """Operators with several results, all of which are read, or some."""
    shape = d.shape(x)
    axis = d.random.randrange(len(shape))
    size = shape[axis]
    match d.random.randrange(4):
        case 0 if size > 2:
            cuts = sorted(d.random.sample(range(1, size), 2))
            sizes = np.diff([0, *cuts, size]).astype(INT64)
            found = d.node("Split", [x, d.constant(sizes)], 3, axis=axis - len(shape))
        case 1 if size > 1 and d.opset >= 18:
            parts = d.random.randint(2, min(size, 4))
            found = d.node("Split", [x], parts, axis=axis, num_outputs=parts)
        case 2 if size > 1:
            count = d.constant(np.array([d.random.randint(1, size)], INT64))
            found = d.node("TopK", [x, count], 2, axis=axis, largest=d.random.choice((0, 1)))
            d.ends += found[1:]
            return found[:1]
        case _ if len(shape) == 4 and min(shape[2:]) > 1:
            strides = d.random.choice(([1, 2], [2, 2]))
            found = d.node("MaxPool", [x], 2, kernel_shape=[2, 2], strides=strides)
            d.ends += found[1:]
            return found[:1]
        case _:
            return []
    return d.random.sample(found, len(found)) if d.chance(0.7) else found[-1:]


def rare_pool(d: Drawing, x: str) -> list[str]:
    """Reductions and pools with attributes that few use."""
    shape = d.shape(x)
    match d.random.randrange(4):
        case 0 if len(shape) > 2:
            kernel = [d.random.choice((1, 2, min(3, n))) for n in shape[2:]]
            if any(k > n for k, n in zip(kernel, shape[2:], strict=True)):
                return []
            given: dict[str, Any] = {"p": d.random.choice((1, 2, 3))}
            return d.node("LpPool", [x], kernel_shape=kernel, **given)
        case 1:
            kind = d.random.choice(("ReduceMean", "ReduceSum", "ReduceMax"))
            return d.node(kind, [x], keepdims=d.random.choice((0, 1)))
        case 2 if len(shape) == 4:
            # All of the image, as pools of its size, or one with room to spare.
            kind = d.random.choice(("AveragePool", "MaxPool"))
            more = [d.random.choice((0, 0, 1)) for _ in range(2)]
            kernel = [n + m for n, m in zip(shape[2:], more, strict=True)]
            return d.node(kind, [x], kernel_shape=kernel, pads=[0, 0, *more])
    kind = d.random.choice(("ReduceL2", "ReduceL1", "ReduceSumSquare", "ReduceLogSumExp"))
    axes = d.random.sample(range(len(shape)), d.random.randint(1, len(shape)))
    if d.opset >= 18:
        return d.node(kind, [x, d.constant(np.array(axes, INT64))], keepdims=1)
    return d.node(kind, [x], axes=axes, keepdims=1)


def rare_norm(d: Drawing, x: str) -> list[str]:
    """Normalisations and functions that few networks have."""
    shape = d.shape(x)
    match d.random.randrange(6):
        case 0 if len(shape) > 2 and d.opset >= 21:
            groups = d.random.choice([n for n in (1, 2, 4, shape[1]) if shape[1] % n == 0])
            numbers = [d.constant(d.rng.uniform(0.5, 1.5, shape[1]).astype(F32)) for _ in range(2)]
            return d.node("GroupNormalization", [x, *numbers], num_groups=groups)
        case 1 if len(shape) == 4:
            return d.node("LRN", [x], size=d.random.choice((1, 3, 4)), alpha=0.1, bias=1.5)
        case 2 if d.opset >= 20:
            return d.node("Gelu", [x], approximate=d.random.choice(("none", "tanh")))
        case 3:
            return d.node("Shrink", [x], lambd=d.random.choice((0.0, 0.3)), bias=0.1)
        case 4:
            return d.node("Hardmax", [x], axis=d.random.randrange(-len(shape), len(shape)))
    divisor = d.constant(F32(d.random.choice((0.7, 2.0, -3.0))))
    return d.node("Mod", [x, divisor], fmod=1)


def rare_resize(d: Drawing, x: str) -> list[str]:
    """Resize of any axes, cubic, with antialiasing, or within limits of its sizes."""
    shape = d.shape(x)
    if len(shape) != 4:
        return []
    mode = d.random.choice(("nearest", "linear", "cubic"))
    given: dict[str, Any] = {"mode": mode}
    ways = ["half_pixel", "asymmetric", "align_corners"]
    ways += ["half_pixel_symmetric"] * (d.opset >= 19)
    given["coordinate_transformation_mode"] = d.random.choice(ways)
    if mode == "cubic":
        given["cubic_coeff_a"] = d.random.choice((-0.75, -0.5))
        given["exclude_outside"] = d.random.choice((0, 1))
    elif mode == "nearest":
        given["coordinate_transformation_mode"] = "asymmetric"
        given["nearest_mode"] = "floor"
    if d.opset < 18:
        sizes = [*shape[:2], *(d.random.choice((n, 2 * n, n + 1)) for n in shape[2:])]
        return d.node("Resize", [x, "", "", d.constant(np.array(sizes, INT64))], **given)
    axes = d.random.choice(([2, 3], [3], [2], [3, 2]))
    wanted = [d.random.choice((shape[n], 2 * shape[n], shape[n] + 1)) for n in axes]
    given["axes"] = axes
    # Documented: ONNX Runtime rounds lengths first.
    exact = given["coordinate_transformation_mode"] != "align_corners"
    if exact and d.chance(0.3) and len(axes) == 2:
        given["keep_aspect_ratio_policy"] = d.random.choice(("not_larger", "not_smaller"))
    if mode == "linear" and d.chance(0.3):
        given["antialias"] = 1
    return d.node("Resize", [x, "", "", d.constant(np.array(wanted, INT64))], **given)


def picked(d: Drawing, x: str) -> list[str]:
    """Elements picked or replaced by tables of places."""
    shape = d.shape(x)
    axis = d.random.randrange(len(shape))
    size = shape[axis]
    match d.random.randrange(5):
        case 0:
            fewer = tuple(d.random.randint(1, n) for n in shape)
            places = d.rng.integers(-size, size, fewer)
            return d.node("GatherElements", [x, d.constant(places)], axis=axis)
        case 1:
            depth = d.random.randint(1, len(shape))
            places = np.stack([d.rng.integers(-n, n, 3) for n in shape[:depth]], -1)
            return d.node("GatherND", [x, d.constant(places)])
        case 2:
            order = d.rng.permutation(size)[: d.random.randint(1, size)]
            sizes = [1] * len(shape)
            sizes[axis] = len(order)
            places = order.reshape(sizes) + np.zeros((*shape[:axis], 1, *shape[axis + 1 :]), INT64)
            given = d.constant(d.rng.normal(0, 1, places.shape).astype(F32))
            return d.node("ScatterElements", [x, d.constant(places), given], axis=axis)
        case 3 if len(shape) > 1:
            diagonal = d.constant(np.int64(d.random.choice((-1, 0, 1))))
            return d.node("Trilu", [x, diagonal], upper=d.random.choice((0, 1)))
        case 4 if len(shape) > 1:
            lengths = d.constant(d.rng.integers(1, shape[0] + 1, shape[1]))
            return d.node("ReverseSequence", [x, lengths], time_axis=0, batch_axis=1)
    return []


def masked(d: Drawing, x: str) -> list[str]:
    """Where a constant or a comparison says so, another number."""
    shape = _some(d, d.shape(x))
    which: Sequence[str] = [d.constant(d.rng.random(shape) < 0.5)]
    if d.chance(0.3):
        kind = d.random.choice(("Greater", "LessOrEqual", "GreaterOrEqual"))
        which = d.node(kind, [x, d.constant(F32(0.1))])
        if which and d.chance(0.3):
            which = d.node("Not", list(which))
    number = d.constant(F32(d.random.choice((0.0, -1.0, -50.0))))
    pair = [x, number] if d.chance(0.5) else [number, x]
    return d.node("Where", [*which, *pair]) if which else []


def _some(d: Drawing, shape: Sequence[int]) -> tuple[int, ...]:
    """A shape that broadcasts to another."""
    return tuple(n if d.chance(0.6) else 1 for n in shape)
