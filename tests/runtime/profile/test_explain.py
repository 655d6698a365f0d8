"""Sentences about layers of made-up numbers: each says only what they say."""

from dataclasses import fields, replace

import pytest

from dovetail.isa.configs import find_config
from dovetail.runtime.profile.breakdown import Breakdown
from dovetail.runtime.profile.explain import CAUSES, causes, explain
from dovetail.runtime.profile.layers import LayerProfile

CONFIG = find_config("zynq7020")
LAYER = LayerProfile(
    name="x",
    kind="Conv2d",
    cycles=1000,
    macs=500 * 256,
    utilization=0.5,
    dram_bytes=800,
    gemm_cycles=500,
    vector_cycles=100,
    dram_cycles=100,
    waited_token=0,
    waited_port=0,
    waited_memory=0,
)


def test_every_cause_has_words() -> None:
    assert set(CAUSES) == {each.name for each in fields(Breakdown)}


@pytest.mark.parametrize(
    ("cause", "words", "tried"),
    [
        ("unfilled", "can do 256,000 products; the layer has 128,000", "multiples of 16"),
        ("vector", "GEMM has more work (500 cycles against 100)", "acc_depth above"),
        ("load", "at work in only 10% of the layer's cycles: LOAD began", "LOAD can run ahead"),
        ("store", "at work in only 10% of the layer's cycles: STORE began", "results can wait"),
        ("bank", "held a bank", "dovetail tune"),
        ("fetch", "not in its unit's queue", f"fetch_ahead above {CONFIG.fetch_ahead}"),
        ("gemm", "until GEMM had ended", "dovetail tune"),
        ("vector_token", "until VECTOR", "acc_depth above"),
        ("unknown", "does not say", "a profile on sim"),
        ("room", "no token came", f"token_max above {CONFIG.token_max}"),
    ],
)
def test_what_takes_half_of_the_cycles_is_named(cause: str, words: str, tried: str) -> None:
    found = explain(LAYER, Breakdown(**{"useful": 500, cause: 500}), 100, CONFIG, 4000)
    assert found.summary == (
        "It takes 1,000 cycles, 25.0% of the run; 50.0% of them do the model's products. "
        f"Most of the others: {CAUSES[cause]} (50.0%)."
    )
    assert found.because[0].startswith("500 cycles (50.0%): ")
    assert words in found.because[0]
    assert len(found.because) == 1
    assert any(tried in each for each in found.tries)


def test_a_full_bus_is_told_from_data_that_came_late() -> None:
    found = explain(LAYER, Breakdown(useful=500, load=500), 950, CONFIG, 1000)
    assert "In 95% of the layer's cycles the bus was at work: it is the limit" in found.because[0]
    assert found.tries[0] == f"bus_bytes above {CONFIG.bus_bytes}"
    wide = replace(CONFIG, bus_bytes=CONFIG.block)
    found = explain(LAYER, Breakdown(useful=500, load=500), 950, wide, 1000)
    assert not any("bus_bytes" in each for each in found.tries)
    # Another wait comes first: without it the bus would still be full.
    found = explain(LAYER, Breakdown(useful=500, bank=500), 950, CONFIG, 1000)
    assert found.because[1].startswith("In 95% of its cycles the bus was at work, so it would")
    assert len(explain(LAYER, Breakdown(useful=500, bank=500), 790, CONFIG, 1000).because) == 1


def test_vector_is_the_limit_only_where_it_has_more_to_do() -> None:
    more = replace(LAYER, vector_cycles=900)
    found = explain(more, Breakdown(useful=500, vector=500), 100, CONFIG, 1000)
    assert (
        "VECTOR has 900 cycles of work for this layer, GEMM 500: VECTOR is the limit"
        in (found.because[0])
    )
    slow = replace(CONFIG, vector_cycles=2)
    assert explain(more, Breakdown(useful=500, vector=500), 100, slow, 1000).tries == (
        "vector_cycles below 2",
    )


def test_a_good_layer_gets_no_advice_and_small_causes_no_sentence() -> None:
    found = explain(LAYER, Breakdown(useful=950, bank=50), 100, CONFIG, 1000)
    assert "95.0% of them do the model's products: there is little to gain" in found.summary
    assert not found.because
    assert not found.tries
    assert causes(Breakdown(useful=500, load=300, bank=150, fetch=50)) == [
        ("load", 300),
        ("bank", 150),
    ]
    assert "no cycle of its own" in explain(LAYER, Breakdown(), 100, CONFIG, 1000).summary


def test_products_of_vector_and_none_at_all_are_told_apart() -> None:
    depthwise = replace(LAYER, gemm_cycles=0, vector_cycles=900)
    assert "VECTOR does its 128,000 products. Most of the cycles: VECTOR works" in (
        explain(depthwise, Breakdown(vector=900, load=100), 100, CONFIG, 1000).summary
    )
    pool = replace(LAYER, gemm_cycles=0, macs=0)
    assert (
        "it has no products. Most"
        in explain(pool, Breakdown(vector=900, load=100), 100, CONFIG, 1000).summary
    )
