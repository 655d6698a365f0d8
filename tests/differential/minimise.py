"""The smallest part of a failing program that still fails."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from dovetail.isa.instructions import Gemm, Instruction, Load, Vector

from .compare import BACKENDS, compare
from .generate import Case
from .order import ends, order_with_tokens

__all__ = ["minimise"]

Kept = list[tuple[Instruction, bytes | None]]
"""Instructions and the damaged words in their places."""


def minimise(case: Case, backends: Sequence[str] = BACKENDS) -> Case:
    """Drop instructions, in ever smaller groups, then shrink what is left, as long as the backends
    differ.

    Tokens are inserted anew after each step, so what is left is a program without races.  A case
    that needs its own tokens to fail is returned as it is.
    """
    kept: Kept = [(each, case.damage.get(index)) for index, each in enumerate(case.instructions)]
    if not _fails(case, kept, backends):
        return case
    size = max(1, len(kept) // 2)
    while size:
        start = 0
        while start < len(kept):
            fewer = kept[:start] + kept[start + size :]
            if fewer and _fails(case, fewer, backends):
                kept = fewer
            else:
                start += size
        size //= 2
    index = 0
    while index < len(kept):
        for smaller in _smaller(kept[index][0]):
            changed = [*kept[:index], (smaller, kept[index][1]), *kept[index + 1 :]]
            if _fails(case, changed, backends):
                kept = changed
                break
        else:
            index += 1
    return _with(case, kept)


def _with(case: Case, kept: Kept) -> Case:
    plain = [replace(each, wait=frozenset(), post=frozenset()) for each, _ in kept]
    ordered = order_with_tokens(plain, case.config, np.random.default_rng(0))
    damage = {index: word for index, (_, word) in enumerate(kept) if word is not None}
    return replace(case, instructions=tuple(ordered), damage=damage)


def _fails(case: Case, kept: Kept, backends: Sequence[str]) -> bool:
    candidate = _with(case, kept)
    if case.damage and not candidate.damage:
        return False
    if not ends(list(candidate.instructions), case.config):
        return False
    (found,) = compare([candidate], backends)
    return bool(found)


def _smaller(instruction: Instruction) -> Iterator[Instruction]:
    """The instruction with one of its sizes cut to the least, halved, or less by one."""
    if isinstance(instruction, Gemm | Vector):
        for level, count in enumerate(instruction.extent):
            for fewer in _fewer(count, 1):
                extent = (*instruction.extent[:level], fewer, *instruction.extent[level + 1 :])
                yield replace(instruction, extent=extent)
        return
    for name in ("count_x", "count_y", "count_z"):
        for fewer in _fewer(getattr(instruction, name), 1):
            yield replace(instruction, **{name: fewer})  # type: ignore[arg-type]
    if isinstance(instruction, Load):
        for name in ("pad_x_before", "pad_x_after", "pad_y_before", "pad_y_after"):
            for fewer in _fewer(getattr(instruction, name), 0):
                smaller = replace(instruction, **{name: fewer})  # type: ignore[arg-type]
                if smaller.rows and smaller.columns:
                    yield smaller


def _fewer(count: int, least: int) -> list[int]:
    return sorted({least, (count + least) // 2, count - 1} - {count}) if count > least else []
