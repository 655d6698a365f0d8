"""Choice of vector loops that become vector code, and of their number of lanes."""

from collections.abc import Iterator
from typing import assert_never

from ....loops.expressions import Expr, Load, Variable
from ....loops.ir import Allocate, Block, For, If, Invoke, Let, LoopKind, Stmt, Store, Update, While
from ....loops.traverse import expressions

__all__ = ["chunks", "vectorizable"]

_REGISTERS = 4
"""Vector registers that one value of a vector loop may take."""


def vectorizable(loop: For) -> bool:
    """True if the body can run in lanes: every inner loop's extent is the same in all lanes.

    A loop that holds other vector or parallel loops, an intrinsic or a ``While`` runs serially.
    """
    return _uniform(loop.body, {loop.variable}, set())


def _uniform(stmt: Stmt, names: set[str], private: set[str]) -> bool:
    """names: variables that differ between lanes.  private: buffers each lane has of its own."""
    match stmt:
        case Block():
            return all(_uniform(inner, names, private) for inner in stmt.statements)
        case For():
            if stmt.kind in (LoopKind.VECTOR, LoopKind.PARALLEL):
                return False
            if _varies(stmt.extent, names, private):
                return False
            return _uniform(stmt.body, names - {stmt.variable}, private)
        case While() | Invoke():
            return False
        case If():
            arms = [stmt.then] if stmt.otherwise is None else [stmt.then, stmt.otherwise]
            return all(_uniform(arm, names, private) for arm in arms)
        case Allocate():
            return _uniform(stmt.body, names, private | {stmt.buffer.name})
        case Let():
            name = stmt.variable.name
            inner = names | {name} if _varies(stmt.value, names, private) else names - {name}
            return _uniform(stmt.body, inner, private)
        case Store() | Update():
            return True
        case _:
            assert_never(stmt)


def _varies(expr: Expr, names: set[str], private: set[str]) -> bool:
    return any(
        node.name in names
        if isinstance(node, Variable)
        else isinstance(node, Load) and node.buffer.name in private
        for node in expressions(expr)
    )


def chunks(loop: For, extent: int, vector_bytes: int) -> Iterator[tuple[int, int, int]]:
    """(first iteration, lanes, how many such chunks follow one another).

    The last chunk has as many lanes as are left, be they a power of two or not.
    """
    natural = max(vector_bytes // _widest(loop.body), 1)
    if 0 < extent <= natural * _REGISTERS and extent & (extent - 1) == 0:
        yield 0, extent, 1
        return
    count, rest = divmod(extent, natural)
    if count > 0:
        yield 0, natural, count
    if rest > 0:
        yield count * natural, rest, 1


def _widest(stmt: Stmt) -> int:
    """Bytes of the widest elements that are written."""
    match stmt:
        case Block():
            return max((_widest(inner) for inner in stmt.statements), default=1)
        case For() | While() | Allocate() | Let():
            return _widest(stmt.body)
        case If():
            other = 1 if stmt.otherwise is None else _widest(stmt.otherwise)
            return max(_widest(stmt.then), other)
        case Store() | Update():
            return stmt.value.dtype.bytes
        case Invoke():
            return 1
        case _:
            assert_never(stmt)
