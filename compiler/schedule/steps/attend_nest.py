"""The loops of the step ``attend``: warps, their threads, and what each has in registers.

Each thread has parts of 2 x ``tiles`` rows (``attend_fragments.py``).
"""

from collections.abc import Callable, Collection

import numpy as np

from dovetail.isa.frozen import frozen

from ...dtypes import DType
from ...errors import ScheduleError
from ...loops.expressions import (
    Binary,
    BinaryFunction,
    Buffer,
    Constant,
    Expr,
    Load,
    MultiplyAdd,
    Scope,
    Select,
    Variable,
    as_index,
)
from ...loops.ir import (
    Allocate,
    For,
    If,
    Invoke,
    Let,
    LoopKind,
    Region,
    Stmt,
    Store,
    Update,
    block,
    loops,
)
from ...loops.rewrite import substitute, substitute_expr
from .attend_fragments import (
    F32,
    FRAGMENT,
    GROUP,
    HALF,
    QUAD,
    SIDE,
    Indices,
    column_of,
    fragment_at,
    pair_at,
    power_of_two,
    product_of,
    zeroed,
)
from .attend_parts import COLUMN, DEPTH, MEAN, ROW, SUM, VALUE, Parts
from .attend_tiles import Tile, require_rows, tile_of
from .site import fresh

__all__ = ["Shape", "nest_of"]

LOWEST = float(np.finfo(np.float32).min)
STAYS = LOWEST / 2
"""A score below this comes from a mask.  Such scores are equal, or differ by more than 2^100, and
the product of one with log2(e) may not be finite.
"""


@frozen
class Shape:
    """tiles: of 16 rows, of a warp.  warps: of a block.  columns: at a time."""

    tiles: int
    warps: int
    columns: int

    @property
    def rows(self) -> int:
        """Rows of a block."""
        return SIDE * self.tiles * self.warps

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return GROUP * QUAD * self.warps


def nest_of(parts: Parts, shape: Shape, kind: LoopKind, taken: Collection[str]) -> Stmt:
    """The loop over blocks of rows, and all in it; taken: names of buffers.

    Raises ScheduleError for operands and sizes that it cannot be for.
    """
    return _Writer(parts, shape, set(taken)).write(kind)


