"""Computations in the loops of ``define/attention.py``, by the numbers of rows and columns."""

import math
from collections.abc import Mapping

from dovetail.isa.frozen import frozen

from ...dtypes import DType
from ...errors import ScheduleError
from ...loops.bounds import Bounds
from ...loops.canonicalize import canonicalize_statement
from ...loops.expressions import (
    Binary,
    BinaryFunction,
    Cast,
    Constant,
    Expr,
    Load,
    MultiplyAdd,
    Select,
    Variable,
    as_index,
)
from ...loops.ir import For, Function, If, Let, Stmt, Store, Update
from ...loops.rewrite import map_expr, map_statement, substitute, substitute_expr
from ...loops.simplify import Simplifier
from ...loops.traverse import loads, variables, walk
from .site import Site

__all__ = ["COLUMN", "DEPTH", "MEAN", "ROW", "SUM", "VALUE", "Parts", "parts_of"]

F32 = DType.FLOAT32
LOG2_E = math.log2(math.e)
ROW, COLUMN, DEPTH, VALUE = map(Variable, ("row", "column", "depth", "value"))
"""Stand for the numbers of a row, a column, a summed element, an element of the result."""
SUM, MEAN = Variable("score.sum", F32), Variable("mean", F32)
"""Stand for a sum of products of queries and keys, and for an element of the result."""
PLACES = frozenset(each.name for each in (ROW, COLUMN, DEPTH, VALUE, SUM, MEAN))


@frozen
class Parts:
    """query, key, value: elements, by ``ROW``, ``COLUMN``, ``DEPTH`` and ``VALUE``.

    score: by ``ROW``, ``COLUMN``, ``SUM`` and the names of ``masks``, which are elements that all
    exist.  factor: of scores, as exponents of 2.  finish: stores ``MEAN``.  sizes: of rows and
    columns that exist, of the depth and of values, by their names.
    """

    query: Load
    key: Load
    value: Load
    score: Expr
    masks: tuple[tuple[Variable, Load], ...]
    factor: float
    finish: Stmt
    sizes: Mapping[str, int]

    @property
    def rows(self) -> int:
        """Rows that exist."""
        return self.sizes[ROW.name]

    @property
    def columns(self) -> int:
        """Columns that exist."""
        return self.sizes[COLUMN.name]

    @property
    def depth(self) -> int:
        """Elements that a score is summed over."""
        return self.sizes[DEPTH.name]

    @property
    def values(self) -> int:
        """Elements of a row of the result."""
        return self.sizes[VALUE.name]


def parts_of(function: Function, site: Site) -> Parts:
    """Parts of a function's computation; site: of its loop over blocks of rows.

    Raises ScheduleError where loops are not as they are defined, or compute something else.
    """
    return _Finder(function, site).parts()


