"""Accesses to one buffer sent to another, and copies between the two."""

from collections.abc import Callable, Sequence

from dovetail.isa.frozen import replace

from ...dtypes import DType
from ...loops.bounds import Bounds
from ...loops.expressions import Binary, BinaryFunction, Buffer, Constant, Expr, Load, Variable
from ...loops.ir import If, Invoke, Region, Stmt, Store, Update, loops
from ...loops.regions import Box
from ...loops.rewrite import map_expr, map_statement

__all__ = ["box_loops", "copy", "inside", "offsets", "redirect"]

Indices = tuple[Expr, ...]


def redirect(
    stmt: Stmt,
    name: str,
    new: Buffer,
    index: Callable[[Indices], Indices],
    shape: Callable[[tuple[int, ...]], tuple[int, ...]] = lambda shape: shape,
) -> Stmt:
    """``stmt`` with every access to buffer ``name`` made one to ``new``.

    ``index`` gives the new indices from the old, ``shape`` the new shape of a region.
    """
    memo: dict[int, tuple[Expr, Expr]] = {}

    def load(node: Expr) -> Expr:
        if isinstance(node, Load) and node.buffer.name == name:
            return Load(new, index(node.indices))
        return node

    def region(each: Region) -> Region:
        if each.buffer.name != name:
            return each
        return Region(new, index(each.start), shape(each.shape))

    def write(node: Stmt) -> Stmt:
        match node:
            case Store(buffer=buffer) | Update(buffer=buffer) if buffer.name == name:
                return replace(node, buffer=new, indices=index(node.indices))
            case Invoke(operands=regions):
                return replace(node, operands=tuple(map(region, regions)))
            case _:
                return node

    return map_statement(stmt, lambda expr: map_expr(expr, load, memo), write)


def offsets(box: Box) -> Callable[[Indices], Indices]:
    """Indices of a buffer, made relative to the start of a box of it."""
    starts = tuple(start.to_expr() for start in box.start)
    return lambda indices: tuple(each - start for each, start in zip(indices, starts, strict=True))


def box_loops(box: Box, names: Sequence[str]) -> tuple[tuple[tuple[str, int], ...], Indices]:
    """Loops over a box, except for dimensions of one element, and the index inside it."""
    around = tuple((name, size) for name, size in zip(names, box.shape, strict=True) if size != 1)
    at = tuple(
        Variable(name) if size != 1 else Constant(0, DType.INT64)
        for name, size in zip(names, box.shape, strict=True)
    )
    return around, at


def copy(
    source: Buffer, target: Buffer, box: Box, names: Sequence[str], outer: Bounds, *, out: bool
) -> Stmt:
    """A nest that copies a box of one of the buffers from or to all of the other.

    The box is of ``source``, or with ``out`` of ``target``; elements outside that buffer are left
    alone.
    """
    around, at = box_loops(box, names)
    place = tuple(start.to_expr() + each for start, each in zip(box.start, at, strict=True))
    large = target if out else source
    store = (
        Store(target, place, Load(source, at)) if out else Store(target, at, Load(source, place))
    )
    return loops(around, guarded(store, box, large, place, outer))


def guarded(stmt: Stmt, box: Box, buffer: Buffer, place: Indices, outer: Bounds) -> Stmt:
    """``stmt``, done only where ``place``, which runs over the box, is in the buffer."""
    condition = inside(box, buffer.shape, place, outer)
    return stmt if condition is None else If(condition, stmt)


def inside(box: Box, shape: tuple[int, ...], place: Indices, outer: Bounds) -> Expr | None:
    """The condition that ``place``, anywhere in the box, is in a ``shape``; None: always."""
    condition: Expr | None = None
    for start, size, extent, index in zip(box.start, box.shape, shape, place, strict=True):
        tests: list[Expr] = []
        if outer.lower(start) < 0:
            tests.append(Constant(0, DType.INT64) <= index)
        if outer.upper(start) + size > extent:
            tests.append(index < extent)
        for test in tests:
            both = condition is not None
            condition = Binary(BinaryFunction.AND, condition, test) if both else test  # type: ignore[arg-type]
    return condition
