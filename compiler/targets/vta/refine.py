"""A plan made faster by trying other ways to run some layers, each judged by the cycles of a whole
program.

One trial changes several places that are far apart.  A change is kept if the layers around its
place take fewer cycles.
"""

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, field

from dovetail.isa.frozen import frozen

from .choice import Change, Choice

__all__ = ["Trial", "Ways", "refine"]

APART = 2
"""Choices that stay between two that change in one trial."""


@frozen
class Trial:
    """Cycles of a program; shares: cycles of each layer, which add up to ``cycles``."""

    choices: tuple[Choice, ...]
    cycles: int
    shares: Sequence[int]


Ways = Callable[[Sequence[Choice], int], Sequence[Change]]
"""Changes of the choice of a number, and perhaps of some that follow; the likeliest first."""


@dataclass(slots=True)
class _Search:
    ways: Ways
    tried: set[tuple[object, ...]] = field(default_factory=set)
    turn: int = 0

    def changes(self, choices: Sequence[Choice]) -> list[Change]:
        """One new change for each of some places far apart; none when all were tried."""
        found: list[Change] = []
        count = len(choices)
        starts = {choice.first: number for number, choice in enumerate(choices)}
        blocked: Set[int] = set()
        for step in range(count):
            number = (self.turn + step) % count
            for change in self.ways(choices, number):
                after = starts.get(change.end, count)
                around = set(range(number - APART, after + APART))
                if change.key not in self.tried and not around & blocked:
                    self.tried.add(change.key)
                    found.append(change)
                    blocked |= set(range(number, after))
                    break
        self.turn += 1
        return found


def refine(
    start: Trial,
    attempt: Callable[[Sequence[Choice]], Trial | None],
    ways: Ways,
    most: int,
) -> Trial:
    """``start``, or what is faster, after at most ``most`` attempts.

    attempt: the program of choices; None when there is no room for it.
    """
    best, search, left = start, _Search(ways), most
    while left > 0:
        changes = search.changes(best.choices)
        if not changes:
            break
        before, kept = best, changes
        while changes and left > 0:
            left -= 1
            trial = attempt(_changed(before.choices, changes))
            if trial is None:
                kept = changes[: len(changes) // 2]
            else:
                best = trial if trial.cycles < best.cycles else best
                kept = [each for each in changes if _gain(before, trial, each) > 0]
            if len(kept) == len(changes):
                break
            changes = kept
    return best


def _changed(choices: Sequence[Choice], changes: Sequence[Change]) -> list[Choice]:
    found: list[Choice] = []
    pending = {change.first: change for change in changes}
    end = 0
    for choice in choices:
        if choice.first in pending:
            found += pending[choice.first].choices
            end = pending[choice.first].end
        elif choice.first >= end:
            found.append(choice)
    return found


def _gain(before: Trial, after: Trial, change: Change) -> int:
    """Cycles that the layers of a change, and of the neighbouring choices, take less."""
    layers = set(_around(before.choices, change))
    return sum(before.shares[n] for n in layers) - sum(after.shares[n] for n in layers)


def _around(choices: Sequence[Choice], change: Change) -> Iterator[int]:
    for choice in choices:
        end = choice.first + choice.count
        if end >= change.first and choice.first <= change.end:
            yield from range(choice.first, end)
