"""The smallest part of a failing program that still fails."""

from dataclasses import replace

import numpy as np

from dovetail.isa.instructions import Gemm, Instruction, Vector

from .compare import compare
from .generate import Case, ends, order_with_tokens

__all__ = ["minimise"]


def minimise(case: Case) -> Case:
    """Drop instructions, in ever smaller groups, then shrink loops, as long as the backends differ.

    Tokens are inserted anew after each step, so what is left is a legal program.
    """
    kept = list(case.instructions)
    size = max(1, len(kept) // 2)
    while size:
        start = 0
        while start < len(kept):
            fewer = kept[:start] + kept[start + size :]
            if fewer and _fails(case, fewer):
                kept = fewer
            else:
                start += size
        size //= 2
    for index in range(len(kept)):
        for smaller in _smaller(kept[index]):
            changed = [*kept[:index], smaller, *kept[index + 1 :]]
            if _fails(case, changed):
                kept = changed
    return _with(case, kept)


def _with(case: Case, instructions: list[Instruction]) -> Case:
    plain = [replace(i, wait=frozenset(), post=frozenset()) for i in instructions]
    ordered = order_with_tokens(plain, case.config, np.random.default_rng(0))
    return replace(case, instructions=tuple(ordered))


def _fails(case: Case, instructions: list[Instruction]) -> bool:
    candidate = _with(case, instructions)
    if not ends(list(candidate.instructions), case.config):
        return False
    (found,) = compare([candidate])
    return bool(found)


def _smaller(instruction: Instruction) -> list[Instruction]:
    """The instruction with one loop cut to a single iteration, for each of its loops."""
    if not isinstance(instruction, Gemm | Vector):
        return []
    results: list[Instruction] = []
    for level, count in enumerate(instruction.extent):
        if count > 1:
            extent = (*instruction.extent[:level], 1, *instruction.extent[level + 1 :])
            results.append(replace(instruction, extent=extent))
    return results
