"""Python's numbers in a program: sizes and what is computed of them."""

import math
import operator
from collections.abc import Callable
from typing import Any

from .context import Context, Converter, Number
from .views import axis_of

__all__ = ["NUMBERS"]


def _number(function: Callable[..., Any]) -> Converter:
    """A function of numbers, which Python calls in order."""

    def convert(context: Context, **numbers: Number) -> Number:
        if any(not isinstance(each, int | float) for each in numbers.values()):
            raise TypeError(f"{list(numbers.values())}; required numbers")
        if function is operator.pow and max(map(abs, numbers.values())) > 1 << 20:
            raise ValueError("a power of large numbers")
        found: Number = function(*numbers.values())
        return found

    return convert


OPERATORS = (
    "add", "and_", "eq", "floordiv", "ge", "gt", "index", "le", "lt", "mod", "mul", "ne", "neg",
    "not_", "or_", "pow", "sub", "truediv",
)  # fmt: skip
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "math.ceil": math.ceil,
    "math.floor": math.floor,
    "math.trunc": math.trunc,
    "round": round,
    "torch._sym_sqrt": math.sqrt,
    "torch.sym_float": float,
    "torch.sym_int": int,
    "torch.sym_ite": lambda a, b, c: b if a else c,
    "torch.sym_max": max,
    "torch.sym_min": min,
    "torch.sym_not": operator.not_,
    "torch.sym_sum": lambda *x: sum(x),
}

NUMBERS: dict[str, Converter] = {
    **{f"_operator.{name}": _number(getattr(operator, name)) for name in OPERATORS},
    **{name: _number(function) for name, function in FUNCTIONS.items()},
    "aten.sym_numel": lambda context, x: x.tensor.type.elements,
    "aten.sym_size": lambda context, x, dim: x.shape[axis_of(dim, x.rank)],
    "aten.sym_storage_offset": lambda context, x: 0,
    "aten.sym_stride": lambda context, x, dim: math.prod(x.shape[axis_of(dim, x.rank) + 1 :]),
}
