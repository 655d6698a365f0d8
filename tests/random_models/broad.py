"""Operators of the importer's table that networks of layers seldom have: recurrences,
integers, comparisons, samples of images, signals.
"""

import numpy as np
from onnx import TensorProto

from .drawing import Drawing

__all__ = [
    "compared",
    "fused_attention",
    "integers",
    "recurrent",
    "sampled",
    "scattered",
    "signal",
    "summed",
    "unusual_function",
]

INT64, F32 = np.int64, np.float32


def unusual_function(d: Drawing, x: str) -> list[str]:
    """A function of each element that few networks have, within its domain perhaps."""
    kind = d.random.choice(
        ("Log", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Tan", "Asinh", "Acosh", "Atanh",
         "Reciprocal", "Swish", "Cast", "IsNaN", "IsInf"))  # fmt: skip
    match kind:
        case "IsNaN" | "IsInf":
            found = d.node(kind, [x])
            return d.node("Cast", found, to=TensorProto.FLOAT) if found else []
        case "Cast":
            to = (TensorProto.FLOAT16, TensorProto.INT32, TensorProto.INT8, TensorProto.BOOL,
                  TensorProto.DOUBLE, TensorProto.INT64)  # fmt: skip
            limits = [d.constant(F32(each)) for each in (-100, 100)]
            found = d.node("Clip", [x, *limits])
            found = d.node("Cast", found, to=d.random.choice(to)) if found else []
            return d.node("Cast", found, to=TensorProto.FLOAT) if found else []
        case "Log" | "Acosh" | "Reciprocal":
            apart = d.node("Add", [*d.node("Abs", [x]), d.constant(F32(1.1))])
            return d.node(kind, apart)
        case "Asin" | "Acos" | "Atanh" | "Tan" | "Sinh" | "Cosh":
            limits = [d.constant(F32(each)) for each in (-0.9, 0.9)]
            return d.node(kind, d.node("Clip", [x, *limits]))
    return d.node(kind, [x])


def summed(d: Drawing, x: str) -> list[str]:
    """Operators of any number of operands, and reductions that few networks have."""
    shape = d.shape(x)
    match d.random.randrange(4):
        case 0:
            others = [n for n in d.floats if d.shape(n) == shape]
            given = [x, *(d.random.choice(others) for _ in range(d.random.randint(0, 3)))]
            return d.node(d.random.choice(("Sum", "Mean", "Max", "Min")), given)
        case 1:
            axes = d.random.sample(range(len(shape)), d.random.randint(1, len(shape)))
            positive = d.node("Add", [*d.node("Abs", [x]), d.constant(F32(0.5))])
            kind = d.random.choice(("ReduceProd", "ReduceLogSum"))
            if d.opset >= 18:
                return d.node(kind, [*positive, d.constant(np.array(axes, INT64))], keepdims=1)
            return d.node(kind, positive, axes=axes, keepdims=d.random.choice((0, 1)))
        case 2 if len(shape) > 2:
            axes = d.random.choice(([0, 2, 3][: len(shape) - 1], [1], list(range(len(shape)))))
            return d.node("MeanVarianceNormalization", [x], axes=axes)
        case 3 if d.opset >= 18:
            return d.node("ReduceMean", [x, ""], noop_with_empty_axes=d.random.choice((0, 1)))
    return d.node("Det", [x])


def compared(d: Drawing, x: str) -> list[str]:
    """Comparisons and what is made of truths."""
    limits = [d.constant(F32(n)) for n in d.rng.normal(0, np.abs(d.values[x]).max() / 2, 2)]
    kinds = d.random.sample(("Less", "Greater", "GreaterOrEqual", "LessOrEqual", "Equal"), 2)
    truths = [d.node(kind, [x, limit]) for kind, limit in zip(kinds, limits, strict=True)]
    if not all(truths):
        return []
    found = d.node(d.random.choice(("And", "Or", "Xor")), [*truths[0], *truths[1]])
    if found and d.chance(0.3):
        found = d.node("Not", found)
    if not found:
        return []
    if d.chance(0.4):
        return d.node("Where", [*found, x, limits[0]])
    return d.node("Cast", found, to=TensorProto.FLOAT)


