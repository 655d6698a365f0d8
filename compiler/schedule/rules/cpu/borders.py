"""Borders of a constant around results, in vectors."""

from ....loops.expressions import Constant
from ....loops.ir import Block, For, LoopKind, Store
from ....loops.traverse import variables, walk
from ...steps.frame import Spans, spans
from ...steps.schedule import Schedule
from ...steps.threads import IMAGE_RANK
from .machine import Machine

__all__ = ["schedule_borders"]


def schedule_borders(schedule: Schedule, machine: Machine) -> Schedule:
    """Loops along rows of a border become vectors; threads share an image's border by rows."""
    body = schedule.function.body
    sides: dict[str, list[tuple[str, Store, Spans]]] = {}
    for stmt in body.statements if isinstance(body, Block) else ():
        found = spans(stmt)
        if found is not None and isinstance(stmt, For) and _is_part(*found):
            sides.setdefault(found[0].buffer.name, []).append((stmt.variable, *found))
    if machine.threads > 1:
        for each in sides.values():
            if _is_image(each):
                schedule = schedule.frame(each[0][0])
    for stmt in walk(schedule.function.body) if sides else ():
        if isinstance(stmt, For) and stmt.kind is LoopKind.SERIAL and isinstance(stmt.body, Store):
            store = stmt.body
            along = store.indices and stmt.variable in variables(store.indices[-1])
            if along and store.buffer.name in sides and isinstance(store.value, Constant):
                schedule = schedule.vectorize(stmt.variable)
    return schedule


def _is_part(store: Store, where: Spans) -> bool:
    return where != tuple((0, size) for size in store.buffer.shape)


def _is_image(sides: list[tuple[str, Store, Spans]]) -> bool:
    """True if the border is around the rows and columns of several blocks of channels."""
    shape = sides[0][1].buffer.shape
    if len(shape) != IMAGE_RANK or shape[0] != 1 or shape[1] == 1 or min(shape[2:]) == 1:
        return False
    return all(where[axis] == (0, shape[axis]) for _, _, where in sides for axis in (0, 1, 4))
