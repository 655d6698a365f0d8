"""Upper bound of a loop program's work: the elements that it reads and writes, one by one."""

import math

from ..dtypes import DType
from .bounds import ANY, Bounds
from .expressions import Expr
from .ir import Allocate, Block, For, Function, If, Invoke, Let, Stmt, Store, Update, While
from .traverse import loads, own_expressions

__all__ = ["work"]

LARGEST_COUNT = 1 << 40
"""The largest extent that data is taken to give; a greater bound says nothing."""


def work(function: Function) -> int:
    """Loads and stores of elements that the function's loops come to, those of vectors as well.

    A loop counts as often as its extent can be at most; an extent that depends on data alone, and a
    ``While``, count once.  An iteration counts one more than its body.
    """
    return _work(function.body, Bounds())


def _work(stmt: Stmt, bounds: Bounds) -> int:
    match stmt:
        case Block(statements=statements):
            return sum(_work(each, bounds) for each in statements)
        case For(variable=variable, extent=extent, body=body):
            count = _most(extent, bounds)
            inner = bounds.variable(variable, (0, count - 1))
            return _reads(extent) + count * (1 + _work(body, inner))
        case While(condition=condition, body=body):
            return _reads(condition) + 1 + _work(body, bounds)
        case If(condition=condition, then=then, otherwise=otherwise):
            rest = 0 if otherwise is None else _work(otherwise, bounds)
            return _reads(condition) + max(_work(then, bounds), rest)
        case Allocate(body=body):
            return _work(body, bounds)
        case Let(variable=variable, value=value, body=body):
            inner = bounds
            if variable.dtype is DType.INT64:
                inner = bounds.variable(variable.name, bounds.of(value))
            return _reads(value) + _work(body, inner)
        case Invoke(operands=operands):
            return sum(math.prod(each.shape) for each in operands)
        case Store() | Update():
            return 1 + sum(map(_reads, own_expressions(stmt)))


def _most(extent: Expr, bounds: Bounds) -> int:
    most = bounds.of(extent)[1]
    unknown = most >= ANY[1] or (most > LARGEST_COUNT and _reads(extent) > 0)
    return 1 if unknown else max(most, 0)


def _reads(expr: Expr) -> int:
    return sum(1 for _ in loads(expr))
