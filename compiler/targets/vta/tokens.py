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

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, pairwise
from typing import NamedTuple

from dovetail.isa.config import HardwareConfig
from dovetail.isa.frozen import replace
from dovetail.isa.instructions import Instruction, Units
from dovetail.isa.memories import Unit

from .dependence import dependences

__all__ = ["insert_tokens"]

NEVER, ALWAYS = -1, 1 << 60
UNITS = [frozenset(unit for unit in Unit if mask >> unit & 1) for mask in range(1 << len(Unit))]
"""The units of each mask, which has bit ``u`` set for unit ``u``."""
KEPT = 1 << 16
"""Instructions with tokens that are remembered: programs of one network are made again and again.
"""


class _Token(NamedTuple):
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
    units = [int(instruction.unit) for instruction in program]
    tokens = list(_unimplied(units, before))
    pairs: dict[tuple[int, int], list[_Token]] = {}
    for token in tokens:
        pairs.setdefault((units[token.giver], units[token.taker]), []).append(token)
    bounded = [_bounded(some, config.token_max) for some in pairs.values()]
    if any(len(some) < len(all_of) for some, all_of in zip(bounded, pairs.values(), strict=True)):
        # Where two tokens became one, that one may imply others.
        takers: list[set[int]] = [set() for _ in program]
        for giver, taker in chain.from_iterable(bounded):
            takers[taker].add(giver)
        tokens = list(_unimplied(units, takers))
    waits, posts = [0] * len(program), [0] * len(program)
    for giver, taker in tokens:
        posts[giver] |= 1 << units[taker]
        waits[taker] |= 1 << units[giver]
    return [
        _with_tokens(instruction, UNITS[wait], UNITS[post])
        if wait or post or instruction.wait or instruction.post
        else instruction
        for instruction, wait, post in zip(program, waits, posts, strict=True)
    ]


@lru_cache(maxsize=KEPT)
def _with_tokens(instruction: Instruction, wait: Units, post: Units) -> Instruction:
    return replace(instruction, wait=wait, post=post)


def _bounded(tokens: Sequence[_Token], most: int) -> list[_Token]:
    """Tokens of one pair that order all that ``tokens`` do, at most ``most`` under way at once.
    Givers and takers ascend.

    Of the tokens under way those two become one whose givers are closest.
    """
    done: list[_Token] = []
    under_way: list[_Token] = []
    for token in tokens:
        ended = 0
        while ended < len(under_way) and under_way[ended].taker < token.giver:
            ended += 1
        if ended:
            done += under_way[:ended]
            del under_way[:ended]
        under_way.append(token)
        if len(under_way) > most:
            gaps = [later.giver - earlier.giver for earlier, later in pairwise(under_way)]
            place = gaps.index(min(gaps))
            earlier, later = under_way[place : place + 2]
            under_way[place : place + 2] = [_Token(later.giver, earlier.taker)]
    return done + under_way


def _unimplied(units: Sequence[int], before: Iterable[Collection[int]]) -> Iterator[_Token]:
    """The tokens that order each instruction after those ``before`` it and that no others imply.

    Once an instruction has its tokens, its clock says up to which instruction of each unit all have
    ended.
    """
    clocks: list[list[int]] = []
    # A unit need not wait for itself.
    now = [[ALWAYS if unit == other else NEVER for other in Unit] for unit in Unit]
    for index, (unit, earlier) in enumerate(zip(units, before, strict=True)):
        clock = now[unit]
        wanted = [giver for giver in earlier if giver > clock[units[giver]]]
        # The latest first: what it implies need not be waited for.
        wanted.sort(reverse=True)
        for giver in wanted:
            if giver > clock[units[giver]]:
                yield _Token(giver, index)
                both = zip(clock, clocks[giver], strict=True)
                clock = [mine if mine > other else other for mine, other in both]
                clock[units[giver]] = giver
        clocks.append(clock)
        now[unit] = clock
