"""Products of matrices as the rules see them: rows, columns, the sum, and the operands."""

from dataclasses import dataclass

from ....dtypes import DType
from ....loops.expressions import Binary, BinaryFunction, Cast, Constant, Expr, Load
from ....loops.ir import Allocate, Block, For, Stmt, Update
from ....loops.traverse import variables

__all__ = ["Product", "product_of"]


@dataclass(frozen=True, slots=True)
class Product:
    """outer: loops around; p, q, k: rows, columns, the sum, with their extents; acc: the sum's
    buffer; left, right: those of the operands; dtypes: of an element of each, and of the sum.
    """

    outer: tuple[str, ...]
    p: tuple[str, int]
    q: tuple[str, int]
    k: tuple[str, int]
    acc: str
    left: str
    right: str
    dtypes: tuple[DType, ...]


def product_of(body: Stmt) -> Product | None:
    """The form that the rule knows."""
    loops: list[tuple[str, int]] = []
    while isinstance(body, For) and isinstance(body.extent, Constant):
        loops.append((body.variable, int(body.extent.value)))
        body = body.body
    if len(loops) < 2 or not isinstance(body, Allocate) or not isinstance(body.body, Block):
        return None
    parts = body.body.statements
    if len(parts) != 3 or not isinstance(parts[1], For):
        return None
    inner = parts[1]
    update = inner.body
    if not isinstance(update, Update) or not isinstance(inner.extent, Constant):
        return None
    value = update.value
    if update.function is not BinaryFunction.ADD or not isinstance(value, Binary):
        return None
    factors = _load(value.left), _load(value.right)
    if value.function is not BinaryFunction.MUL or factors[0] is None or factors[1] is None:
        return None
    *outer, p, q = loops
    used = [{name for each in load.indices for name in variables(each)} for load in factors if load]
    k = inner.variable, int(inner.extent.value)
    left, right = factors[0].buffer, factors[1].buffer
    if q[0] in used[0]:
        used.reverse()
        left, right = right, left
    if left == right or not {p[0], k[0]} <= used[0] or not {q[0], k[0]} <= used[1]:
        return None
    if q[0] in used[0] or p[0] in used[1]:
        return None
    dtypes = left.dtype, right.dtype, body.buffer.dtype
    around = tuple(name for name, _ in outer)
    return Product(around, p, q, k, body.buffer.name, left.name, right.name, dtypes)


def _load(expr: Expr) -> Load | None:
    while isinstance(expr, Cast):
        expr = expr.operand
    return expr if isinstance(expr, Load) else None
