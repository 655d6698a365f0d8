"""Groups without an anchor, whose loops are nests over the elements of results."""

from collections.abc import Mapping, Sequence
from math import prod

from ....dtypes import DType
from ....loops.expressions import Constant, Expr, Load, Select, Variable
from ....loops.ir import Block, For, Let, Store
from ....loops.traverse import expressions, fold, loads, own_expressions, variables, walk
from ...steps.schedule import Schedule, Step
from ...steps.tile import band
from .machine import Machine

__all__ = ["schedule_elements"]

TILE = 16
"""Elements along both dimensions: a cache line of 32-bit ones."""

NARROW = 4
"""Elements of rows of the result: channels of an image.  Vectors of them would be mostly empty."""

INTERLEAVE: Mapping[int, str] = {3: "interleave_uint8_16x3", 4: "interleave_uint8_16x4"}
"""Intrinsics that make rows of as many bytes of columns."""

SMALLEST = 1 << 10
"""Elements; fewer fit the cache anyway."""


def schedule_elements(schedule: Schedule, machine: Machine, given: Sequence[Step] = ()) -> Schedule:
    """Tiles where rows are read across, so that the cache lines of a tile are all used before
    others come; a vector where elements of a block come from one of several tensors.
    """
    body = schedule.function.body
    for stmt in body.statements if isinstance(body, Block) else (body,):
        nest = band(stmt) if isinstance(stmt, For) else []
        if len(nest) < 2:
            continue
        across = _across(nest)
        if across is not None and prod(map(_size, nest)) >= SMALLEST:
            schedule = _tiled(schedule, nest, across)
        elif _is_joined(nest[-1], machine):
            schedule = schedule.vectorize(nest[-1].variable)
    return schedule


def _tiled(schedule: Schedule, nest: Sequence[For], across: str) -> Schedule:
    """``across`` goes along the rows that are read, the innermost loop goes across them."""
    names, last = [loop.variable for loop in nest], nest[-1]
    if _size(last) > NARROW:
        schedule = schedule.tile(names[0], across, names[-1], TILE)
        for name in _made_of(schedule, f"{names[-1]}.i"):
            schedule = schedule.vectorize(name)
        return schedule
    size = next(_size(loop) for loop in nest if loop.variable == across)
    if size >= TILE and _is_row_of_bytes(nest, across):
        return schedule.interleave(across, INTERLEAVE[_size(last)])
    if names[-2] != across:
        others = [name for name in names if name not in (across, last.variable)]
        schedule = schedule.reorder(*others, across, last.variable)
    schedule = schedule.lanes(across, TILE)
    for name in _made_of(schedule, last.variable):
        schedule = schedule.unroll(name)
    return schedule


def _made_of(schedule: Schedule, name: str) -> list[str]:
    """The loops called ``name``, and those of its copies."""
    loops = [each.variable for each in walk(schedule.function.body) if isinstance(each, For)]
    return [each for each in loops if each == name or each.rpartition(".")[0] == name]


def _across(nest: Sequence[For]) -> str | None:
    """The loop that goes along the rows of what is read, if the innermost goes across them."""
    last = nest[-1].variable
    names = [loop.variable for loop in nest[:-1] if _size(loop) >= TILE]
    found: list[str] = []
    along: list[bool] = []

    def look(node: Expr, below: tuple[None, ...]) -> None:
        if not isinstance(node, Load) or not node.indices:
            return
        *rows, place = node.indices
        used = variables(place)
        if last in used:
            along.append(True)
        elif any(last in variables(each) for each in rows):
            found.extend(name for name in names if name in used)

    for stmt in walk(nest[-1].body):
        for expr in own_expressions(stmt):
            fold(expr, look)
    return found[0] if found and not along else None


def _is_row_of_bytes(nest: Sequence[For], across: str) -> bool:
    """True if the nest only stores rows of as many bytes as can be interleaved."""
    store = nest[-1].body
    while isinstance(store, Let):
        store = store.body
    places = tuple(map(Variable, (across, nest[-1].variable)))
    if not isinstance(store, Store) or _size(nest[-1]) not in INTERLEAVE:
        return False
    return store.buffer.dtype is DType.UINT8 and store.indices[-2:] == places


def _is_joined(loop: For, machine: Machine) -> bool:
    """True if its elements fill a vector and come from one of several tensors: left to itself, LLVM
    would choose for each element.
    """
    stores = [each for each in walk(loop) if isinstance(each, Store)]
    if {_size(loop) * each.buffer.dtype.bytes for each in stores} != {machine.vector_bytes}:
        return False
    return any(isinstance(node, Select) and _is_choice(node) for node in expressions(loop))


def _is_choice(node: Select) -> bool:
    """True if it is between loads, by indices."""
    sides = (node.chosen, node.other)
    return not any(loads(node.condition)) and all(any(loads(each)) for each in sides)


def _size(loop: For) -> int:
    assert isinstance(loop.extent, Constant), "shapes are constant"
    return int(loop.extent.value)
