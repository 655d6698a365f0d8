"""Python's numbers in a program: sizes and what is computed of them."""

import math
import operator
from collections.abc import Callable
from typing import Any

from ...graph.formulas import Term
from .context import Context, Converter, Number
from .views import axis_of

__all__ = ["NUMBERS"]


def size(context: Context, x: Term, dim: int) -> int:
    """The size of a dimension."""
    return x.shape[axis_of(dim, x.rank)]


def numel(context: Context, x: Term) -> int:
    """The number of elements."""
    return x.tensor.type.elements


def stride(context: Context, x: Term, dim: int) -> int:
    """Elements between neighbours of a dimension, in row-major order."""
    return math.prod(x.shape[axis_of(dim, x.rank) + 1 :])


def storage_offset(context: Context, x: Term) -> int:
    """Tensors begin where their storage does."""
    return 0


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
    "aten.sym_numel": numel,
    "aten.sym_size": size,
    "aten.sym_storage_offset": storage_offset,
    "aten.sym_stride": stride,
}
