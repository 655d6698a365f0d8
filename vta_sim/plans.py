"""Facts about every instruction that its timing depends on, as columns."""

from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.config import HardwareConfig
from dovetail.isa.encoding import SIDES
from dovetail.isa.formats import Format
from dovetail.isa.instructions import Finish, Fold, Gemm, Load, Row, Store, Vector
from dovetail.isa.latency import issue_cycles
from dovetail.isa.memories import Memory, Unit
from dovetail.isa.table import InstructionTable

from .native.language import Int64s, Record

__all__ = ["MOST_BURSTS", "UNITS", "Plans", "make_plans"]

UNITS = len(Unit)
MOST_BURSTS = 1 << 24
"""Bursts of one instruction, at most; the simulator refuses more when they begin."""
MOST_ISSUES = 1 << 60
"""Issues counted of one instruction, at most: no run lasts that long."""

ACC_SHIFT, WRITE_SHIFT, PAR_SHIFT = 16, 8, 20
Columns = NDArray[np.int64]


class Plans(Record):
    """One element an instruction, except for ``order``.

    units: -1 for an illegal word. waits, posts: masks of units. claim: every bank the instruction
    holds, one bit each. reads, writes: banks a VECTOR reads and writes, one bit each, to compare
    with one another. issues: cycles in which a GEMM or VECTOR issues.

    Of LOAD and STORE: address, rows, planes, stride_y, stride_z: of DRAM; row_bytes: of each row;
    before: bytes of a row's first beat before its first write; step: bytes from write to write;
    write_bytes: of a write, a word or a beat of one; cells: of a padded block, 0 where nothing is
    padding; bursts: at most; alone: whether no other of its unit may be in flight with it.

    order: the instructions of each unit, unit after unit; those of unit ``u`` begin at
    ``first[u]``.
    """

    units: Int64s
    waits: Int64s
    posts: Int64s
    claim: Int64s
    reads: Int64s
    writes: Int64s
    issues: Int64s
    address: Int64s
    rows: Int64s
    planes: Int64s
    stride_y: Int64s
    stride_z: Int64s
    row_bytes: Int64s
    write_bytes: Int64s
    before: Int64s
    step: Int64s
    cells: Int64s
    bursts: Int64s
    alone: Int64s
    order: Int64s
    first: Int64s


def make_plans(table: InstructionTable, config: HardwareConfig) -> Plans:
    """The plans of a program."""
    names = [name for name in Plans.__annotations__ if name not in ("units", "order", "first")]
    columns = {name: np.zeros(len(table.units), np.int64) for name in names}
    queues = [np.flatnonzero(table.units == int(unit)) for unit in Unit]
    layouts = Load.format, Gemm.format, Vector.format, Store.format
    fields = [table.fields(each, mine) for each, mine in zip(layouts, queues, strict=True)]
    for unit in (Unit.LOAD, Unit.STORE):
        _transfers(columns, fields[unit], layouts[unit], queues[unit], config)
    cycles = issue_cycles(config)
    for unit, layout in ((Unit.GEMM, Gemm.format), (Unit.VECTOR, Vector.format)):
        mine = queues[unit]
        extent = table.levels(layout, "extent", mine)
        large = extent.prod(axis=1, dtype=np.float64) > MOST_ISSUES
        columns["issues"][mine] = cycles[unit] * np.where(large, MOST_ISSUES, extent.prod(axis=1))
    _banks(columns, fields, queues)
    for mine, field in zip(queues, fields, strict=True):
        columns["waits"][mine] = field["wait"]
        columns["posts"][mine] = field["post"]
    lengths = [len(queue) for queue in queues]
    first = np.cumsum([0, *lengths[:-1]])
    return Plans(units=table.units, order=np.concatenate(queues), first=first, **columns)


