"""Windows of an activation, pools over them, and the finish of a layer's sums."""

from collections.abc import Callable

import numpy as np

from ....dtypes import DType
from ....graph.ir import Graph
from ....graph.operators.integer.residual import RequantizeAdd
from ....graph.operators.integer.windows import AveragePool2d, MaxPool2d
from ....loops.expressions import BinaryFunction, Cast, Constant, Expr, Load, Variable
from ..finishes import requantized, requantized_fixed
from ..operators import AnyRequantize
from ..passes.fuse import Layer
from ..row_finishes import widened
from .activation import Activation
from .definition import Array, Definition, Fold, Place, constant_buffer
from .fixed_sums import parameters_of

__all__ = ["channel_finish", "define_average", "define_max", "finish_of", "window_of"]

Finish = Callable[[Expr, Place], Expr]
COLUMN = Variable("kx")
"""Column of a window, where one loop goes over all of them."""


def window_of(
    x: Activation,
    place: Place,
    strides: tuple[int, int],
    before: tuple[int, int],
    dilations: tuple[int, int] = (1, 1),
    column: Expr = COLUMN,
) -> Load:
    """The element of the window at ``place`` that the loop ``ky`` and ``column`` are at."""
    (sy, sx), (top, left), (dy, dx) = strides, before, dilations
    row = place.y * sy + Variable("ky") * dy - top
    return x.at(place.c, row, place.x * sx + column * dx - left, place.l)


def define_max(pool: MaxPool2d, x: Activation) -> Definition:
    def value(place: Place) -> Expr:
        return window_of(x, place, pool.strides, (pool.pads[0], pool.pads[1]))

    loops = (("ky", pool.kernel[0]), ("kx", pool.kernel[1]))
    return Definition(value, fold=Fold(loops, BinaryFunction.MAX, -128))


def define_average(pool: AveragePool2d, x: Activation) -> Definition:
    count = pool.kernel[0] * pool.kernel[1]
    constants: dict[str, Array] = {
        "bias": np.full((1, x.lanes), -count * pool.x_zero_point, np.int32),
        "scale": np.full((1, x.lanes), pool.scale, np.float32),
    }
    finish = finish_of(constants, "", pool.zero_point, -128, 127)

    def value(place: Place) -> Expr:
        return Cast(
            DType.INT32, window_of(x, place, pool.strides, (-pool.start[0], -pool.start[1]))
        )

    loops = (("ky", pool.kernel[0]), ("kx", pool.kernel[1]))
    return Definition(value, finish, Fold(loops, BinaryFunction.ADD, 0), None, constants)


def channel_finish(
    graph: Graph, layer: Layer, bias: Array, output: Activation
) -> tuple[Finish, dict[str, Array]]:
    """The finish of a sum for each channel, and its constants; of one that bytes are added to, to
    20 bits.
    """
    node = next(n for n in layer.nodes if isinstance(n.operator, AnyRequantize | RequantizeAdd))
    operator = node.operator
    assert isinstance(operator, AnyRequantize | RequantizeAdd)
    given = [graph.constants[name] for name in node.inputs[1:] if name in graph.constants]
    bias, scale = parameters_of(bias, given)
    constants = {"bias": _blocked(bias, output), "scale": _blocked(scale, output, 1)}
    if isinstance(operator, RequantizeAdd):
        return _finish(constants, "", widened), constants
    finish = finish_of(constants, "", operator.zero_point, operator.low, operator.high)
    return finish, constants


def finish_of(
    constants: dict[str, Array], prefix: str, zero_point: int, low: int, high: int
) -> Finish:
    """Requantisation by the constants ``prefix`` + ``bias`` and ``scale``, [blocks or 1, lanes].

    A scale of int32 is a multiplier in fixed point.  Where all blocks have the same, ``constants``
    keeps that of one.
    """

    def meaning(value: Expr, bias: Load, scale: Load) -> Expr:
        of = requantized_fixed if scale.buffer.dtype is DType.INT32 else requantized
        return of(value, bias, scale, zero_point, low, high)

    return _finish(constants, prefix, meaning)


def _finish(
    constants: dict[str, Array], prefix: str, meaning: Callable[[Expr, Load, Load], Expr]
) -> Finish:
    """As ``finish_of``: ``meaning`` of a value, its bias and its scale."""
    names = f"{prefix}bias", f"{prefix}scale"
    if all((constants[name] == constants[name][:1]).all() for name in names):
        constants |= {name: constants[name][:1] for name in names}
    bias, scale = (constant_buffer(name, constants[name]) for name in names)

    def finish(value: Expr, place: Place) -> Expr:
        block = place.c if bias.shape[0] > 1 else Constant(0, DType.INT64)
        index = (block, place.l)
        return meaning(value, Load(bias, index), Load(scale, index))

    return finish


def _blocked(values: Array, output: Activation, fill: float = 0) -> Array:
    """One value a channel of ``output`` as [blocks, lanes]."""
    padded = np.full(output.blocks * output.lanes, fill, values.dtype)
    padded[output.channel_places] = values
    return padded.reshape(-1, output.lanes)