def integers(d: Drawing, x: str) -> list[str]:
    """Layers of integers as they are computed while a model runs: scales of what comes."""
    shape = d.shape(x)
    if len(shape) < 2:
        return []
    unsigned = d.random.choice(("uint8", "int8"))
    stored, scale, zero = d.node("DynamicQuantizeLinear", [x], 3) or ("", "", "")
    if not stored:
        return []
    if len(shape) == 4 and d.chance(0.5):
        out, kernel = d.random.choice((1, 4, 9)), d.random.choice((1, 2, 3))
        weights = d.rng.integers(-100, 100, (out, shape[1], kernel, kernel)).astype("int8")
        given = [stored, d.constant(weights.astype(unsigned)), zero]
        found = d.node("ConvInteger", given, pads=[kernel // 2] * 4)
    else:
        weights = d.rng.integers(-100, 100, (shape[-1], d.random.choice((1, 5, 16))))
        offset = d.rng.integers(0, 9, ()).astype(unsigned)
        given = [stored, d.constant(weights.astype("int8").astype(unsigned)), zero]
        found = d.node("MatMulInteger", [*given, d.constant(offset)])
    found = d.node("Cast", found, to=TensorProto.FLOAT) if found else []
    factor = d.node("Mul", [scale, d.constant(F32(0.01))])
    return d.node("Mul", [*found, *factor]) if found else []


def recurrent(d: Drawing, x: str) -> list[str]:
    """LSTM, GRU and RNN, in both directions perhaps; the last state is an output of its own."""
    shape = d.shape(x)
    if len(shape) != 3:
        return []
    kind, gates = d.random.choice((("LSTM", 4), ("GRU", 3), ("RNN", 1)))
    direction = d.random.choice(("forward", "reverse", "bidirectional"))
    ways, hidden = 1 + (direction == "bidirectional"), d.random.choice((1, 4, 7))

    def numbers(*sizes: int) -> str:
        return d.constant(d.rng.normal(0, 0.4, (ways, *sizes)).astype(F32))

    given = [x, numbers(gates * hidden, shape[2]), numbers(gates * hidden, hidden)]
    given.append(numbers(2 * gates * hidden) if d.chance(0.7) else "")
    lengths = d.rng.integers(1, shape[0] + 1, shape[1]).astype(np.int32)
    given.append(d.constant(lengths) if d.chance(0.3) else "")
    attributes: dict[str, object] = {"direction": direction, "hidden_size": hidden}
    if d.chance(0.3):
        given.append(numbers(shape[1], hidden))
    if kind == "GRU":
        attributes["linear_before_reset"] = d.random.choice((0, 1))
    if kind == "LSTM" and d.chance(0.3):
        given += [""] * (6 - len(given))
        given += [numbers(shape[1], hidden), numbers(3 * hidden)]
    if d.chance(0.2):
        attributes["clip"] = 0.5
    rows, last = (d.node(kind, given, 2, **attributes) or ["", ""])[:2]
    if not rows:
        return []
    d.ends += [last] if d.chance(0.3) else []
    turned = d.node("Transpose", [rows], perm=[0, 2, 1, 3])
    return d.node("Reshape", [*turned, d.constant(np.array([0, 0, -1], INT64))])


def scattered(d: Drawing, x: str) -> list[str]:
    """Elements written or chosen by places, and tensors made of places."""
    shape = d.shape(x)
    axis = d.random.randrange(len(shape))
    match d.random.randrange(5):
        case 0:
            depth = d.random.randint(1, len(shape))
            places = np.unique(
                np.stack([d.rng.integers(0, n, 3) for n in shape[:depth]], -1), axis=0
            )
            values = d.rng.normal(0, 1, (len(places), *shape[depth:])).astype(F32)
            how = {"reduction": d.random.choice(("none", "add", "mul", "max", "min"))}
            given = [x, d.constant(places), d.constant(values)]
            return d.node("ScatterND", given, **(how if d.opset >= 18 else {}))
        case 1:
            kept = d.rng.random(shape[axis]) < 0.6
            return d.node("Compress", [x, d.constant(kept)], axis=axis) if kept.any() else []
        case 2:
            places = d.node("ArgMax", [x], axis=axis, keepdims=0)
            limits = d.constant(np.array(d.random.choice(([0, 1], [-2, 3])), F32))
            given = [*places, d.constant(np.array([shape[axis]], INT64)), limits]
            return d.node("OneHot", given, axis=d.random.choice((axis, -1)))
        case 3 if d.opset >= 18:
            axes = d.random.sample(range(1, len(shape)), min(2, len(shape) - 1))
            sizes = np.array([d.random.randint(1, shape[n] + 2) for n in axes], INT64)
            return d.node("CenterCropPad", [x, d.constant(sizes)], axes=axes) if axes else []
        case 4 if d.opset >= 19:
            widths = d.constant(d.rng.integers(0, 2, 2 * len(shape)))
            return d.node("Pad", [x, widths], mode="wrap")
    return []


def sampled(d: Drawing, x: str) -> list[str]:
    """Samples of an image by a grid or boxes, and images put together of columns."""
    shape = d.shape(x)
    if len(shape) != 4:
        return []
    match d.random.randrange(4):
        case 0 | 1 if d.opset >= 16:
            sizes = d.random.choice(((3, 4), (1, 1), (5, 2)))
            grid = d.rng.uniform(-1.3, 1.3, (shape[0], *sizes, 2)).astype(F32)
            modes = ("linear", "nearest", "cubic") if d.opset >= 20 else ("bilinear", "bicubic")
            padding = d.random.choice(("zeros", "border", "reflection"))
            attributes = {"mode": d.random.choice(modes), "padding_mode": padding}
            corners = d.random.choice((0, 1))
            return d.node("GridSample", [x, d.constant(grid)], align_corners=corners, **attributes)
        case 2 if d.opset >= 16:
            low = d.rng.uniform(0, 3, (2, 2))
            boxes = np.concatenate([low, low + d.rng.uniform(0.5, 5, (2, 2))], -1).astype(F32)
            given = [x, d.constant(boxes), d.constant(np.zeros(2, INT64))]
            mode = d.random.choice(("avg", "max"))
            way = d.random.choice(("half_pixel", "output_half_pixel"))
            ratio = d.random.choice((0, 1, 2))
            return d.node("RoiAlign", given, mode=mode, output_height=2, output_width=3,
                          sampling_ratio=ratio, coordinate_transformation_mode=way)  # fmt: skip
        case 3 if d.opset >= 18 and shape[1] % 4 == 0 and shape[3] > 1:
            flat = d.node("Reshape", [x, d.constant(np.array([shape[0], shape[1], -1], INT64))])
            columns = d.shape(flat[0])[2]
            image = d.constant(np.array([2, columns + 1], INT64))
            return d.node("Col2Im", [*flat, image, d.constant(np.array([2, 2], INT64))])
    return []


def signal(d: Drawing, x: str) -> list[str]:
    """Fourier transforms of rows."""
    shape = d.shape(x)
    if d.opset < 17 or len(shape) < 2 or shape[-1] < 2:
        return []
    deeper = d.node("Unsqueeze", [x, d.constant(np.array([len(shape)], INT64))])
    onesided = d.random.choice((0, 1))
    if d.opset >= 20:
        axis = d.constant(np.int64(len(shape) - 1))
        return d.node("DFT", [*deeper, "", axis], onesided=onesided)
    return d.node("DFT", deeper, axis=len(shape) - 1, onesided=onesided)


def fused_attention(d: Drawing, x: str) -> list[str]:
    """Attention, RMSNormalization and RotaryEmbedding as operators of their own."""
    shape = d.shape(x)
    if d.opset < 23 or len(shape) != 3:
        return []
    heads = d.random.choice([n for n in (1, 2, 4) if shape[2] % n == 0])
    width = shape[2] // heads
    match d.random.randrange(3):
        case 0:
            gain = d.constant(d.rng.uniform(0.3, 1.7, shape[2]).astype(F32))
            return d.node("RMSNormalization", [x, gain], epsilon=d.random.choice((1e-5, 0.1)))
        case 1 if width % 2 == 0:
            angles = d.rng.uniform(0, 6, (shape[0], shape[1], width // 2))
            given = [x, *(d.constant(f(angles).astype(F32)) for f in (np.cos, np.sin))]
            how = d.random.choice((0, 1))
            return d.node("RotaryEmbedding", given, num_heads=heads, interleaved=how)
    others = [n for n in d.floats if d.shape(n) == shape]
    given = [x, d.random.choice(others), d.random.choice(others)]
    attributes: dict[str, object] = {"q_num_heads": heads, "kv_num_heads": heads}
    attributes["is_causal"] = d.random.choice((0, 0, 1))
    if d.chance(0.3):
        attributes["softcap"] = 2.0
    if d.chance(0.3):
        attributes["scale"] = 0.3
    if d.chance(0.3):
        mask = d.rng.choice((0.0, -50.0), (shape[1], shape[1])).astype(F32)
        given.append(d.constant(mask))
    return d.node("Attention", given, **attributes)
