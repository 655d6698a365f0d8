"""Room in ACT and the best place there, against what their docstrings say, word by word."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from dovetail.compiler.targets.vta.act_space import Space
from dovetail.compiler.targets.vta.bank_users import Users, shared_banks
from dovetail.compiler.targets.vta.items import Item
from dovetail.compiler.targets.vta.layers.activation import Activation
from dovetail.compiler.targets.vta.placing import Placing
from dovetail.isa.memories import Unit

from .programs import TINY

SMALL = replace(TINY, name="small", act_depth=64, act_banks=8)
BANK = 8
UNITS = tuple(Unit)
PLACINGS = [
    Placing(same_layer, few_banks=few, addends=addends, apart=apart)
    for same_layer, few, addends, apart in product((1, 2), *[(False, True)] * 3)
]


def random_item(rng: np.random.Generator, number: int) -> Item:
    first = int(rng.integers(-1, 5))
    last = first + int(rng.integers(0, 4))

    def users() -> frozenset[tuple[int, Unit]]:
        layers = rng.integers(first, last + 1, 2).tolist()
        return frozenset((layer, UNITS[rng.integers(4)]) for layer in layers)

    summed = frozenset({last}) if rng.random() < 0.5 else frozenset[int]()
    words = int(rng.integers(1, 20))
    activation = Activation(f"t{number}", 4, 1, words, 4)
    return Item(activation, first, last, users(), words, users(), summed)


def banks(item: Item, start: int) -> set[int]:
    return {word // BANK for word in range(start, start + item.words)}


def rivalry(one: Item, other: Item, placing: Placing) -> int:
    """Both readers, or both writers, of different units; of one layer, or at most two apart."""
    readers = [
        each.readers | {(n, Unit.VECTOR) for n in each.summed if placing.addends}
        for each in (one, other)
    ]
    apart = [
        abs(a - b)
        for mine, its in (readers, (one.writers, other.writers))
        for (a, unit), (b, rival) in product(mine, its)
        if unit is not rival
    ]
    if 0 in apart:
        return placing.same_layer
    return int(min(apart, default=9) <= 2)


def best(items: Sequence[Item], starts: Sequence[int], places: Sequence[int], how: Placing) -> int:
    """The place of the last of ``items``; starts: of the others."""
    item, others = items[-1], list(zip(items, starts, strict=False))
    near = [
        (other, start)
        for other, start in others
        if other.first <= item.last + 2 and item.first - 2 <= other.last
    ]

    def order(place: int) -> tuple[int, ...]:
        words = set(range(place, place + item.words))
        lately = [
            other.last for other, start in others if words & {*range(start, start + other.words)}
        ]
        shared = sum(
            rivalry(item, other, how) * len(banks(item, place) & banks(other, start))
            for other, start in near
        )
        late = max(lately, default=-2)
        few = len(banks(item, place)) if how.few_banks else 0
        return late if how.apart else 0, shared, few, late, place

    return min(places, key=order)


@pytest.mark.parametrize("seed", range(3))
def test_the_best_place_is_that_with_the_fewest_rivals(seed: int) -> None:
    rng = np.random.default_rng(seed)
    items = [random_item(rng, number) for number in range(8)]
    for how in PLACINGS:
        space, starts = Space(items, SMALL), list[int]()
        for number, item in enumerate(items):
            busy = [
                range(start, start + other.words)
                for other, start in zip(items, starts, strict=False)
                if other.lives_with(item)
            ]
            free = [
                place
                for place in range(64 - item.words + 1)
                if not any(
                    word in each for each in busy for word in range(place, place + item.words)
                )
            ]
            ended = {start + other.words for other, start in zip(items, starts, strict=False)}
            begun = {each.start - item.words for each in busy} | {64 - item.words}
            places = [place for place in free if place % BANK == 0 or place in ended]
            assert space.room(item).tolist() == places
            assert space.room(item, ends=True).tolist() == [x for x in free if x in begun]
            if not places:
                break
            start = space.best(item, np.array(places), how)
            assert start == best(items[: number + 1], starts, places, how)
            space.add(start)
            starts.append(start)


def test_banks_that_are_shared_count_for_each_pair_and_twice_in_one_layer() -> None:
    rng = np.random.default_rng(9)
    for _ in range(20):
        items = [random_item(rng, number) for number in range(4)]
        placed = [(item, int(rng.integers(0, 64 - item.words))) for item in items]
        wanted = sum(
            rivalry(one, other, Placing(2)) * len(banks(one, start) & banks(other, begin))
            for n, (one, start) in enumerate(placed)
            for other, begin in placed[:n]
        )
        assert shared_banks(placed, SMALL) == wanted


@pytest.mark.parametrize("layer", [-1, 0, 3])
def test_units_are_rivals_in_layers_at_most_two_apart(layer: int) -> None:
    def used(at: int, unit: Unit, *, writes: bool) -> Users:
        users = frozenset({(at, unit)})
        sides = (frozenset[tuple[int, Unit]](), users)[:: 1 if writes else -1]
        item = Item(Activation("t", 4, 1, 1, 4), at, at, sides[0], 1, sides[1])
        return Users.of(item, 8, addends=True)

    for (one, other), (writes, its), gap in product(
        product(Unit, repeat=2), product((False, True), repeat=2), range(5)
    ):
        first, second = used(layer, one, writes=writes), used(layer + gap, other, writes=its)
        rival = one is not other and writes is its
        wanted = (2 if gap == 0 else 1) if rival and gap <= 2 else 0
        assert first.rivals(second, 2) == second.rivals(first, 2) == wanted
        assert first.rivals(second, 1) == min(wanted, 1)
