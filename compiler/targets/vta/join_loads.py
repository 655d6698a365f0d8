"""LOADs of constants joined into longer ones, for programs whose pace LOAD sets.

Each LOAD waits for the memory before its first word comes.  Constants that follow each other in
their scratchpad may come by one LOAD, if nothing that a later one waits for comes after the first.
In DRAM they then have a copy in which they follow each other, unless they do so already.
"""

from collections.abc import Callable, Sequence

from dovetail.isa.config import HardwareConfig
from dovetail.isa.footprint import dram_word_bytes
from dovetail.isa.instructions import Instruction, Load
from dovetail.isa.memories import Memory

__all__ = ["PACE", "SOON", "WGT_PARTS", "follow", "join", "word_count"]

PACE = 0.9
"""LOADs are joined where LOAD works for this part of a program's cycles, or more."""

PARTS = {Memory.PAR: 4, Memory.TAP: 4, Memory.TAB: 2}
"""Memories of constants besides WGT; a joined LOAD fills at most this part of one."""

WGT_PARTS = (16, 8, 4)
"""Parts of WGT that a joined LOAD fills at most: longer LOADs are fewer, but end later."""

SOON = 1000
"""Cycles from the first of some LOADs to another: with those only, few LOADs wait long."""


def _is_plain(load: Load) -> bool:
    """True if a LOAD brings contiguous words, from one row or from as many rows."""
    padding = load.pad_x_before, load.pad_x_after, load.pad_y_before, load.pad_y_after
    rows = load.count_y == 1 or (load.count_x == load.sram_stride_y == 1)
    return rows and load.count_z == 1 and not any((*padding, load.step))


def word_count(load: Load) -> int:
    """Words of a LOAD of one row, or of rows of one."""
    return load.count_x * load.count_y


def _form(load: Load) -> tuple[bool, bool, int]:
    """Fields that must be equal for LOADs of one memory to be joined."""
    return load.nibbles, load.same, load.dram_stride_y if load.count_y > 1 else 0


def join(
    program: Sequence[Instruction],
    before: Sequence[frozenset[int]],
    config: HardwareConfig,
    known: Callable[[Load], bool],
    wgt_parts: int = WGT_PARTS[0],
    near: Callable[[int, int], bool] = lambda first, other: True,
) -> list[list[int]]:
    """Places of LOADs that may be one, in the order of their words; lists of several only.

    before: what each instruction depends on.  known: whether what a LOAD brings is constant and may
    be copied; other words are joined where they follow each other.
    wgt_parts: of WGT, of which a joined LOAD fills one at most.  near: whether a place may be
    together with the first of a group.
    """
    groups: list[list[int]] = []
    for memory, parts in {**PARTS, Memory.WGT: wgt_parts}.items():
        most = max(config.depth(memory) // parts, 1)
        last: dict[tuple[bool, bool, int], list[int]] = {}
        for place, each in enumerate(program):
            if not isinstance(each, Load) or each.memory is not memory or not _is_plain(each):
                continue
            group = last.get(_form(each))
            if (
                group
                and near(group[0], place)
                and _follows(program, group, each, most)
                and _may_move(before[place], group)
                and _have_place(program, [*group, place], config, known)
            ):
                group.append(place)
                continue
            group = last[_form(each)] = [place]
            groups.append(group)
    return [group for group in groups if len(group) > 1]


def _follows(program: Sequence[Instruction], group: Sequence[int], load: Load, most: int) -> bool:
    """True if a LOAD brings the words behind those of a group, which stays small enough."""
    first, last = program[group[0]], program[group[-1]]
    assert isinstance(first, Load)
    assert isinstance(last, Load)
    end = last.sram_address + word_count(last)
    return load.sram_address == end and end - first.sram_address + word_count(load) <= most


def _have_place(
    program: Sequence[Instruction],
    group: Sequence[int],
    config: HardwareConfig,
    known: Callable[[Load], bool],
) -> bool:
    """True if LOADs bring words that follow each other, or that may be copied so that they do."""
    loads = [each for place in group if isinstance(each := program[place], Load)]
    return follow(loads, config) or all(known(each) for each in loads)


def follow(loads: Sequence[Load], config: HardwareConfig) -> bool:
    """True if the data of LOADs of rows, or of words, is contiguous in DRAM."""
    steps = [
        each.dram_stride_y if each.count_y > 1 else dram_word_bytes(each, config) for each in loads
    ]
    ends = [
        each.dram_address + word_count(each) * step for each, step in zip(loads, steps, strict=True)
    ]
    return all(end == each.dram_address for end, each in zip(ends, loads[1:], strict=False))


def _may_move(needed: frozenset[int], group: Sequence[int]) -> bool:
    """True if all that a LOAD depends on comes before the first of a group, or is in it."""
    return all(place < group[0] or place in group for place in needed)
