"""The last instructions of a program cut in two, so that little is left to do after its last LOAD.

    LOAD w 0..63, GEMM, VECTOR, STORE   ->  LOAD w 0..47, LOAD w 48..63,
                                            GEMM, VECTOR, STORE, GEMM, VECTOR, STORE

The second of each works on the last blocks of channels alone, and the first while their weights are
loaded.
"""

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

from dovetail.isa.config import HardwareConfig
from dovetail.isa.footprint import dram_word_bytes, is_pair, is_window, with_bank_masks
from dovetail.isa.frozen import replace
from dovetail.isa.instructions import Gemm, Instruction, Load, Store, Vector
from dovetail.isa.memories import Memory

__all__ = ["cut_ends"]

BLOCKS = (1, 2, 4, 8)
"""Blocks of channels that the second instructions work on."""

Cut = tuple[list[Instruction], list[int]]
"""A program, and the place in the old one of what each of its instructions is, or is part of."""


def cut_ends(program: Sequence[Instruction], config: HardwareConfig) -> Iterator[Cut]:
    """Programs that do what ``program`` does, whose ends are in two parts; none where it ends in
    other instructions.
    """
    loads = [place for place, each in enumerate(program) if isinstance(each, Load)]
    end = len(program) - 3
    match program[end:]:
        case [Gemm() as gemm, Vector() as vector, Store() as store] if loads:
            pass
        case _:
            return
    load, place = program[loads[-1]], loads[-1]
    assert isinstance(load, Load)
    if load.memory is not Memory.WGT or is_pair(vector) or is_window(vector):
        return
    for blocks in BLOCKS:
        level, top = _last_level(gemm.extent), _last_level(vector.extent)
        words = blocks * prod(gemm.extent[:level])
        results = blocks * prod(vector.extent[vector.reduction_levels : top])
        if top < vector.reduction_levels or not (
            gemm.extent[level] == vector.extent[top] > blocks
            and load.count_x > words
            and store.count_x > results
            and load.count_y * load.count_z * store.count_y * store.count_z == 1
        ):
            continue
        pairs = [
            _gemm(gemm, level, blocks),
            _vector(vector, top, blocks),
            _moved(store, results, config),
        ]
        parts = [with_bank_masks(pair[half], config) for half in (0, 1) for pair in pairs]
        yield (
            [*program[:place], *_moved(load, words, config), *program[place + 1 : end], *parts],
            [*range(place + 1), *range(place, len(program)), *range(end, len(program))],
        )


def _last_level(extent: Sequence[int]) -> int:
    """The last level of several iterations, or the first."""
    return max((level for level, count in enumerate(extent) if count > 1), default=0)


def _moved(
    move: Load | Store, words: int, config: HardwareConfig
) -> tuple[Instruction, Instruction]:
    first = move.count_x - words
    behind: dict[str, Any] = {
        "sram_address": move.sram_address + first,
        "dram_address": move.dram_address + first * dram_word_bytes(move, config),
    }
    return replace(move, count_x=first), replace(move, count_x=words, **behind)


def _gemm(gemm: Gemm, level: int, blocks: int) -> tuple[Gemm, Gemm]:
    first = gemm.extent[level] - blocks
    behind = {
        f"{name}_address": getattr(gemm, f"{name}_address")
        + first * getattr(gemm, f"{name}_stride")[level]
        for name in ("act", "wgt", "acc")
    }
    one, other = (_of(gemm.extent, level, count) for count in (first, blocks))
    return replace(gemm, extent=one), replace(gemm, extent=other, **behind)


def _vector(vector: Vector, level: int, blocks: int) -> tuple[Vector, Vector]:
    first = vector.extent[level] - blocks
    behind = {
        f"{name}_address": getattr(vector, f"{name}_address")
        + first * getattr(vector, f"{name}_stride")[level - outer]
        for name, outer in (("source", 0), ("tap", 0), ("destination", 1), ("par", 1))
    }
    one, other = (_of(vector.extent, level, count) for count in (first, blocks))
    return replace(vector, extent=one), replace(vector, extent=other, **behind)


def _of(extent: Sequence[int], level: int, count: int) -> tuple[int, ...]:
    return (*extent[:level], count, *extent[level + 1 :])
