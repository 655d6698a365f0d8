"""More iterations than there are, so that tiles divide them."""

from collections.abc import Mapping

from dovetail.isa.frozen import frozen, replace

from ...errors import ScheduleError
from ...loops.expressions import (
    Binary,
    BinaryFunction,
    Cast,
    Constant,
    Expr,
    Load,
    Select,
    Variable,
    as_index,
)
from ...loops.intrinsic import Intrinsic
from ...loops.ir import Allocate, Block, For, Function, If, Let, LoopKind, Stmt, Store, Update
from ...loops.rewrite import substitute, with_bodies
from ...loops.traverse import bodies, variables
from .site import find_loop

__all__ = ["Widen"]


@frozen
class Widen:
    """Run a loop to the next multiple of ``factor``.  Iterations too many change nothing.

        for i in 5: alloc t: t = x[i]; y[i] = t
        ->   for i in 8: alloc t: t = x[min(i, 4)]; if i < 5: y[i] = t

        for k in 5: t add= x[k] * w[k]
        ->   for k in 8: t add= (x[k] if k < 5 else 0) * (w[k] if k < 5 else 0)

    The first where all that the loop adds to is allocated in it: iterations too many repeat the
    last, for what is allocated in them.  The second where the loop is one sum of products of
    elements.
    """

    loop: str
    factor: int

    def apply(self, function: Function, intrinsics: Mapping[str, Intrinsic]) -> Function:
        """The function after it.  Raises ScheduleError when it does not apply."""
        what = f"widen of {self.loop} to multiples of {self.factor}"
        site, loop = find_loop(function, self.loop)
        if not isinstance(loop.extent, Constant) or loop.kind is not LoopKind.SERIAL:
            raise ScheduleError(f"{what}: required a serial loop of a constant extent")
        extent = int(loop.extent.value)
        if self.factor < 1 or extent < 1:
            raise ScheduleError(f"{what}: it has {extent} iterations; required one or more")
        index = Variable(self.loop)
        inside = index < extent
        if isinstance(loop.body, Update):
            body: Stmt = self._summed(loop.body, inside, what)
        else:
            kept = self._kept(loop.body, inside, frozenset(), what)
            last = Binary(BinaryFunction.MIN, index, as_index(extent - 1))
            body = _clamped(kept, self.loop, last, inside)
        whole = -(-extent // self.factor) * self.factor
        return site.simplified(replace(loop, extent=as_index(whole), body=body))

    def _summed(self, update: Update, inside: Expr, what: str) -> Stmt:
        value = update.value
        product = isinstance(value, Binary) and value.function is BinaryFunction.MUL
        if update.function is not BinaryFunction.ADD or not product:
            raise ScheduleError(f"{what}: what is summed is not a product")
        if self.loop in {name for each in update.indices for name in variables(each)}:
            raise ScheduleError(f"{what}: each iteration has a sum of its own")
        assert isinstance(value, Binary)
        factors = [self._factor(each, inside, what) for each in (value.left, value.right)]
        return replace(update, value=replace(value, left=factors[0], right=factors[1]))

    def _factor(self, expr: Expr, inside: Expr, what: str) -> Expr:
        """0 instead of an element beyond."""
        match expr:
            case Cast(operand=operand):
                return replace(expr, operand=self._factor(operand, inside, what))
            case Load(dtype=dtype) | Select(dtype=dtype) if _is_element(expr):
                return Select(inside, expr, Constant(0, dtype))
            case _:
                raise ScheduleError(f"{what}: a factor is not an element of a buffer")

    def _kept(self, stmt: Stmt, inside: Expr, own: frozenset[str], what: str) -> Stmt:
        """Stores to what is not allocated here only inside."""
        match stmt:
            case Allocate(buffer=buffer, body=body):
                return replace(stmt, body=self._kept(body, inside, own | {buffer.name}, what))
            case Store(buffer=buffer) | Update(buffer=buffer) if buffer.name in own:
                return stmt
            case Store():
                return If(inside, stmt)
            case Let(body=body) if not _writes(body, own):
                return If(inside, stmt)
            case For() | Block() | Let() | If(otherwise=None):
                below = tuple(self._kept(each, inside, own, what) for each in bodies(stmt))
                return with_bodies(stmt, below)
            case _:
                raise ScheduleError(f"{what}: iterations too many would change {type(stmt)}")


def _writes(stmt: Stmt, own: frozenset[str]) -> bool:
    """True if the statement writes a buffer of ``own``, or adds to any buffer."""
    if isinstance(stmt, Store | Update):
        return stmt.buffer.name in own or isinstance(stmt, Update)
    return any(_writes(each, own) for each in bodies(stmt))


def _clamped(stmt: Stmt, name: str, last: Expr, inside: Expr) -> Stmt:
    """The statement with ``last`` for the variable, but where a guard says that it is inside."""
    if isinstance(stmt, If) and stmt.condition is inside:
        return stmt
    below = tuple(_clamped(each, name, last, inside) for each in bodies(stmt))
    if below:
        empty = with_bodies(stmt, tuple(Block(()) for _ in below))
        return with_bodies(substitute(empty, {name: last}), below)
    return substitute(stmt, {name: last})


def _is_element(expr: Load | Select) -> bool:
    """True if the expression is an element, or a choice between one and a constant."""
    return isinstance(expr, Load) or isinstance(expr.other, Constant)