class _Writer:
    def __init__(self, parts: Parts, shape: Shape, taken: set[str]) -> None:
        self.parts, self.shape, self.taken = parts, shape, taken
        self.dtype = parts.query.dtype
        sides = parts.depth, parts.values, shape.columns
        if any(each % SIDE for each in sides):
            raise ScheduleError(f"attend: sizes {sides}; required multiples of {SIDE}")
        if {parts.key.dtype, parts.value.dtype} != {self.dtype} or self.dtype.bytes != 2:
            raise ScheduleError("attend: required operands of one type of 16 bits")
        require_rows(parts.query, DEPTH, HALF)
        self.deep, self.wide, self.long = (each // SIDE for each in sides)
        tiles = shape.tiles
        self.query = self.registers("query", tiles, self.deep, *FRAGMENT, dtype=self.dtype)
        self.acc = self.registers("acc", tiles, self.wide, *FRAGMENT)
        self.score = self.registers("score", tiles, self.long, *FRAGMENT)
        self.weight = self.registers("weight", tiles, self.long, *FRAGMENT, dtype=self.dtype)
        self.best, self.total, self.part, self.high, self.rate, self.shift, self.factor = (
            self.registers(stem, tiles, HALF)
            for stem in ("best", "total", "part", "high", "rate", "shift", "factor")
        )
        self.power = self.registers("power", HALF)
        self.row, self.column = Variable("rows0"), Variable("columns0")
        self.key = self.tile(parts.key, DEPTH, parts.depth)
        self.value = self.tile(parts.value, VALUE, parts.values)

    def tile(self, load: Load, other: Variable, size: int) -> Tile:
        """A part of an operand; keys and values may be one tensor, of which there are two."""
        name = self.new(f"{load.buffer.name}.tile")
        return tile_of(name, load, other, size, self.shape.columns, self.parts.columns)

    def new(self, name: str) -> str:
        """The name of a further buffer."""
        name = fresh(name, self.taken)
        self.taken.add(name)
        return name

    def registers(self, stem: str, *shape: int, dtype: DType = F32) -> Buffer:
        """Each thread's own array."""
        name = self.new(f"{stem}.own")
        return Buffer(name, (self.shape.warps, GROUP, QUAD, *shape), dtype, Scope.REGISTER)

    def write(self, kind: LoopKind) -> Stmt:
        parts, shape = self.parts, self.shape
        rows = self.part, self.high, self.rate, self.shift, self.factor
        step = block(
            self.key.copies(self.column, parts.columns, shape.threads),
            self.value.copies(self.column, parts.columns, shape.threads),
            _allocated(self.step(), self.score, self.weight, *rows, self.power),
        )
        step = _allocated(step, self.key.buffer, self.value.buffer)
        count = -(-parts.columns // shape.columns)
        body = block(
            self.threads("start", self.start),
            For(self.column.name, as_index(count), LoopKind.SERIAL, step),
            _allocated(self.end(), self.part),
        )
        body = _allocated(body, self.query, self.acc, self.best, self.total)
        return For(self.row.name, as_index(-(-parts.rows // shape.rows)), kind, body)

    # Loops.

    def threads(self, name: str, body: Callable[[Indices], Stmt]) -> Stmt:
        """Over all threads of the block: body gets the warp, the row in it, the row's thread."""
        group, quad = Variable(f"{name}.group"), Variable(f"{name}.quad")
        sizes = (group.name, GROUP), (quad.name, QUAD)
        return self.each_warp(
            name, lambda warp: loops(sizes, body((warp, group, quad)), LoopKind.THREAD)
        )

    def each_warp(self, name: str, body: Callable[[Expr], Stmt]) -> Stmt:
        """Over the warps of the block."""
        warp = Variable(f"{name}.warp") if self.shape.warps > 1 else as_index(0)
        extent = as_index(self.shape.warps)
        return For(f"{name}.warp", extent, LoopKind.THREAD, body(warp))

    def each_row(self, name: str, body: Callable[[Indices], Stmt]) -> Stmt:
        """Over a thread's rows: tiles and halves of them."""
        return _written_out(name, (self.shape.tiles, HALF), lambda *at: body(at))

    # Statements.

    def start(self, own: Indices) -> Stmt:
        """Nothing so far; the queries of the thread's rows."""

        def empty(at: Indices) -> Stmt:
            lowest = Store(self.best, (*own, *at), Constant(LOWEST, F32))
            return block(lowest, Store(self.total, (*own, *at), Constant(0.0, F32)))

        def read(tile: Expr, part: Expr, half: Expr, i: Expr) -> Stmt:
            load = self.parts.query
            row, _ = self.existing(self.row_of(own, tile, i), as_index(0))
            where = {ROW.name: row, DEPTH.name: column_of(part, half, own[2], 0)}
            start = tuple(substitute_expr(each, where) for each in load.indices)
            target = (*own, tile, part, half, i, as_index(0))
            regions = pair_at(load.buffer, start), pair_at(self.query, target)
            return Invoke(f"pair_{load.dtype}", regions)

        return block(
            self.each_row("start.row", empty),
            _written_out("start.acc", self.acc.shape[3:], lambda *at: zeroed(self.acc, own, at)),
            _written_out("start.query", self.query.shape[3:-1], read),
        )

    def step(self) -> Stmt:
        """Some columns of scores, and what they change."""
        tiles = self.shape.tiles

        def none(own: Indices) -> Stmt:
            return _written_out(
                "none.score", self.score.shape[3:], lambda *at: zeroed(self.score, own, at)
            )

        def score(warp: Expr) -> Stmt:
            def one(part: Expr, column: Expr, tile: Expr) -> Stmt:
                factor = fragment_at(self.query, warp, tile, part)
                sums = fragment_at(self.score, warp, tile, column)
                return product_of(factor, self.key, (column, part), sums, by_rows=True)

            return _written_out("score.product", (self.deep, self.long, tiles), one)

        def mean(warp: Expr) -> Stmt:
            def one(column: Expr, element: Expr, tile: Expr) -> Stmt:
                factor = fragment_at(self.weight, warp, tile, column)
                sums = fragment_at(self.acc, warp, tile, element)
                return product_of(factor, self.value, (column, element), sums, by_rows=False)

            return _written_out("mean.product", (self.long, self.wide, tiles), one)

        return block(
            self.threads("none", none),
            self.each_warp("score", score),
            self.threads("high", self.highest),
            self.of_rows("row_maximum", self.part, self.high),
            self.threads("weigh", self.weigh),
            self.each_warp("mean", mean),
        )

    def highest(self, own: Indices) -> Stmt:
        """The maximum so far, or of the thread's scores in each row."""

        def before(at: Indices) -> Stmt:
            return Store(self.part, (*own, *at), self.best[(*own, *at)])

        def one(tile: Expr, column: Expr, half: Expr, i: Expr, j: Expr) -> Stmt:
            place = (*own, tile, column, half, i, j)
            row = (*own, tile, i)
            more = Update(self.part, row, BinaryFunction.MAX, self.score[place])
            score, where = self.scored(own, tile, column, half, i, j)
            if score == SUM:
                return more
            # Elements have names first: threads part where a choice reads memory.
            stmt: Stmt = Let(SUM, self.score[place], block(Store(self.score, place, score), more))
            for name, load in reversed(self.parts.masks):
                indices = tuple(substitute_expr(each, where) for each in load.indices)
                stmt = Let(name, Load(load.buffer, indices), stmt)
            return stmt

        return block(
            self.each_row("high.row", before), _written_out("high.score", self.score.shape[3:], one)
        )

    def scored(
        self, own: Indices, tile: Expr, column: Expr, half: Expr, i: Expr, j: Expr
    ) -> tuple[Expr, dict[str, Expr]]:
        """A score of ``SUM``, minus infinity where there is no such column; and the row and column
        that masks are read of.
        """
        most, size = self.shape.columns, self.parts.columns
        place = self.column * most + column_of(column, half, own[2], j)
        inside = self.existing(self.row_of(own, tile, i), place)
        where = {ROW.name: inside[0], COLUMN.name: inside[1]}
        score = substitute_expr(self.parts.score, where)
        if size % most:
            score = Select(place < size, score, Constant(float("-inf"), F32))
        return score, where

    def existing(self, row: Expr, column: Expr) -> tuple[Expr, Expr]:
        """A row and a column, or the last ones where there are no such."""
        parts, shape = self.parts, self.shape
        if parts.rows % shape.rows:
            row = Binary(BinaryFunction.MIN, row, as_index(parts.rows - 1))
        if parts.columns % shape.columns:
            column = Binary(BinaryFunction.MIN, column, as_index(parts.columns - 1))
        return row, column

    def row_of(self, own: Indices, tile: Expr, half: Expr) -> Expr:
        """The number of a thread's row."""
        first = self.row * self.shape.rows + own[0] * (SIDE * self.shape.tiles)
        return first + tile * SIDE + half * GROUP + own[1]

    def of_rows(self, name: str, part: Buffer, whole: Buffer) -> Stmt:
        """A result of each row, of what its threads have."""

        def one(warp: Expr, at: Indices) -> Stmt:
            start, shape = (warp, as_index(0), as_index(0), *at), (1, GROUP, QUAD, 1, 1)
            return Invoke(name, tuple(Region(each, start, shape) for each in (part, whole)))

        return self.each_warp(
            name, lambda warp: self.each_row(f"{name}.row", lambda at: one(warp, at))
        )

    def weigh(self, own: Indices) -> Stmt:
        """Weights and their sums; earlier results are scaled to the new maximum."""
        factor = Constant(self.parts.factor, F32)
        plain = self.parts.score == SUM

        def shrink(at: Indices) -> Stmt:
            place = (*own, *at)
            high, best, rate = self.high[place], self.best[place], self.rate[place]
            # Where no score of a row stays, weights are 0 or 1 whatever the factor is.
            none = Select(high < STAYS, Constant(1.0, F32), factor)
            return block(
                Store(self.shift, place, (best - high) * factor),
                power_of_two(self.shift, place, self.factor, place),
                Store(self.best, place, high),
                Store(self.rate, place, factor if plain else none),
                Store(self.shift, place, high * (rate * -1.0)),
                Store(self.total, place, self.total[place] * self.factor[place]),
            )

        def smaller(tile: Expr, element: Expr, half: Expr, i: Expr, j: Expr) -> Stmt:
            place = (*own, tile, element, half, i, j)
            return Store(self.acc, place, self.acc[place] * self.factor[(*own, tile, i)])

        def two(tile: Expr, column: Expr, half: Expr, i: Expr) -> Stmt:
            first, row = (*own, tile, column, half, i), (*own, tile, i)

            def one(j: Expr) -> Stmt:
                score, shift = self.score[(*first, j)], self.shift[row]
                exponent = MultiplyAdd(score, self.rate[row], shift)
                return block(
                    Store(self.score, (*first, j), exponent),
                    power_of_two(self.score, (*first, j), self.power, (*own, j)),
                    Update(self.total, row, BinaryFunction.ADD, self.power[(*own, j)]),
                )

            begin = as_index(0)
            regions = pair_at(self.power, (*own, begin)), pair_at(self.weight, (*first, begin))
            items = _written_out("weigh.item", (HALF,), one)
            return block(items, Invoke(f"narrow_{self.dtype}", regions))

        return block(
            self.each_row("weigh.row", shrink),
            _written_out("weigh.acc", self.acc.shape[3:], smaller),
            _written_out("weigh.score", self.score.shape[3:-1], two),
        )

    def end(self) -> Stmt:
        """The results, by the sums of rows."""
        size = self.parts.rows

        def finish(own: Indices) -> Stmt:
            def inverse(at: Indices) -> Stmt:
                value = Binary(BinaryFunction.DIV, Constant(1.0, F32), self.part[(*own, *at)])
                return Store(self.part, (*own, *at), value)

            def one(tile: Expr, element: Expr, half: Expr, i: Expr, j: Expr) -> Stmt:
                row = self.row_of(own, tile, i)
                mean = self.acc[(*own, tile, element, half, i, j)] * self.part[(*own, tile, i)]
                place = column_of(element, half, own[2], j)
                where = {ROW.name: row, VALUE.name: place, MEAN.name: mean}
                stored = substitute(self.parts.finish, where)
                return If(row < size, stored) if size % self.shape.rows else stored

            return block(
                self.each_row("end.row", inverse), _written_out("end.acc", self.acc.shape[3:], one)
            )

        return block(self.of_rows("row_sum", self.total, self.part), self.threads("end", finish))


def _allocated(body: Stmt, *buffers: Buffer) -> Stmt:
    for each in reversed(buffers):
        body = Allocate(each, body)
    return body


def _written_out(name: str, sizes: tuple[int, ...], body: Callable[..., Stmt]) -> Stmt:
    """Unrolled loops of so many iterations."""
    names = [f"{name}.{number}" for number in range(len(sizes))]
    nest = tuple(zip(names, sizes, strict=True))
    return loops(nest, body(*map(Variable, names)), LoopKind.UNROLLED)
