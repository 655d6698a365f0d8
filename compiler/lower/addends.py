"""What is added to an integer sum, such as a bias, put into the register that the sum starts from.

    acc = 0; acc += ...; let s = acc + b: ...  ->  acc = b; acc += ...; let s = acc: ...

Integer sums wrap, so that their order makes no difference.
"""

from dataclasses import replace

from ..dtypes import DType
from ..loops.expressions import Binary, BinaryFunction, Buffer, Expr, Load
from ..loops.ir import Let, Stmt
from ..loops.traverse import own_expressions, variables, walk

__all__ = ["without_addend"]


def without_addend(body: Stmt, register: Buffer) -> tuple[Stmt, Expr | None]:
    """``body`` without the addition, and what it adds; None where there is none.

    body: begins with a name for an element of ``register``; what is added is loaded.
    """
    if not isinstance(body, Let) or not isinstance(body.body, Let):
        return body, None
    total, following = body.variable, body.body
    value = following.value
    if total.dtype != DType.INT32 or not _is_sum(value) or not isinstance(body.value, Load):
        return body, None
    assert isinstance(value, Binary)
    rest = [side for side in (value.left, value.right) if side != total]
    if body.value.buffer != register or len(rest) != 1 or not isinstance(rest[0], Load):
        return body, None
    used = (own for each in walk(following.body) for own in own_expressions(each))
    if any(total.name in variables(own) for own in used) or rest[0].buffer == register:
        return body, None
    if rest[0].dtype != DType.INT32 or total.name in variables(rest[0]):
        return body, None
    return replace(body, variable=following.variable, body=following.body), rest[0]


def _is_sum(value: Expr) -> bool:
    return isinstance(value, Binary) and value.function == BinaryFunction.ADD
