"""Placement of activations."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from dovetail.compiler.loops.ir import Block, Function
from dovetail.compiler.loops.parse import parse
from dovetail.compiler.targets.vta.bank_users import NEAR, shared_banks
from dovetail.compiler.targets.vta.items import Item, activation_items
from dovetail.compiler.targets.vta.layers.activation import Activation
from dovetail.compiler.targets.vta.layers.definition import LoweredLayer
from dovetail.compiler.targets.vta.place import NoRoomError, _latest, place
from dovetail.compiler.targets.vta.placing import PLAIN, Placing
from dovetail.isa.config import HardwareConfig
from dovetail.isa.memories import Memory, Unit

from .programs import TINY


def activation(name: str, words: int) -> Activation:
    return Activation(name, channels=TINY.block, height=1, width=words, lanes=TINY.block)


def chain(sizes: list[int], reads: list[list[int]]) -> tuple[list[LoweredLayer], Activation]:
    """Layers that read the tensors ``reads`` (0 is the input) and each write the next tensor."""
    tensors = [activation(f"t{number}", words) for number, words in enumerate(sizes)]
    layers = [
        LoweredLayer(
            Function(f"layer{n}", (), (), Block(())),
            {},
            tuple(tensors[i] for i in inputs),
            tensors[n + 1],
        )
        for n, inputs in enumerate(reads)
    ]
    return layers, tensors[0]


def place_activations(layers: list[LoweredLayer], source: Activation) -> dict[str, int]:
    """Places by name."""
    items = activation_items(layers, [source])
    starts = place(items, [layer.name for layer in layers], TINY)
    return {item.activation.name: start for item, start in zip(items, starts, strict=True)}


@pytest.mark.parametrize("seed", range(12))
def test_places_are_the_same_whatever_was_placed_before(seed: int) -> None:
    """Placements that begin alike begin with the same places, which are not looked for again."""
    rng = np.random.default_rng(seed)
    sizes = [int(rng.integers(1, TINY.act_depth // 5)) for _ in range(9)]
    layers, source = chain(sizes, [[n, max(0, n - 2)] for n in range(8)])
    items = activation_items(layers, [source])
    changed = int(rng.integers(len(items)))
    larger = replace(items[changed], words=items[changed].words + 1)
    other = [*items[:changed], larger, *items[changed + 1 :]]

    def placed(items: Sequence[Item]) -> list[int] | None:
        try:
            return place(items, [layer.name for layer in layers], TINY)
        except NoRoomError:
            return None

    _latest.cache_clear()
    alone = placed(other)
    for before in (items, items[:changed], [*other, items[0]]):
        _latest.cache_clear()
        placed(before)
        assert placed(other) == alone


@pytest.mark.parametrize("seed", range(100))
def test_tensors_that_live_at_once_never_overlap(seed: int) -> None:
    """Every other case is so dense that there may be no room."""
    rng, dense = np.random.default_rng(seed), bool(seed % 2)
    count = int(rng.integers(2, 12))
    most = TINY.act_depth // (3 if dense else 7)
    sizes = [int(rng.integers(1, most)) for _ in range(count + 1)]
    reads = [sorted({n, int(rng.integers(max(0, n - 2), n + 1))}) for n in range(count)]
    layers, source = chain(sizes, reads)
    try:
        places = place_activations(layers, source)
    except NoRoomError:
        assert dense
        return
    last = {
        n: max((i for i, r in enumerate(reads) if n in r), default=n - 1) for n in range(count + 1)
    }
    for a, b in combinations(range(count + 1), 2):
        if b - 1 <= last[a]:
            start_a, start_b = places[f"t{a}"], places[f"t{b}"]
            assert start_a + sizes[a] <= start_b or start_b + sizes[b] <= start_a
    for number, words in enumerate(sizes):
        assert 0 <= places[f"t{number}"] <= TINY.act_depth - words


@pytest.mark.parametrize("seed", range(8))
def test_with_more_memory_no_two_tensors_come_to_share_a_bank(seed: int) -> None:
    rng, names = np.random.default_rng(seed), [f"layer{n}" for n in range(9)]
    sizes = [int(rng.integers(1, TINY.act_depth // 3)) for _ in range(10)]
    layers, source = chain(sizes, [[n] for n in range(9)])
    items, shared = activation_items(layers, [source]), []
    for config in (TINY, replace(TINY, act_depth=2 * TINY.act_depth)):
        starts, bank = place(items, names, config), config.bank_words(Memory.ACT)
        banks = [
            set(range(start // bank, (start + item.words - 1) // bank + 1))
            for start, item in zip(starts, items, strict=True)
        ]
        shared.append({(a, b) for a, b in combinations(range(10), 2) if banks[a] & banks[b]})
        for (a, one), (b, other) in combinations(enumerate(items), 2):
            if one.lives_with(other):
                assert starts[a] + one.words <= starts[b] or starts[b] + other.words <= starts[a]
    assert shared[1] <= shared[0]


def test_space_of_dead_tensors_is_used_again() -> None:
    layers, source = chain([TINY.act_depth // 2] * 6, [[n] for n in range(5)])
    assert len(set(place_activations(layers, source).values())) == 2


def test_a_tensor_too_large_for_act_names_its_layer() -> None:
    depth = TINY.act_depth
    layers, source = chain([400, depth - 300], [[0]])
    message = f"{depth - 300} words required beside 400 in use, {depth} available"
    with pytest.raises(NoRoomError, match=f"'layer0': act scratchpad: {message}") as error:
        place_activations(layers, source)
    assert error.value.layer == 0


def test_what_finds_no_room_is_named_with_what_lies_there() -> None:
    layers, source = chain([8, TINY.act_depth - 8, 16, 8], [[0], [1], [0, 2]])
    with pytest.raises(NoRoomError) as error:
        place_activations(layers, source)
    assert error.value.layer == 1
    assert error.value.names == {"t0", "t1", "t2"}


PRODUCT = """
function "{layer}"
  input {source}: int8[1] act
  input w: int8[1] wgt
  output acc: int32[1] acc
  acc[0] = 0:int32
  acc[0] add= cast(int32, {source}[0]) * cast(int32, w[0])
