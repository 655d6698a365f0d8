"""Writing a border row by row."""

from collections.abc import Mapping

from dovetail.isa.frozen import frozen

from ...dtypes import DType
from ...errors import ScheduleError
from ...loops.affine import linear
from ...loops.expressions import Buffer, Constant, Expr, Variable
from ...loops.intrinsic import Intrinsic
from ...loops.ir import Block, For, Function, If, LoopKind, Stmt, Store, block, loops
from .lanes import constant_extent
from .site import Site, find_loop, loop_names, rename_loops
from .tile import band

__all__ = ["Frame", "spans"]

Intrinsics = Mapping[str, Intrinsic]
SERIAL = LoopKind.SERIAL
Spans = tuple[tuple[int, int], ...]
"""First index and the one after the last, in each dimension."""


@frozen
class Frame:
    """Write the four sides of a border in one loop over the rows, which threads can share.

        for c: for j in N: y[c, 0, j] = v;  for c: for j in N: y[c, M - 1, j] = v
        for c: for i in M - 2: y[c, i + 1, 0] = v;  for c: for i in M - 2: y[c, i + 1, N - 1] = v
        ->  for c: for i in M: if i < 1 | M - 2 < i: for j in N: y[c, i, j] = v
                               else: y[c, i, 0] = v; y[c, i, N - 1] = v

    ``loop`` is the outermost loop of the first side.  The sides follow each other: rows at the top,
    rows at the bottom, the left and the right end of those between; one or more may be missing.
    All are stores of one constant, and whole in all other dimensions.
    """

    loop: str

    def apply(self, function: Function, intrinsics: Intrinsics) -> Function:
        """The function after it.  Raises ScheduleError when it does not apply."""
        what = f"frame from {self.loop}"
        site, _ = find_loop(function, self.loop)
        parent = site.above[-1][0] if site.above else None
        statements = list(parent.statements) if isinstance(parent, Block) else [site.stmt]
        first = site.above[-1][1] if isinstance(parent, Block) else 0
        store, found, last = _sides(statements, first, what)
        buffer = store.buffer
        axis = next(
            (n for n, size in enumerate(buffer.shape) if any(s[n] != (0, size) for s in found)), 0
        )
        above, below, left, right = _margins(buffer, axis, found, what)
        names = [f"{self.loop}.{n}" for n in range(len(buffer.shape))]
        where: list[Expr] = [
            Variable(name) if size > 1 else _index(0)
            for name, size in zip(names, buffer.shape, strict=True)
        ]

        def fill(start: int, end: int) -> Stmt:
            column = Variable(names[axis + 1])
            own = [*where[: axis + 1], column + start if start else column, *where[axis + 2 :]]
            inner = [(names[n], buffer.shape[n]) for n in range(axis + 2, len(names))]
            nest = ((names[axis + 1], end - start), *(each for each in inner if each[1] > 1))
            return loops(nest, Store(buffer, tuple(own), store.value))

        rows, columns = buffer.shape[axis : axis + 2]
        ends = [
            fill(*each) for each in ((0, left), (columns - right, columns)) if each[0] < each[1]
        ]
        outside = (where[axis] < above) | (_index(rows - below - 1) < where[axis])
        body = If(outside, fill(0, columns), block(*ends))
        outer = [(names[n], buffer.shape[n]) for n in range(axis + 1) if buffer.shape[n] > 1]
        whole = loops(tuple(outer), body)
        new = block(*statements[:first], whole, *statements[last:])
        place = site.up(1) if isinstance(parent, Block) else site
        return _renamed(place, new)


def spans(stmt: Stmt) -> tuple[Store, Spans] | None:
    """The store of a constant that is all there is in loops, and the elements it writes."""
    nest = band(stmt) if isinstance(stmt, For) else []
    store = nest[-1].body if nest else stmt
    if not isinstance(store, Store) or not isinstance(store.value, Constant):
        return None
    if any(not isinstance(each.extent, Constant) or each.kind is not SERIAL for each in nest):
        return None
    extents = {loop.variable: constant_extent(loop, "border") for loop in nest}
    found = []
    for form in map(linear, store.indices):
        names = [name for name in extents if form.coefficient(name)]
        if form.value is None and not (len(form.terms) == len(names) == 1):
            return None
        if any(form.coefficient(name) != 1 for name in names):
            return None
        size = extents.pop(names[0]) if names else 1
        found.append((form.constant, form.constant + size))
    return store, tuple(found)


def _sides(statements: list[Stmt], first: int, what: str) -> tuple[Store, list[Spans], int]:
    """The store of the first side, what each side writes, and the number of what follows them."""
    store: Store | None = None
    found: list[Spans] = []
    for stmt in statements[first:]:
        side = spans(stmt)
        if side is None or (
            store and (side[0].buffer, side[0].value) != (store.buffer, store.value)
        ):
            break
        store = side[0]
        found.append(side[1])
    if store is None:
        raise ScheduleError(f"{what}: it does not store a constant")
    return store, found, first + len(found)


def _margins(buffer: Buffer, axis: int, found: list[Spans], what: str) -> tuple[int, int, int, int]:
    """The sizes of the border at the top, the bottom, the left and the right."""
    shape = tuple((0, size) for size in buffer.shape)
    if axis + 1 < len(shape):
        rows, columns = buffer.shape[axis : axis + 2]
        across = [each[axis] for each in found if each[axis + 1] == (0, columns)]
        along = [each[axis + 1] for each in found if each[axis + 1] != (0, columns)]
        (above, below), (left, right) = _ends(across, rows), _ends(along, columns)
        sides = (
            ((0, above), (0, columns)),
            ((rows - below, rows), (0, columns)),
            ((above, rows - below), (0, left)),
            ((above, rows - below), (columns - right, columns)),
        )
        wanted = [
            (*shape[:axis], down, over, *shape[axis + 2 :])
            for down, over in sides
            if down[0] < down[1] and over[0] < over[1]
        ]
        if found == wanted:
            return above, below, left, right
    raise ScheduleError(f"{what}: the stores are not the four sides of a border")


def _ends(found: list[tuple[int, int]], size: int) -> tuple[int, int]:
    """Sizes of the parts of ``size`` that begin at 0, and that end at the end."""
    first = max((end for start, end in found if start == 0), default=0)
    return first, size - min((start for start, _ in found if start > 0), default=size)


def _renamed(site: Site, new: Stmt) -> Function:
    others = set(loop_names(site.function.body)) - set(loop_names(site.stmt))
    return site.replaced(rename_loops(new, others))


def _index(value: int) -> Constant:
    return Constant(value, DType.INT64)