class _Finder:
    def __init__(self, function: Function, site: Site) -> None:
        self.bounds = site.bounds
        self.around = {stmt.variable for stmt, _ in site.above if isinstance(stmt, For)}
        self.loops = {
            each.variable: each
            for each in walk(function.body)
            if isinstance(each, For) and isinstance(each.extent, Constant)
        }
        missing = {"rows0", "columns0", "r2", "c0", "k0", "r7", "e2", "c4", "r8", "e3"}
        missing -= set(self.loops)
        if missing:
            raise ScheduleError(f"attend: found no loop {min(missing)}")
        self.height, self.width = self.size("r2"), self.size("c0")

    def size(self, name: str) -> int:
        extent = self.loops[name].extent
        assert isinstance(extent, Constant)
        return int(extent.value)

    def parts(self) -> Parts:
        finish = self.loops["e3"].body
        rows, columns = self.size("rows0") * self.height, self.size("columns0") * self.width
        if isinstance(finish, If):
            rows, finish = _limit(finish.condition), finish.then
        score = self.scored()
        if isinstance(score, Select) and score.other == Constant(float("-inf"), F32):
            outside = self.placed(score.condition, self.inside("r2", "c0"), {})
            if COLUMN.name in variables(outside) and ROW.name not in variables(outside):
                columns, score = _limit(score.condition), score.chosen
        sizes = {
            ROW.name: rows,
            COLUMN.name: columns,
            DEPTH.name: self.size("k0"),
            VALUE.name: self.size("e2"),
        }
        where = self.inside("r2", "c0") | {"k0": DEPTH}
        query, key = (_element(self.placed(each, where, sizes)) for each in self.factors())
        if COLUMN.name in variables(query):
            query, key = key, query
        where = self.inside("r7", "c4") | {"e2": VALUE}
        value = _element(self.placed(self.weighed(), where, sizes))
        _require(query, (ROW, DEPTH), (COLUMN,))
        _require(key, (COLUMN, DEPTH), (ROW,))
        _require(value, (COLUMN, VALUE), (ROW,))
        score, factor = _scaled(self.placed(score, self.inside("r2", "c0"), sizes))
        score, masks = self.masked(score, sizes)
        return Parts(query, key, value, score, masks, factor, self.finished(finish, sizes), sizes)

    def scored(self) -> Expr:
        """A score, of its sum."""
        found = [
            each.value
            for each in walk(self.loops["c0"].body)
            if isinstance(each, Store) and each.buffer.name == "score0"
        ]
        if len(found) != 1:
            raise ScheduleError("attend: the loop c0 does not store a score")

        def exchange(node: Expr) -> Expr:
            return SUM if isinstance(node, Load) and node.buffer.name == "sum0" else node

        return map_expr(found[0], exchange)

    def factors(self) -> tuple[Expr, Expr]:
        """The factors of the products that a score is the sum of."""
        return self.added("k0", "sum0")

    def weighed(self) -> Expr:
        """The factor of the weights."""
        found = [each for each in self.added("c4", "acc0") if "e2" in variables(each)]
        if len(found) != 1:
            raise ScheduleError("attend: the loop c4 does not weigh values")
        return found[0]

    def added(self, name: str, buffer: str) -> tuple[Expr, Expr]:
        """The factors of the products that a loop adds up."""
        match self.loops[name].body:
            case Update(
                buffer=sums,
                function=BinaryFunction.ADD,
                value=Binary(function=BinaryFunction.MUL, left=left, right=right),
            ) if sums.name == buffer:
                return left, right
        raise ScheduleError(f"attend: the loop {name} does not add products to {buffer}")

    def inside(self, row: str, column: str) -> dict[str, Expr]:
        """Loops in a block, by the numbers of the row and the column."""
        return {
            row: ROW - Variable("rows0") * self.height,
            column: COLUMN - Variable("columns0") * self.width,
        }

    def placed(self, expr: Expr, where: Mapping[str, Expr], sizes: Mapping[str, int]) -> Expr:
        """An expression by the numbers of a row and a column that exist.

        Raises ScheduleError where it depends on loops otherwise.
        """
        found = Simplifier(self.bounded(sizes)).expr(substitute_expr(expr, where))
        self.require_places(variables(found))
        return found

    def bounded(self, sizes: Mapping[str, int]) -> Bounds:
        """Facts that hold where there are so many rows, columns, ..."""
        bounds = self.bounds
        for name, size in sizes.items():
            bounds = bounds.loop(name, as_index(size))
        return bounds

    def require_places(self, names: set[str]) -> None:
        """Raise ScheduleError for other names than those of outer loops and of ``PLACES``."""
        others = names - self.around - PLACES
        if others:
            raise ScheduleError(f"attend: something depends on {', '.join(sorted(others))}")

    def masked(
        self, score: Expr, sizes: Mapping[str, int]
    ) -> tuple[Expr, tuple[tuple[Variable, Load], ...]]:
        """A score with names for the elements that it reads; and the elements.

        So threads do not part where one is chosen.  Raises ScheduleError unless all exist, whatever
        is chosen.
        """
        bounds = self.bounded(sizes)
        names: dict[Load, Variable] = {}
        for load in loads(score):
            for index, size in zip(load.indices, load.buffer.shape, strict=True):
                low, high = bounds.of(index)
                if low < 0 or high >= size or any(loads(index)):
                    raise ScheduleError(f"attend: {load.buffer.name} is not read everywhere")
            names.setdefault(load, Variable(f"mask.{len(names)}", load.dtype))

        def exchange(node: Expr) -> Expr:
            return names.get(node, node) if isinstance(node, Load) else node

        return map_expr(score, exchange), tuple((name, load) for load, name in names.items())

    def finished(self, stmt: Stmt, sizes: Mapping[str, int]) -> Stmt:
        """The statement that stores an element, ``MEAN``."""

        def exchange(node: Expr) -> Expr:
            match node:
                case Binary(function=BinaryFunction.DIV, left=Load() as a, right=Load() as b):
                    if (a.buffer.name, b.buffer.name) == ("acc0", "total0"):
                        return MEAN
            return node

        stmt = map_statement(stmt, lambda expr: map_expr(expr, exchange))
        where = self.inside("r8", "c0") | {"e3": VALUE}
        found = canonicalize_statement(substitute(stmt, where), self.bounded(sizes))
        own = {each.variable.name for each in walk(found) if isinstance(each, Let)}
        self.require_places(variables(found) - own)
        if {each.buffer.name for each in loads(found)} & {"acc0", "total0"}:
            raise ScheduleError("attend: the result is not the quotient of acc0 and total0")
        return found


def _limit(condition: Expr) -> int:
    """N of ``place < N``.  Raises ScheduleError for another condition."""
    match condition:
        case Binary(function=BinaryFunction.LT, right=Constant(value=value)):
            return int(value)
    raise ScheduleError("attend: found another guard than that of the last row or column")


def _element(expr: Expr) -> Load:
    """The element that a factor is.  Raises ScheduleError for another one."""
    match expr:
        case Cast(dtype=DType.FLOAT32, operand=Load() as load) if not any(
            any(loads(each)) for each in load.indices
        ):
            return load
    raise ScheduleError("attend: a factor is not an element of a tensor of 16 bits")


def _require(load: Load, used: tuple[Variable, ...], unused: tuple[Variable, ...]) -> None:
    """Raise ScheduleError unless the place depends on some numbers, and not on others."""
    found = variables(load)
    if not {each.name for each in used} <= found or {each.name for each in unused} & found:
        raise ScheduleError(f"attend: found another place in {load.buffer.name}")


def _scaled(score: Expr) -> tuple[Expr, float]:
    """A score except for a factor above 0, and that factor of its exponent of 2.

    Products with a sum are rounded once with what is added to them.
    """
    match score:
        case Binary(function=BinaryFunction.MUL, left=left, right=Constant(value=scale)) if (
            left == SUM and scale > 0
        ):
            return SUM, LOG2_E * float(scale)

    def fused(node: Expr) -> Expr:
        match node:
            case Binary(
                function=BinaryFunction.ADD,
                left=Binary(function=BinaryFunction.MUL, left=left, right=right),
                right=addend,
            ) if left == SUM:
                return MultiplyAdd(left, right, addend)
        return node

    return map_expr(score, fused), LOG2_E
