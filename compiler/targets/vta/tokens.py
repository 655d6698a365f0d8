"""Inserting the fewest tokens that keep every hazard across units safe.

For each instruction and each other unit only the latest conflicting instruction matters, since
units work in order; and not even that one, when it is known to have ended through other
tokens.  Tokens of a pair of units are taken in the order they are given.

A unit that gives more tokens than a counter holds stalls, and could stall for ever.  So in program
order there are never more than ``token_max`` given and not taken: where there would be, two become
one, given by the later giver and taken by the earlier taker.  Then executing the instructions one
after the other never stalls; and since tokens flow between one giver and one taker, both in order,
what one execution can do all can: no execution of the program can deadlock.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from dovetail.isa.config import HardwareConfig
from dovetail.isa.instructions import Instruction
from dovetail.isa.memories import Unit

from .dependence import dependences

__all__ = ["insert_tokens"]

Clock = dict[Unit, int]


@dataclass(frozen=True, slots=True)
class _Token:
    """A token given at the end of instruction ``giver`` and taken at the start of instruction
    ``taker``.
    """

    giver: int
    taker: int


def insert_tokens(
    program: Sequence[Instruction],
    config: HardwareConfig,
    before: Sequence[frozenset[int]] | None = None,
) -> list[Instruction]:
    """``program`` with waits and posts; ``before``: its dependences, where they are known."""
    if before is None:
        before = dependences(program, config)
    pairs: dict[tuple[Unit, Unit], list[_Token]] = {}
    for token in _unimplied(program, _latest(program, before)):
        pair = program[token.giver].unit, program[token.taker].unit
        pairs.setdefault(pair, []).append(token)
    takers: list[list[int]] = [[] for _ in program]
    for tokens in pairs.values():
        for token in _bounded(tokens, config.token_max):
            takers[token.taker].append(token.giver)
    waits: list[set[Unit]] = [set() for _ in program]
    posts: list[set[Unit]] = [set() for _ in program]
    # Where two tokens became one, that one may imply others.
    for token in _unimplied(program, takers):
        posts[token.giver].add(program[token.taker].unit)
        waits[token.taker].add(program[token.giver].unit)
    return [
        replace(instruction, wait=frozenset(wait), post=frozenset(post))
        if (wait, post) != (instruction.wait, instruction.post)
        else instruction
        for instruction, wait, post in zip(program, waits, posts, strict=True)
    ]


def _bounded(tokens: Sequence[_Token], most: int) -> list[_Token]:
    """Tokens of one pair that order all that ``tokens`` do, at most ``most`` under way at once.

    Of the tokens under way those two become one whose givers are closest.
    """
    done: list[_Token] = []
    under_way: list[_Token] = []
    for token in tokens:
        done += [other for other in under_way if other.taker < token.giver]
        under_way = [other for other in under_way if other.taker > token.giver] + [token]
        if len(under_way) > most:
            gaps = [later.giver - earlier.giver for earlier, later in pairwise(under_way)]
            place = gaps.index(min(gaps))
            earlier, later = under_way[place : place + 2]
            under_way[place : place + 2] = [_Token(later.giver, earlier.taker)]
    return done + under_way


def _latest(
    program: Sequence[Instruction], before: Sequence[frozenset[int]]
) -> Iterator[list[int]]:
    """For each instruction the latest of each other unit that it must come after."""
    for index, instruction in enumerate(program):
        conflicts: Clock = {}
        for earlier in before[index]:
            other = program[earlier].unit
            conflicts[other] = max(conflicts.get(other, -1), earlier)
        conflicts.pop(instruction.unit, None)
        yield list(conflicts.values())


def _unimplied(program: Sequence[Instruction], givers: Iterable[Sequence[int]]) -> Iterator[_Token]:
    """The tokens that order each instruction after its ``givers`` and that no others imply."""
    clocks: list[Clock] = []
    latest: Clock = {}
    for index, (instruction, wanted) in enumerate(zip(program, givers, strict=True)):
        unit = instruction.unit
        clock = dict(clocks[latest[unit]]) if unit in latest else {}
        # The latest first: what it implies need not be waited for.
        for giver in sorted(wanted, reverse=True):
            other = program[giver].unit
            if giver <= clock.get(other, -1):
                continue
            yield _Token(giver, index)
            for known, position in clocks[giver].items():
                clock[known] = max(clock.get(known, -1), position)
            clock[other] = giver
        clocks.append(clock)
        latest[unit] = index
