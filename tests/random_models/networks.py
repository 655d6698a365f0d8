"""Parts of networks as their designers have them, of layers that the accelerator runs as one: some
channel blocks at a time, or block by block while a convolution makes them.
"""

import numpy as np

from .drawing import Drawing

__all__ = ["classified", "inverted", "perceptron"]


def inverted(d: Drawing, x: str) -> list[str]:
    """An inverted residual: expanded, each channel by itself, projected, and added perhaps."""
    shape = d.shape(x)
    wide = d.random.choice((8, 16, 24, 32, 64, 96, 128))
    stride, kernel = d.random.choice((1, 1, 1, 2)), d.random.choice((3, 3, 5))
    to = d.random.choice((shape[1], shape[1], 8, 20, 32))
    made = _convolved(d, [x], wide, 1)
    made = _convolved(d, made, wide, kernel, wide, stride)
    made = _convolved(d, made, to, 1, limited=False)
    alike = made and d.shape(made[0]) == shape
    return d.node("Add", [x, *made]) if alike and d.chance(0.8) else made


def classified(d: Drawing, x: str) -> list[str]:
    """A convolution, the average of each channel, and a dense layer of many weights."""
    made = _convolved(d, [x], d.random.choice((16, 64, 128, 256)), d.random.choice((1, 1, 3)))
    made = [d.again(name, made[0]) for name in d.node("GlobalAveragePool", made)] if made else []
    if not made:
        return []
    if d.chance(0.5):
        made = d.node("Flatten", made)
    else:
        shape = np.array([d.batch, -1], np.int64)
        made = d.node("Reshape", [*made, d.constant(shape)])
    out = d.random.choice((10, 40, 120, 400, 600))
    weights = d.weights((out, d.shape(made[0])[1]), 0, made[0], out)
    return d.node("Gemm", [d.again(made[0]), *weights], transB=1) if weights else []


def perceptron(d: Drawing, x: str) -> list[str]:
    """Two dense layers of rows with a function between them, added to what they read."""
    width = d.shape(x)[-1]
    wide = d.random.choice((width, 2 * width, 4 * width))
    made = [x]
    for depth, to in ((width, wide), (wide, width)):
        made = d.node("MatMul", [*made, *d.weights((depth, to), 1, made[0])]) if made else []
        if not made:
            return []
        offsets = d.constant(d.rng.normal(0, 0.3, to).astype(np.float32))
        made = [d.again(name) for name in d.node("Add", [*made, offsets])]
        if to == wide and d.chance(0.8):
            kind = d.random.choice(("Relu", "Gelu" if d.opset > 19 else "Sigmoid", "HardSwish"))
            made = [d.again(name) for name in d.node(kind, made)]
    return d.node("Add", [x, *made])


def _convolved(
    d: Drawing,
    made: list[str],
    to: int,
    kernel: int,
    groups: int = 1,
    stride: int = 1,
    *,
    limited: bool = True,
) -> list[str]:
    """A convolution that keeps the image's size, or divides it, quantised; nothing of nothing."""
    if not made:
        return []
    (x,) = made
    given = [x, *d.weights((to, d.shape(x)[1] // groups, kernel, kernel), 0, x, to)]
    sizes = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [kernel // 2] * 4}
    found = d.node("Conv", given, group=groups, **sizes)
    if found and limited and d.chance(0.7):
        found = d.node("Relu", found)
    return [d.again(name) for name in found]