"""
"""GEMM's use of a tensor."""


def test_tensors_read_at_one_time_by_different_units_lie_in_different_banks() -> None:
    """A residual sum (VECTOR) reads the result of a convolution whose input GEMM still reads."""
    layers, source = chain([TINY.act_depth // 8] * 5, [[0], [1], [2], [1, 3]])
    layers[:3] = [
        replace(
            layer, function=parse(PRODUCT.format(layer=layer.name, source=layer.inputs[0].name))
        )
        for layer in layers[:3]
    ]
    places = place_activations(layers, source)
    bank = {name: start // TINY.bank_words(Memory.ACT) for name, start in places.items()}
    assert bank["t2"] != bank["t3"]
    assert bank["t2"] != bank["t1"]


@pytest.mark.parametrize("apart", range(-NEAR - 2, NEAR + 3))
@pytest.mark.parametrize("side", ["readers", "writers"])
def test_tensors_of_layers_that_may_run_at_the_same_time_lie_in_different_banks(
    apart: int, side: str
) -> None:
    users = frozenset({(5, Unit.GEMM)}), frozenset({(5 + apart, Unit.VECTOR)})
    items = [
        replace(Item(activation(name, 1), 0, 9, frozenset(), 1), **{side: each})
        for name, each in zip("ab", users, strict=True)
    ]
    size = TINY.act_depth // TINY.act_banks
    first, second = (start // size for start in place(items, [""] * 10, TINY))
    assert (first != second) == (abs(apart) <= NEAR)


def item(name: str, words: int, *readers: tuple[int, Unit], summed: int | None = None) -> Item:
    """Something that is there all the time."""
    layers = frozenset() if summed is None else frozenset({summed})
    return Item(activation(name, words), 0, 9, frozenset(readers), words, summed=layers)


def banks_of(items: list[Item], placing: Placing, config: HardwareConfig = TINY) -> list[range]:
    """The banks in which each lies."""
    size = config.bank_words(Memory.ACT)
    starts = place(items, [""] * 10, config, placing)
    spans = zip(items, starts, strict=True)
    return [range(at // size, (at + each.words - 1) // size + 1) for each, at in spans]


def test_tensors_lie_where_nothing_has_lain_where_that_is_asked_for() -> None:
    """All of ACT is used before any word is used again."""
    layers, source = chain([64] * 13, [[n] for n in range(12)])
    items, names = activation_items(layers, [source]), [layer.name for layer in layers]
    found = place(items, names, TINY, Placing(apart=True))
    assert len(set(found[: TINY.act_depth // 64])) == min(13, TINY.act_depth // 64)
    assert len(set(place(items, names, TINY))) < len(set(found))


def test_a_tensor_lies_in_few_banks_where_that_is_asked_for() -> None:
    bank = TINY.bank_words(Memory.ACT)
    items = [item("a", 100), item("b", bank - 10), item("c", bank + bank // 2)]
    assert len(banks_of(items, PLAIN)[1]) == 2
    assert len(banks_of(items, replace(PLAIN, few_banks=True))[1]) == 1


def test_two_units_of_one_layer_may_count_more_than_those_of_two() -> None:
    config = replace(TINY, act_banks=2)
    most = config.act_depth * 2 // 5
    items = [
        item("first", most, (5, Unit.GEMM)),
        item("next", most, (6, Unit.GEMM)),
        item("x", 50, (5, Unit.VECTOR)),
    ]
    placing = replace(PLAIN, few_banks=True)
    first, later, x = banks_of(items, placing, config)
    assert first != later
    assert x == first
    assert banks_of(items, replace(placing, same_layer=2), config)[2] == later


def test_a_residual_sum_reads_where_it_writes() -> None:
    items = [item("x", 1, (5, Unit.GEMM)), item("y", 1, summed=5)]
    x, y = banks_of(items, PLAIN)
    assert x == y
    x, y = banks_of(items, replace(PLAIN, addends=True))
    assert x != y


def test_banks_that_units_share_are_counted_by_what_lies_there() -> None:
    bank = TINY.bank_words(Memory.ACT)
    gemm, vector = item("x", bank + 1, (5, Unit.GEMM)), item("y", bank + 1, (5, Unit.VECTOR))
    near, far = item("z", 9, (6, Unit.VECTOR)), item("w", 9, (9, Unit.VECTOR))
    assert shared_banks([(gemm, 0), (vector, 2 * bank)], TINY) == 0
    assert shared_banks([(gemm, 0), (vector, bank)], TINY) == 2
    assert shared_banks([(gemm, 0), (vector, 0)], TINY) == 4
    assert shared_banks([(gemm, 0), (near, bank + 1), (far, bank + 10)], TINY) == 1
