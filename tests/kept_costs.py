"""Costs of the programs that tests compile, kept in ``kept_costs.json``: any plan gives the right
bytes, so a plan that is worse, or merely another, is seen here alone.

A change that is meant is written down by ``make kept``; the difference says what it costs.
"""

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from dovetail.compiler.targets.vta.emit import CompiledProgram
from dovetail.isa.instructions import Instruction
from dovetail.runtime.accelerator.part import AcceleratorPart

from .kept import check_kept

__all__ = ["check_costs"]

KEPT = Path(__file__).with_suffix(".json")
CHECKED = ["", 0]
"""The test that runs, and how often it has asked."""


def check_costs(parts: Sequence[object]) -> None:
    """Fail if accelerators' programs among ``parts`` cost other than what is kept for this test."""
    found = "; ".join(filter(None, map(_cost, parts)))
    if found:
        test = os.environ["PYTEST_CURRENT_TEST"].removeprefix("tests/").removesuffix(" (call)")
        CHECKED[:] = test, CHECKED[1] + 1 if CHECKED[0] == test else 1
        check_kept(KEPT, f"{test} {CHECKED[1]}", found)


def _cost(part: object) -> str:
    """Cycles, the roof, instructions by unit (L G V S), bytes of memory, and bytes moved."""
    match part:
        case AcceleratorPart():
            moved = f", {sum(layer.dram_bytes for layer in part.layers)} moved"
            found = part.expected_cycles, part.roof_cycles, len(part.dram), part.program
        case CompiledProgram():
            moved = ""
            cycles, roof = part.expected_cycles, part.roof.cycles
            found = cycles, roof, len(part.image), part.instructions
        case _:
            return ""
    cycles, roof, size, program = found
    return f"{cycles} cycles, roof {roof}, {_units(program)}, {size} bytes{moved}"


def _units(program: Sequence[Instruction]) -> str:
    counted = Counter(each.unit.name for each in program)
    return " ".join(f"{unit[0]}{count}" for unit, count in sorted(counted.items()))
