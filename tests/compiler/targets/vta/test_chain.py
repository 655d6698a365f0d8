"""Layers that follow each other channel by channel overlap, and their taps come once."""

from dataclasses import replace

import numpy as np
import onnx
import pytest

from dovetail.compiler.options import Overlap
from dovetail.compiler.targets.vta import emit
from dovetail.compiler.targets.vta.chain import Chain, chain_cycles, keeps_channels
from dovetail.compiler.targets.vta.choice import Choice
from dovetail.compiler.targets.vta.draft import Draft, make_draft
from dovetail.compiler.targets.vta.planner import Planner
from dovetail.isa.instructions import Load
from dovetail.isa.memories import Memory, Unit
from dovetail.vta_sim.timing import time_program
from tests.end_to_end.models import Network

from .programs import TINY
from .test_stream import assert_exact, lowered

SMALL = replace(
    TINY,
    name="small",
    act_depth=4096,
    wgt_depth=512,
    acc_depth=512,
    tap_depth=128,
    par_depth=128,
)


def low() -> onnx.ModelProto:
    """A convolution, two depthwise layers whose windows are nearly as high as the image, and a sum
    over channels.
    """
    net = Network(np.random.default_rng(5))
    x = net.conv(net.input(3, 6, 6), 48, pads=(1, 1, 1, 1))
    for _ in range(2):
        x = net.conv(x, 48, (5, 5), pads=(2, 2, 2, 2), depthwise=True)
    return net.model(net.conv(x, 32, (1, 1)))


def test_a_chain_takes_the_cycles_of_its_busier_unit_and_of_the_first_tiles() -> None:
    gemm, vector = {Unit.GEMM: 800, Unit.VECTOR: 0}, {Unit.GEMM: 0, Unit.VECTOR: 400}
    alone = chain_cycles([gemm], [4], 0)
    assert alone < chain_cycles([gemm, vector], [4, 4], 0) < alone + 400
    assert chain_cycles([gemm, vector], [4, 1], 0) >= alone + 400, "one tile hides nothing"
    assert chain_cycles([gemm, vector], [4, 4], 5000) >= 5000


def test_each_layer_of_a_chain_is_a_choice_and_has_its_share() -> None:
    chain = Choice(3, 4, 102, 11, Chain())
    assert [(x.first, x.count, x.how) for x in chain.apart] == [(n, 1, None) for n in range(3, 7)]
    assert sum(x.cycles for x in chain.apart) == 102
    assert sum(x.dram for x in chain.apart) == 11


def test_only_what_reads_the_same_channels_follows() -> None:
    layers, _ = lowered(low())
    names = [x.output.name for x in layers]
    found = [keeps_channels(x, names[:n]) for n, x in enumerate(layers)]
    assert found == [True, True, True, False]


def only_chains(planner: Planner, *given: object) -> Draft:
    """The program in which all layers run one by one, in tiles of all pixels."""
    ways, none = planner.choosers[True].ways, frozenset[str]()
    alone = [next(ways.planes(number, none)) for number in range(len(planner.layers))]
    activations, overlap, timing, *_ = given
    return make_draft(planner, planner.built(alone, none), activations, overlap, timing)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def chained() -> Draft:
    layers, ends = lowered(low())
    activations = {x.name: x for each in layers for x in (*each.inputs, each.output)}
    planner = Planner(layers, ends, SMALL)
    return only_chains(planner, activations, Overlap.LAYERS, time_program)


def test_taps_that_do_not_all_fit_come_once(chained: Draft) -> None:
    layers = [each.layer for each in chained.plan.layers]
    words = [len(np.concatenate(x.constants["taps"])) for x in layers if "taps" in x.constants]
    assert min(words) > SMALL.tap_depth
    taps = (x for x in chained.plain if isinstance(x, Load) and x.memory is Memory.TAP)
    assert sum(x.count_x * x.count_y * x.count_z for x in taps) == sum(words)


def test_tiles_of_layers_whose_taps_do_not_fit_together_come_in_turn(chained: Draft) -> None:
    assert chained.plan.chains == {0: range(3)}
    made = [x.layer for x in chained.builder.operations if x.instruction.unit is Unit.VECTOR]
    assert made == [0, 0, 1, 2] * 6 + [3] * 4, "layers 1 and 2 have tiles of two blocks"


def test_sums_begin_before_all_that_they_read_is_made(chained: Draft) -> None:
    program = list(zip(chained.plain, chained.layer_of, strict=True))
    first = next(n for n, (x, layer) in enumerate(program) if (x.unit, layer) == (Unit.GEMM, 3))
    behind = [x for x, layer in program[first:] if (x.unit, layer) == (Unit.VECTOR, 2)]
    assert len(behind) >= 2


def test_a_chain_has_the_bytes_of_the_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emit, "fastest", only_chains)
    assert_exact(low(), SMALL, 1)
