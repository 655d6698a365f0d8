"""Tiles of products on tensor cores, and which of them an estimate finds fastest."""

from collections.abc import Iterator
from functools import lru_cache

from .choice import Choice
from .estimate import Tiling, Work, microseconds
from .warps import PADDING_BYTES

__all__ = ["STEP_BYTES", "best_choice", "least_microseconds", "registers_of"]

STEP_BYTES = 128
"""Bytes of each row of operands that warpgroups multiply in a step."""
PART_BYTES = 32
"""Bytes of a row that an instruction of a warp multiplies."""
PARTS = (4, 2, 1)
WARP, GROUP = 32, 128
"""Threads of a warp, and of a warpgroup."""
TILES = (
    *((128, 256, 2, 4), (128, 128, 2, 2), (128, 128, 2, 4), (128, 64, 2, 2), (64, 128, 2, 2)),
    *((64, 64, 2, 2), (64, 32, 2, 2), (32, 64, 2, 2), (32, 128, 1, 4), (32, 32, 2, 2)),
    *((32, 32, 1, 2), (16, 128, 1, 4), (16, 64, 1, 4), (16, 32, 1, 2), (16, 32, 1, 1)),
)
"""Tiles of instructions of warps: rows, columns, warps in the direction of each."""
GROUP_TILES = (
    *((256, 192, 2), (128, 256, 2), (256, 128, 2), (128, 192, 2), (128, 128, 2), (128, 64, 2)),
    *((64, 256, 1), (64, 128, 1), (64, 64, 1), (64, 32, 1)),
)
"""Tiles of those of warpgroups: rows, columns, warpgroups one above the other."""
OTHER_REGISTERS, GROUP_REGISTERS = 80, 40
"""Registers of a thread, for all but sums and operands; about what ``ptxas`` takes."""
LEAST_SHARED, HOPPER_SHARED = 98 << 10, 226 << 10
"""Bytes that a block may have on every GPU from sm_80 on, and on sm_90a."""


def best_choice(work: Work, hopper: bool, grouped: bool) -> Choice:
    """The fastest; hopper: for sm_90a; grouped: warpgroups may multiply."""
    return _best(work, hopper, grouped)[1]


def least_microseconds(work: Work, hopper: bool) -> float:
    """Time of the fastest tile."""
    return _best(work, hopper, hopper)[0]


@lru_cache(maxsize=1024)
def _best(work: Work, hopper: bool, grouped: bool) -> tuple[float, Choice]:
    every = [*_of_warps(work, HOPPER_SHARED if hopper else LEAST_SHARED)]
    if grouped:
        every += _of_groups(work)
    times = [microseconds(own, tiling) for _, own, tiling in every]
    least = min(range(len(every)), key=times.__getitem__)
    return times[least], every[least][0]


def _of_warps(work: Work, most: int) -> Iterator[tuple[Choice, Work, Tiling]]:
    for rows, columns, row_warps, column_warps in TILES:
        threads = WARP * row_warps * column_warps
        for parts in PARTS:
            size = parts * PART_BYTES
            step = size // work.element_bytes
            whole = work.whole * work.element_bytes % PADDING_BYTES == 0 and work.depth > step
            whole = whole and work.whole > 0
            if not whole and parts != 2:
                continue
            for buffers in (3, 2) if whole else (1,):
                shared = buffers * (rows + columns) * (size + PADDING_BYTES)
                if shared <= most:
                    choice = Choice(
                        rows=rows,
                        columns=columns,
                        warps=row_warps,
                        column_warps=column_warps,
                        parts=parts,
                        buffers=max(buffers, 2),
                    )
                    registers = registers_of(choice)
                    own = work if whole else work.by_elements
                    yield (
                        choice,
                        own,
                        Tiling(rows, columns, threads, size, registers, shared, buffers - 1),
                    )


def _of_groups(work: Work) -> Iterator[tuple[Choice, Work, Tiling]]:
    step = STEP_BYTES // work.element_bytes
    if not work.whole or work.whole % step or work.depth % step:
        return
    for rows, columns, groups in GROUP_TILES:
        threads = GROUP * groups
        buffers = 4 if work.depth > step else 2
        shared = buffers * (rows + columns) * STEP_BYTES
        choice = Choice(rows=rows, columns=columns, groups=groups, parts=1, buffers=buffers)
        registers = registers_of(choice)
        yield (
            choice,
            work,
            Tiling(rows, columns, threads, STEP_BYTES, registers, shared, buffers // 2, True),
        )


def registers_of(choice: Choice) -> int:
    """About the number of registers of a thread: its sums, a part of operands, and what else it
    needs.
    """
    size = choice.rows * choice.columns
    if choice.groups:
        return size // (GROUP * choice.groups) + GROUP_REGISTERS
    warps = choice.warps, choice.column_warps or choice.warps
    operands = choice.rows // warps[0] + choice.columns // warps[1]
    return min(255, size // (WARP * warps[0] * warps[1]) + operands // 4 + OTHER_REGISTERS)
