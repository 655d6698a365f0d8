"""The data's side of a run: what instructions do, one after the other, in machine code."""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.finishes import OwnFinish
from dovetail.isa.instructions import Store
from dovetail.isa.memories import Unit
from dovetail.isa.state import MachineState
from dovetail.isa.table import InstructionTable

from .finish import own_finish
from .matrix import gemm, order_levels
from .memories import Memories, memories_of
from .native.find import find_library
from .native.language import Int64s, Record, row_of
from .native.library import Library, Substitute
from .transfers import load, read_words, write_rows
from .vector import vector

__all__ = ["replay", "replay_steps"]

LOAD, GEMM, VECTOR = int(Unit.LOAD), int(Unit.GEMM), int(Unit.VECTOR)


class Replay(Record):
    """A program, what is to be done of it, and the memories it works on.

    count, steps: ``2 * index`` of an instruction; plus 1 for the writing half of a STORE.
    units, rows, columns: the instruction table.
    """

    count: int
    steps: Int64s
    units: Int64s
    rows: Int64s
    columns: int
    memories: Memories


def replay_steps(r: Replay) -> int:
    """Do all steps."""
    for place in range(r.count):
        index = r.steps[place] >> 1
        unit, at = r.units[index], index * r.columns
        if unit == GEMM:
            gemm(row_of(r.rows, at), r.memories)
        elif unit == VECTOR:
            vector(row_of(r.rows, at), r.memories)
        elif unit == LOAD:
            load(row_of(r.rows, at), r.memories)
        elif r.steps[place] & 1:
            write_rows(row_of(r.rows, at), r.memories)
        else:
            read_words(row_of(r.rows, at), r.memories)
    return 0


@cache
def _library(lanes: int, finish: OwnFinish | None) -> Library:
    if finish is None:
        return find_library([replay_steps], lanes)
    own = Substitute(own_finish, finish.native, finish.digest)
    return find_library([replay_steps], lanes, own)


def replay(
    state: MachineState, table: InstructionTable, steps: NDArray[np.int64]
) -> NDArray[np.uint8]:
    """Change ``state`` by ``steps``, int64[k] (see ``Replay``), of the program ``table``.

    Each instruction does what ``semantics.execute`` does. Returns what the last STORE has read.
    Raises SimulationError for an array of ``state`` that is not contiguous.
    """
    rows = InstructionTable(table.units, table.rows.copy())
    order_levels(rows, state.config)
    stores = steps[table.units[steps >> 1] == int(Unit.STORE)] >> 1
    x, y, z = (table.field(Store.format, f"count_{axis}", stores) for axis in "xyz")
    stored = np.empty(int((x * y * z).max(initial=0)) * state.config.block, np.uint8)
    work = Replay(
        count=len(steps),
        steps=steps,
        units=rows.units,
        rows=rows.rows,
        columns=rows.rows.shape[1],
        memories=memories_of(state, stored),
    )
    _library(state.config.block, state.config.own_finish).call(replay_steps, work)
    return stored
