"""Products of matrices as the rules see them: rows, columns, the sum, and the operands."""

from math import gcd, prod

from dovetail.isa.frozen import frozen

from ....dtypes import DType
from ....loops.affine import linear
from ....loops.expressions import (
    Binary,
    BinaryFunction,
    Cast,
    Constant,
    Expr,
    Load,
    Select,
    Variable,
)
from ....loops.ir import Allocate, Block, For, Stmt, Update
from ....loops.traverse import loads, variables

__all__ = ["Product", "factor", "product_of"]


@frozen
class Product:
    """outer: loops around, count: iterations of all of them; p, q, k: rows, columns, the sum, with
    their extents; acc: the sum's buffer; left, right: those of the operands; dtypes: of an element
    of each, and of the sum; apart: whether neighbours in the memory of an operand are of two rows
    or columns; whole: where the sum goes along rows of an operand, numbers of elements that divide
    the places where it may begin, and 0 where it goes in another way.
    """

    outer: tuple[str, ...]
    count: int
    p: tuple[str, int]
    q: tuple[str, int]
    k: tuple[str, int]
    acc: str
    left: str
    right: str
    dtypes: tuple[DType, ...]
    apart: tuple[bool, bool]
    whole: tuple[int, int]


def product_of(body: Stmt) -> Product | None:
    """The form that the rule knows: one product, or the parts of one before their sum."""
    while isinstance(body, Allocate) and isinstance(body.body, Block):
        body = body.body.statements[0]
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
    factors = factor(value.left), factor(value.right)
    if value.function is not BinaryFunction.MUL or factors[0] is None or factors[1] is None:
        return None
    *outer, p, q = loops
    k = inner.variable, int(inner.extent.value)
    first, second = factors[0], factors[1]
    used = [variables(value.left), variables(value.right)]
    if q[0] in used[0]:
        used.reverse()
        first, second = second, first
    left, right = first.buffer, second.buffer
    if left == right or not {p[0], k[0]} <= used[0] or not {q[0], k[0]} <= used[1]:
        return None
    if q[0] in used[0] or p[0] in used[1]:
        return None
    dtypes = left.dtype, right.dtype, body.buffer.dtype
    around = tuple(name for name, _ in outer)
    last = [variables(each.indices[-1]) for each in (first, second)]
    whole = _whole(first, k[0]), _whole(second, k[0])
    apart = p[0] in last[0], q[0] in last[1]
    count = prod(extent for _, extent in outer)
    return Product(
        around, count, p, q, k, body.buffer.name, left.name, right.name, dtypes, apart, whole
    )


def factor(expr: Expr) -> Load | None:
    """The element that a factor is, maybe cast, or 0 outside of an image."""
    while isinstance(expr, Cast | Select):
        if isinstance(expr, Select) and not isinstance(expr.other, Constant):
            return None
        expr = expr.operand if isinstance(expr, Cast) else expr.chosen
    return expr if isinstance(expr, Load) and not any(map(_reads, expr.indices)) else None


def _whole(load: Load, name: str) -> int:
    """See ``Product``; where rows follow each other, the sum's place in one is a remainder."""
    place = linear(load.indices[-1])
    moving = [atom for atom in place.terms if name in variables(atom)]
    if len(moving) != 1 or place.terms[moving[0]] != 1:
        return 0
    (atom,) = moving
    row = load.buffer.shape[-1]
    others = [place.constant, *(step for each, step in place.terms.items() if each != atom)]
    if isinstance(atom, Binary) and isinstance(atom.right, Constant):
        if atom.function is not BinaryFunction.MOD:
            return 0
        inner = linear(atom.left)
        rest = [step for each, step in inner.terms.items() if each != Variable(name)]
        if inner.coefficient(name) != 1 or any(
            name in variables(each) for each in inner.terms if each != Variable(name)
        ):
            return 0
        others += [int(atom.right.value), inner.constant, *rest]
    elif atom != Variable(name):
        return 0
    return gcd(row, *others)


def _reads(expr: Expr) -> bool:
    return any(loads(expr))
