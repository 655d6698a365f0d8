"""Loops that sort keys and the positions they come from, in work space.

Blocks are sorted by counting: the place of a key is the number of keys before it.  Then runs
that are neighbours are merged.  Of equal keys the one that comes first is first.
"""

from dataclasses import dataclass, field

from ..dtypes import DType
from ..loops.expressions import (
    Binary,
    BinaryFunction,
    Bitcast,
    Buffer,
    Cast,
    Constant,
    Expr,
    Select,
    Unary,
    UnaryFunction,
    Variable,
)
from ..loops.expressions import Scope as Memory
from ..loops.ir import Allocate, Let, Stmt, Store, Update, block, loops
from .operand import Scope, index

__all__ = ["Sorter", "key_type", "sort_key"]

BLOCK = 64

BITS = {1: DType.INT8, 2: DType.INT16, 4: DType.INT32, 8: DType.INT64}
"""Integers by their bytes."""


def key_type(dtype: DType) -> DType:
    """Type of the keys of elements."""
    if dtype == DType.BOOL:
        return DType.UINT8
    return BITS[dtype.bytes] if dtype.is_float else dtype


def sort_key(value: Expr, descending: bool) -> Expr:
    """An integer that orders as ``value`` does; NaN with the sign of its bits beyond infinity."""
    dtype = value.dtype
    kind = key_type(dtype)
    if dtype.is_float:
        bits = Bitcast(kind, value + 0.0)
        shift = Constant(8 * kind.bytes - 1, kind)
        others = Constant((1 << 8 * kind.bytes - 1) - 1, kind)
        flipped = Binary(BinaryFunction.SHR, bits, shift) & others
        key: Expr = Binary(BinaryFunction.XOR, bits, flipped)
    else:
        key = Cast(kind, value) if dtype == DType.BOOL else value
    return Unary(UnaryFunction.NOT, key) if descending else key


@dataclass(slots=True)
class Sorter:
    """Two buffers of keys and two of positions, with room for ``room``; the first ones are filled.

    dtype: of the keys, an integer.
    """

    room: int
    dtype: DType
    scope: Scope
    keys: list[Buffer] = field(default_factory=list)
    places: list[Buffer] = field(default_factory=list)

    def __post_init__(self) -> None:
        size = BLOCK
        while size < self.room:
            size *= 2
        for _ in range(2):
            self.keys.append(self._local("key", (size,), self.dtype))
            self.places.append(self._local("place", (size,), DType.INT64))

    def allocated(self, body: Stmt) -> Stmt:
        """``body`` with the buffers."""
        for buffer in (*self.keys, *self.places):
            body = Allocate(buffer, body)
        return body

    def put(self, at: Expr, key: Expr, place: Expr, target: int = 0) -> Stmt:
        """A key and its position into the buffers at ``at``."""
        return block(Store(self.keys[target], (at,), key), Store(self.places[target], (at,), place))

    def cleared(self, first: int) -> Stmt:
        """The first buffer of keys from ``first`` on: counting looks at whole blocks of it."""
        each, keys = Variable(self.scope.fresh("i")), self.keys[0]
        clear = Store(keys, (each + first,), Constant(0, self.dtype))
        end = -(-self.room // BLOCK) * BLOCK
        return loops(((each.name, end - first),), clear)

    def moved_to_first(self, source: int, count: Expr) -> Stmt:
        """The first ``count`` entries, to the first buffers."""
        if source == 0:
            return block()
        each = Variable(self.scope.fresh("i"))
        move = self.put(each, self.keys[source][(each,)], self.places[source][(each,)])
        return loops(((each.name, _least(count, index(self.room))),), move)

    def sort(self, count: Expr) -> tuple[Stmt, int]:
        """Sort the first ``count`` entries; the number of the buffers they are in then."""
        statements = [self._blocks(count)]
        width, source = BLOCK, 1
        while width < self.room:
            statements.append(self._merge(count, width, source))
            width, source = width * 2, 1 - source
        return block(*statements), source

    def _blocks(self, count: Expr) -> Stmt:
        """Each block from the first buffers, in order, to the second."""
        scope = self.scope
        counted = DType.INT64 if self.dtype.bytes == 8 else DType.INT32
        ranks = self._local("rank", (BLOCK,), counted)
        number, lane, other, each = (Variable(scope.fresh(s)) for s in ("block", "l", "j", "i"))
        acc = self._local("acc", (BLOCK,), counted)
        start = number * BLOCK
        mine, theirs = self.keys[0][(start + lane,)], self.keys[0][(start + other,)]
        before = (theirs < mine) | (Binary(BinaryFunction.EQ, theirs, mine) & (other < lane))
        clear = Store(acc, (lane,), Constant(0, counted))
        add = Update(acc, (lane,), BinaryFunction.ADD, Cast(counted, before))
        keep = Store(ranks, (lane,), acc[(lane,)])

        def lanes(body: Stmt) -> Stmt:
            return loops(((lane.name, BLOCK),), body)

        used = Variable(scope.fresh("used"))
        target = start + Cast(DType.INT64, ranks[(each,)])
        move = self.put(target, self.keys[0][(start + each,)], self.places[0][(start + each,)], 1)
        body = block(
            Allocate(
                acc, block(lanes(clear), loops(((other.name, used),), lanes(add)), lanes(keep))
            ),
            loops(((each.name, used),), move),
        )
        body = Let(used, _least(index(BLOCK), count - start), body)
        return Allocate(ranks, loops(((number.name, self._pieces(count, BLOCK)),), body))

    def _pieces(self, count: Expr, size: int) -> Expr:
        """Blocks, or pairs of runs, of ``size`` that have one of ``count`` entries."""
        pieces = Binary(BinaryFunction.FLOORDIV, count + (size - 1), index(size))
        return _least(pieces, index(-(-self.room // size)))

    def _merge(self, count: Expr, width: int, source: int) -> Stmt:
        """Every pair of neighbouring runs of ``width``, to the other buffers."""
        scope = self.scope
        keys, places = self.keys[source], self.places[source]
        run, start, middle, end, step, place = (
            Variable(scope.fresh(s)) for s in ("run", "start", "middle", "end", "i", "place")
        )
        left, right = (self._local(stem, (), DType.INT64) for stem in ("left", "right"))
        last = count - 1
        a, b = (keys[(_least(at[()], last),)] for at in (left, right))
        chosen = Variable(scope.fresh("chosen"), DType.BOOL)
        first = Select(right[()] < end, a <= b, Constant(True, DType.BOOL))
        take_left = (left[()] < middle) & first
        one = Cast(DType.INT64, chosen)
        move = block(
            self.put(start + step, keys[(place,)], places[(place,)], 1 - source),
            Store(left, (), left[()] + one),
            Store(right, (), right[()] + (index(1) - one)),
        )
        entries = _least(index(2 * width), count - start)
        walk = Let(chosen, take_left, Let(place, Select(chosen, left[()], right[()]), move))
        body = block(
            Store(left, (), start), Store(right, (), middle), loops(((step.name, entries),), walk)
        )
        body = Let(end, _least(middle + width, count), body)
        body = Let(middle, _least(start + width, count), body)
        body = Let(start, run * (2 * width), body)
        pairs = self._pieces(count, 2 * width)
        return Allocate(left, Allocate(right, loops(((run.name, pairs),), body)))

    def _local(self, stem: str, shape: tuple[int, ...], dtype: DType) -> Buffer:
        return Buffer(self.scope.fresh(stem), shape, dtype, Memory.LOCAL)


def _least(a: Expr, b: Expr) -> Expr:
    return Binary(BinaryFunction.MIN, a, b)
