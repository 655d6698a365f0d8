"""The product of two tensors, each less its zero point, and the scale that finishes it."""

import numpy as np

from ....dtypes import DType
from ....graph.operators.integer.values import Multiply
from ....loops.expressions import Cast, Constant, Expr
from .activation import Activation
from .definition import Array, Definition, Place
from .fixed_point_product import find_scale
from .windows import finish_of

__all__ = ["define_product"]


def define_product(multiply: Multiply, a: Activation, b: Activation) -> tuple[Definition, int]:
    """Each element of ``a`` times that of ``b``, which has one row or column where it is repeated;
    how many operand pairs differ.
    """
    form = find_scale(multiply)
    constants: dict[str, Array] = {
        "bias": np.full((1, a.lanes), form.bias, np.int32),
        "scale": np.full((1, a.lanes), form.scale, np.float32),
    }
    finish = finish_of(constants, "", form.zero_point, multiply.low, multiply.high)

    def value(place: Place) -> Expr:
        row, column = (
            where if size > 1 else Constant(0, DType.INT64)
            for where, size in ((place.y, b.height), (place.x, b.width))
        )
        left, right = a.at(*place.indices), b.at(place.c, row, column, place.l)
        return (Cast(DType.INT32, left) - multiply.a_zero_point) * (
            Cast(DType.INT32, right) - multiply.b_zero_point
        )

    return Definition(value, finish, constants=constants), form.inexact_pairs
