"""Copies that fill what they copy to with zeros where their source does not count.

    if c: invoke copy(x[f : 8], t[g : 8])
    else: for i in 8: t[g + i] = 0

A GPU has one instruction for both, which is asynchronous in either case.
"""

from math import prod

from .affine import linear
from .expressions import Constant, Variable
from .ir import For, If, Invoke, Stmt, Store

__all__ = ["fill_of"]


def fill_of(stmt: Stmt) -> tuple[Invoke, Store] | None:
    """The copy and the store of zeros of such a statement; None for any other."""
    match stmt:
        case If(
            then=Invoke(operands=(_, target)) as copy,
            otherwise=For(
                variable=name,
                extent=Constant(value=count),
                body=Store(buffer=buffer, indices=indices, value=Constant(value=0)) as store,
            ),
        ) if buffer == target.buffer and count == target.shape[-1] == prod(target.shape):
            steps = [
                linear(index) - linear(start)
                for index, start in zip(indices, target.start, strict=True)
            ]
            *others, last = steps
            if all(each.value == 0 for each in others) and last == linear(Variable(name)):
                return copy, store
    return None
