"""Depthwise taps as windows: the same words as one tap a cycle, in fewer cycles."""

from dataclasses import replace
from math import prod

import numpy as np
import pytest

from dovetail.compiler.loops.expressions import Scope
from dovetail.compiler.loops.parse import parse
from dovetail.compiler.targets.vta import emit_tile
from dovetail.compiler.targets.vta.constant_loads import ConstantLoader
from dovetail.compiler.targets.vta.constants import DramMap
from dovetail.compiler.targets.vta.operands import Operand, Tile
from dovetail.compiler.targets.vta.read_nests import read_nests
from dovetail.compiler.targets.vta.sliding import TAP_GROUP, slide
from dovetail.isa.configs import find_config
from dovetail.isa.instructions import Multiplier, Vector
from dovetail.isa.memories import Memory
from dovetail.isa.semantics import vector
from dovetail.isa.state import MachineState
from tests.end_to_end.models import Network

from .test_stream import lowered

TINY = find_config("tiny")
LANES = TINY.block


PROGRAM = f"""
function "dw"
  input x: int8[{LANES}] act
  input taps: int8[{LANES}] tap
  input bias: int32[1, {LANES}] par
  input scale: float32[1, {LANES}] par
  output y: int8[{LANES}] act
  for l in {LANES} vector:
    y[l] = cast(int8, min(max(rint(cast(float32, cast(int32, x[l]) * (cast(int32, taps[l]) \
+ -7:int32) + bias[0, l]) * scale[0, l]) + 3.0:float32, -100.0:float32), 120.0:float32))
"""
"""The value and finish of a depthwise layer; its loops do not matter here."""

NEST = read_nests(parse(PROGRAM)).nests[0]


def depthwise(
    kernel: tuple[int, int], stride: int, size: tuple[int, int], first: int, groups: int = 1
) -> Tile:
    """Blocks of ``size`` results from rows of words that begin at ``first``: two of them, or one
    where rows of taps are cut into ``groups``, 2 columns apart.
    """
    (height, width), (rows, columns) = kernel, size
    line = stride * columns + width + 2 * groups
    plane = line * (stride * rows + height)
    # Extents and strides of source and taps.
    levels = ((width, 1, 1), (groups, 2, 4), (height, line, 4 * groups))
    folded, source, taps = zip(*(level for level in levels if level[0] > 1), strict=True)
    blocks = (2,) if groups == 1 else ()
    still = (0,) * len(folded)
    strides = {
        "source": (source, (stride, stride * line, plane)),
        "taps": (taps, (0, 0, 4 * height)),
        "target": (still, (1, columns, rows * columns)),
        "bias": (still, (0, 0, 1)),
        "scale": (still, (0, 0, 1)),
    }
    starts = {"source": first, "taps": 8 + 3 - width, "target": 1024, "bias": 2, "scale": 2}
    scopes = {"source": Scope.ACT, "target": Scope.ACT, "taps": Scope.TAP}
    operands = {
        name: Operand(
            scopes.get(name, Scope.PAR), starts[name], (*inner, *outer[: 2 + len(blocks)])
        )
        for name, (inner, outer) in strides.items()
    }
    mask = (1 << len(folded)) - 1
    return Tile(NEST, operands, (*folded, columns, rows, *blocks), mask, False, None)


def after(instruction: Vector, width: int) -> np.ndarray:
    """ACT after ``instruction``, from a random state in which taps before ``width`` count as 0."""
    rng = np.random.default_rng(1)
    state = MachineState.zeros(TINY, np.zeros(0, np.uint8))
    for memory in (Memory.ACT, Memory.TAP):
        words = rng.integers(0, 256, (TINY.depth(memory), LANES)).astype(np.uint8)
        state.write_words(memory, np.arange(len(words)), words)
    if width < 3:
        state.tap[::4] = 7
    state.par.bias[:] = rng.integers(-5000, 5000, state.par.bias.shape)
    state.par.scale[:] = 0.004
    vector(state, instruction)
    return state.act


@pytest.mark.parametrize("height", [1, 2, 3, 5])
@pytest.mark.parametrize(("width", "groups"), [(2, 1), (3, 1), (3, 2), (3, 3)])
@pytest.mark.parametrize("stride", [1, 2])
def test_windows_give_the_words_of_single_taps(
    monkeypatch: pytest.MonkeyPatch, height: int, width: int, groups: int, stride: int
) -> None:
    columns = 6
    tile = depthwise((height, width), stride, (4, columns), 40, groups)
    found = emit_tile.vector_of(tile)
    assert found.multiplier is Multiplier.WINDOW or (width, stride) == (2, 2)
    assert found.wide_window == (height > 1 and groups > 1)
    monkeypatch.setattr(emit_tile, "slide", lambda tile: None)
    plain = emit_tile.vector_of(tile)
    assert plain.multiplier is Multiplier.TAP
    assert np.array_equal(after(found, width), after(plain, width))
    lead = {(2, 1): 1, (3, 1): 2, (3, 2): 1}.get((width, stride))
    if lead is not None:
        blocks = 2 if groups == 1 else 1
        assert prod(found.extent) == height * groups * stride * (columns + lead) * 4 * blocks


def test_what_has_no_window_stays_as_it_is() -> None:
    tile = depthwise((3, 3), 1, (4, 6), 40)
    taps, source = tile.operands["taps"], tile.operands["source"]
    shifted = replace(taps, address=taps.address + 1)
    assert slide(replace(tile, operands={**tile.operands, "taps": shifted})) is None
    close = replace(taps, strides=(1, 3, 0, 0, 9))
    assert slide(replace(tile, operands={**tile.operands, "taps": close})) is None
    assert slide(replace(tile, operands={"source": source})) is None
    assert slide(depthwise((3, 3), 1, (4, 1), 40)) is None, "one column takes as long"
    assert slide(depthwise((3, 3), 2, (4, 6), 0)) is None, "it would begin before the first word"


def test_taps_of_windows_begin_with_a_group_whatever_came_before() -> None:
    """Softmax and normalisations of rows have one tap for each block."""
    net = Network(np.random.default_rng(0))
    ((layer,), _) = lowered(net.model(net.conv(net.input(4, 5, 5), 4, depthwise=True)))
    loader = ConstantLoader(TINY, DramMap(TINY))
    loader.load("taps", np.ones((1, 1, LANES), np.int8), layer)
    grant, _ = loader.load("taps", layer.constants["taps"], layer)
    assert grant.start == TAP_GROUP
    following, _ = loader.load("taps", np.ones((1, 3, LANES), np.int8), layer)
    assert following.start == TAP_GROUP + layer.constants["taps"].shape[1]
