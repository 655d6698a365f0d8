"""Computing values where they are read."""

from collections.abc import Mapping

from dovetail.isa.frozen import frozen, replace

from ...errors import ScheduleError
from ...loops.accesses import Access, accesses
from ...loops.bounds import Bounds
from ...loops.expressions import Expr, Load, Variable
from ...loops.intrinsic import Intrinsic
from ...loops.ir import Allocate, Block, For, Function, Invoke, Let, Stmt, Store, block
from ...loops.rewrite import map_expr, map_statement, substitute_expr
from ...loops.traverse import bodies, loads, variables, walk
from .site import Site, find, find_allocation

__all__ = ["Inline"]

Intrinsics = Mapping[str, Intrinsic]


@frozen
class Inline:
    """Compute the elements of an allocated buffer where they are read.

        alloc t: for i: t[i] = f(x[i]);  for j: y[j] = t[j + 1]   ->   for j: y[j] = f(x[j + 1])

    One store, whose indices are different loop variables (or the only index of a dimension), writes
    the buffer, and what it reads is not written after it.
    """

    buffer: str

    def apply(self, function: Function, intrinsics: Intrinsics) -> Function:
        """The function after it.  Raises ScheduleError when it does not apply."""
        what = f"inline of {self.buffer}"
        site, allocation = find_allocation(function, self.buffer)
        buffer = allocation.buffer
        writes = [
            stmt
            for stmt in walk(allocation.body)
            if not isinstance(stmt, Allocate)
            and any(a.writes and a.buffer.name == buffer.name for a in _own(stmt, intrinsics))
        ]
        if len(writes) != 1 or not isinstance(writes[0], Store):
            raise ScheduleError(
                f"{what}: required one store that writes it, found {len(writes)} writes"
            )
        store = writes[0]
        inner = find(replace(function, body=allocation.body), lambda stmt: stmt is store)
        assert inner is not None
        value, indices = _with_lets(store, inner)
        names = [index.name if isinstance(index, Variable) else None for index in indices]
        bound = {stmt.variable for stmt, _ in inner.above if isinstance(stmt, For)}
        for index, size in zip(indices, buffer.shape, strict=True):
            if not (isinstance(index, Variable) and index.name in bound) and size != 1:
                raise ScheduleError(
                    f"{what}: it is written at an index that is not a loop variable"
                )
        given = [name for name in names if name is not None]
        if len(set(given)) != len(given):
            raise ScheduleError(f"{what}: it is written at one variable in two dimensions")
        used = variables(value) & (bound - set(given))
        if used:
            raise ScheduleError(
                f"{what}: its value depends on {min(used)}, which is not an index of it"
            )
        self._check_sources(value, allocation, inner, intrinsics, what)
        top = inner.replaced(Block(())).body
        memo: dict[int, tuple[Expr, Expr]] = {}

        def compute(node: Expr) -> Expr:
            if not isinstance(node, Load) or node.buffer.name != buffer.name:
                return node
            chosen = {
                name: index
                for name, index in zip(names, node.indices, strict=True)
                if name is not None
            }
            return substitute_expr(value, chosen)

        body = map_statement(top, lambda expr: map_expr(expr, compute, memo))
        return site.simplified(body)

    def _check_sources(
        self, value: Expr, allocation: Allocate, inner: Site, intrinsics: Intrinsics, what: str
    ) -> None:
        read = {load.buffer.name for load in loads(value)}
        if self.buffer in read:
            raise ScheduleError(f"{what}: its value depends on it")
        statements = _statements(allocation.body)
        top = inner.above[0][0] if inner.above else allocation.body
        number = inner.above[0][1] if isinstance(top, Block) else 0
        for access in accesses(block(*statements[number:]), Bounds(), intrinsics):
            if access.writes and access.buffer.name in read:
                raise ScheduleError(
                    f"{what}: {access.buffer.name}, from which it is computed, is written later"
                )
            used = access.reads and access.buffer.name == self.buffer
            if used and isinstance(access.statement, Invoke):
                raise ScheduleError(f"{what}: an intrinsic reads it")


def _own(stmt: Stmt, intrinsics: Intrinsics) -> list[Access]:
    """The accesses of a statement that has no bodies."""
    return accesses(stmt, Bounds(), intrinsics) if not bodies(stmt) else []


def _statements(body: Stmt) -> tuple[Stmt, ...]:
    return body.statements if isinstance(body, Block) else (body,)


def _with_lets(store: Store, inner: Site) -> tuple[Expr, tuple[Expr, ...]]:
    """The value and indices of a store with what lets around it stand for put in."""
    value, indices = store.value, store.indices
    for outer, _ in reversed(inner.above):
        if isinstance(outer, Let):
            known = {outer.variable.name: outer.value}
            value = substitute_expr(value, known)
            indices = tuple(substitute_expr(index, known) for index in indices)
    return value, indices