def _transfers(
    columns: dict[str, Columns],
    field: Mapping[str, Columns],
    layout: Format,
    mine: NDArray[np.intp],
    config: HardwareConfig,
) -> None:
    """Fill in what is of LOAD or STORE."""
    size = np.full(len(mine), config.word_bytes(Memory.ACT))
    if layout is Load.format:
        sizes, short, wide = _of_memories(config)
        size = np.where(field["nibbles"], short[field["memory"]], sizes[field["memory"]])
        if Memory.PAR in config.short_memories:
            to_par = (field["nibbles"] > 0) & (field["memory"] == Memory.PAR.code)
            one = config.short_bytes(Memory.PAR, same=True)
            size = np.where(to_par & (field["gap"] > 0), one, size)
        rows = field["pad_y_before"] + field["count_y"] + field["pad_y_after"]
        across = field["pad_x_before"] + field["count_x"] + field["pad_x_after"]
        cells = field["count_z"] * rows * across
        words = field["count_z"] * field["count_y"] * field["count_x"]
        columns["cells"][mine] = np.where(cells == words, 0, cells)
        columns["alone"][mine] = (field["step"] > 0) | (not config.two_loads)
    length, before, step, write = size * field["count_x"], np.zeros_like(size), size, size
    if layout is Load.format:
        # Of TAB, with nibbles, a beat has several words, which are written together.
        by_beats = wide[field["memory"]] | (field["nibbles"] > 0)
        write = np.where(by_beats, config.bus_bytes, size)
        # Windows of a row: from its first beat to its last.
        windowed, bus = field["step"] > 0, config.bus_bytes
        step = np.where(windowed, field["step"], write)
        before = np.where(windowed, field["dram_address"] % bus, 0)
        span = before + (field["count_x"] - 1) * step + size
        beats = np.where(field["count_x"] > 0, -(-span // bus), 0)
        length = np.where(windowed, beats * bus, length)
    each = np.where(length > 0, length // config.burst_bytes + 2, 0)
    columns["write_bytes"][mine] = write
    columns["row_bytes"][mine] = length
    columns["before"][mine] = before
    columns["step"][mine] = step
    columns["address"][mine] = field["dram_address"] - before
    columns["rows"][mine] = field["count_y"]
    columns["planes"][mine] = field["count_z"]
    columns["stride_y"][mine] = field["dram_stride_y"]
    columns["stride_z"][mine] = field["dram_stride_z"]
    columns["bursts"][mine] = field["count_y"] * field["count_z"] * each


@cache
def _of_memories(config: HardwareConfig) -> tuple[Columns, Columns, NDArray[np.bool_]]:
    """Bytes in DRAM of a word of each memory, and of one in a short form where there is one, and
    whether words are written beat by beat; by code.
    """
    sizes = [config.word_bytes(each) for each in Memory]
    short = config.short_memories
    shorter = [
        config.short_bytes(each) if each in short else config.word_bytes(each) for each in Memory
    ]
    return (
        np.array(sizes),
        np.array(shorter),
        np.array([each in config.by_beats for each in Memory]),
    )


def _banks(
    columns: dict[str, Columns],
    fields: Sequence[Mapping[str, Columns]],
    queues: Sequence[NDArray[np.intp]],
) -> None:
    """Fill in ``claim``, ``reads`` and ``writes``."""
    load, gemm, vector, store = queues
    of_load, of_gemm, of_vector, of_store = fields
    claim = columns["claim"]
    claim[store] = of_store["act_read_banks"]
    claim[load] = of_load["act_write_banks"] << WRITE_SHIFT
    claim[load] |= of_load["acc_banks"] << ACC_SHIFT
    to_par = of_load["memory"] == Memory.PAR.code
    claim[load] |= to_par.astype(np.int64) << PAR_SHIFT
    claim[gemm] = of_gemm["act_read_banks"]
    claim[gemm] |= of_gemm["acc_banks"] << ACC_SHIFT
    act_read = of_vector["act_read_banks"]
    act_write = of_vector["act_write_banks"]
    acc = of_vector["acc_banks"]
    claim[vector] = act_read | act_write << WRITE_SHIFT | acc << ACC_SHIFT
    # Side by side as ACT and ACC, whether read or written.
    side = SIDES.index(Memory.ACC)
    from_acc = of_vector["source"] == side
    to_acc = of_vector["destination"] == side
    row = of_vector["row"]
    requantized = of_vector["finish"] == Finish.REQUANTIZE
    largest = (row == Row.LESS) & (of_vector["fold"] == Fold.MAX)
    reads_par = np.where(row == Row.NONE, requantized, ~largest).astype(np.int64)
    writes_par = (row != Row.NONE).astype(np.int64)
    claim[vector] |= writes_par << PAR_SHIFT
    columns["reads"][vector] = act_read | np.where(from_acc, acc, 0) << WRITE_SHIFT
    columns["reads"][vector] |= reads_par << PAR_SHIFT
    columns["writes"][vector] = act_write | np.where(to_acc, acc, 0) << WRITE_SHIFT
    columns["writes"][vector] |= writes_par << PAR_SHIFT
