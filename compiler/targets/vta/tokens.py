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
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from dovetail.isa.config import HardwareConfig
from dovetail.isa.frozen import replace
from dovetail.isa.instructions import Instruction, Units
from dovetail.isa.memories import Unit

from .dependence import dependences

__all__ = ["insert_tokens"]

NEVER = -1
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
    pairs: dict[tuple[int, int], list[_Token]] = {}
    for token in _unimplied(units, _latest(units, before)):
        pairs.setdefault((units[token.giver], units[token.taker]), []).append(token)
    takers: list[list[int]] = [[] for _ in program]
    for tokens in pairs.values():
        for token in _bounded(tokens, config.token_max):
            takers[token.taker].append(token.giver)
    waits, posts = [0] * len(program), [0] * len(program)
    # Where two tokens became one, that one may imply others.
    for token in _unimplied(units, takers):
        posts[token.giver] |= 1 << units[token.taker]
        waits[token.taker] |= 1 << units[token.giver]
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


def _latest(units: Sequence[int], before: Sequence[frozenset[int]]) -> Iterator[list[int]]:
    """For each instruction the latest of each other unit that it must come after."""
    for unit, conflicts in zip(units, before, strict=True):
        if not conflicts:
            yield []
            continue
        latest = [NEVER] * len(Unit)
        for earlier in conflicts:
            if earlier > latest[units[earlier]]:
                latest[units[earlier]] = earlier
        latest[unit] = NEVER
        yield [earlier for earlier in latest if earlier != NEVER]


def _unimplied(units: Sequence[int], givers: Iterable[Sequence[int]]) -> Iterator[_Token]:
    """The tokens that order each instruction after its ``givers`` and that no others imply.

    Once an instruction has its tokens, its clock says up to which instruction of each unit all have
    ended.
    """
    clocks: list[list[int]] = []
    now = [[NEVER] * len(Unit) for _ in Unit]
    for index, (unit, wanted) in enumerate(zip(units, givers, strict=True)):
        clock = now[unit]
        # The latest first: what it implies need not be waited for.
        for giver in sorted(wanted, reverse=True) if len(wanted) > 1 else wanted:
            if giver > clock[units[giver]]:
                yield _Token(giver, index)
                both = zip(clock, clocks[giver], strict=True)
                clock = [mine if mine > other else other for mine, other in both]
                clock[units[giver]] = giver
        clocks.append(clock)
        now[unit] = clock
