"""The product of two tensors, each less its zero point, and the scale that finishes it."""

import numpy as np

from ....dtypes import DType
from ....graph.operators.integer.values import Multiply
from ....loops.expressions import Cast, Constant, Expr
from ..operators import AnyMultiply
from .activation import Activation
from .definition import Array, Definition, Place
from .fixed_point_product import find_scale
from .fixed_sums import parameters_of
from .windows import finish_of

__all__ = ["define_product"]


def define_product(multiply: AnyMultiply, a: Activation, b: Activation) -> tuple[Definition, int]:
    """Each element of ``a`` times that of ``b``, which has one row or column where it is repeated;
    how many operand pairs differ.
    """
    constants: dict[str, Array]
    if isinstance(multiply, Multiply):
        form = find_scale(multiply)
        zero_point, wrong = form.zero_point, form.inexact_pairs
        constants = {"bias": np.array(form.bias, np.int32), "scale": np.array(form.scale)}
    else:
        zero_point, wrong = multiply.zero_point, 0
        given = [np.array(each, np.int32) for each in (multiply.multiplier, multiply.shift)]
        bias, scale = parameters_of(np.zeros((), np.int32), given)
        constants = {"bias": bias, "scale": scale}
    constants = {name: np.broadcast_to(each, (1, a.lanes)) for name, each in constants.items()}
    finish = finish_of(constants, "", zero_point, multiply.low, multiply.high)

    def value(place: Place) -> Expr:
        row, column = (
            where if size > 1 else Constant(0, DType.INT64)
            for where, size in ((place.y, b.height), (place.x, b.width))
        )
        left, right = a.at(*place.indices), b.at(place.c, row, column, place.l)
        return (Cast(DType.INT32, left) - multiply.a_zero_point) * (
            Cast(DType.INT32, right) - multiply.b_zero_point
        )

    return Definition(value, finish, constants=constants), wrong
