"""Loops of reductions: contractions of one operand."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..define.operand import Operand, Result, zero
from ..define.reductions import FUNCTIONS
from ..dtypes import DType
from ..graph.operators.contractions import Contract
from ..graph.operators.reductions import Reduce, neutral
from ..loops.expressions import BinaryFunction, Cast, Expr
from ..loops.ir import Stmt
from .contractions import combine
from .scope import Anchor, Scope

__all__ = ["REDUCTIONS"]


def reduce(
    operator: Reduce, operands: Sequence[Operand], results: Sequence[Result], scope: Scope
) -> Stmt:
    """Narrow floats are combined in float32; bool as bits."""
    (x,), (result,) = operands, results
    kept = tuple(axis for axis in range(x.type.rank) if axis not in operator.axes)
    dtype = x.type.dtype
    computing = DType.FLOAT32 if dtype in (DType.FLOAT16, DType.BFLOAT16) else dtype
    function = FUNCTIONS[operator.function]
    if dtype == DType.BOOL:
        bits = {BinaryFunction.MIN: BinaryFunction.AND, BinaryFunction.MAX: BinaryFunction.OR}
        function = bits[function]
    labels = tuple(((axis, 1),) for axis in range(x.type.rank))
    contraction = Contract(x.type.shape, (labels,), tuple(((axis, 1),) for axis in kept), computing)

    def store(indices: tuple[Expr, ...], value: Expr) -> Stmt:
        places = indices
        if operator.keep:
            rest = iter(indices)
            places = tuple(
                zero() if axis in operator.axes else next(rest) for axis in range(x.type.rank)
            )
        return result.store(places, value if computing == dtype else Cast(dtype, value))

    first = neutral(operator.function, computing.numpy)
    return combine(contraction, operands, Result(result.type, store), scope, function, first)


REDUCTIONS: Mapping[type[Any], Anchor] = {Reduce: reduce}
