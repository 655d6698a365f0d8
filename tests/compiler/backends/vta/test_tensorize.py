"""Tensorize: executing the instructions gives what the tensor IR's interpreter gives."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from dovetail.compiler.backends.vta.intrinsics import Intrinsic, intrinsics
from dovetail.compiler.backends.vta.tensorize import Match, TensorizeError, tensorize
from dovetail.compiler.tensor.interpreter import run_kernel
from dovetail.compiler.tensor.ir import (
    Affine,
    Buffer,
    Fold,
    Kernel,
    Loop,
    LoopKind,
    Product,
    Ref,
    Requantized,
    Scaled,
    Scope,
    Stage,
    Total,
    var,
)
from dovetail.isa.configs import find_config
from dovetail.isa.instructions import Gemm, encode
from dovetail.isa.memories import Memory
from dovetail.isa.semantics import execute
from dovetail.isa.state import MachineState

from .programs import TINY

LANES = TINY.block
BASES = {"x": 3, "y": 700, "weights": 2, "taps": 5, "acc": 9, "bias": 4, "scale": 4, "table": 256}
SERIAL, HARDWARE, LANE = LoopKind.SERIAL, LoopKind.HARDWARE, LoopKind.LANE


def buffer(name: str, scope: Scope, *shape: int) -> Buffer:
    dtype = {Scope.ACC: "int32", Scope.PAR: "int32"}.get(scope, "int8")
    return Buffer(name, shape, "float32" if name == "scale" else dtype, scope)


def arrays_of(stage: Stage, rng: np.random.Generator) -> dict[str, NDArray[np.generic]]:
    """Random contents for every buffer."""
    buffers = {ref.buffer for ref in stage.refs} | ({stage.table} if stage.table else set())
    found: dict[str, NDArray[np.generic]] = {}
    for each in sorted(buffers, key=lambda b: b.name):
        if each.dtype == "float32":
            found[each.name] = rng.uniform(0.001, 0.05, each.shape).astype(np.float32)
        else:
            found[each.name] = rng.integers(-128, 128, each.shape).astype(each.dtype)
    return found


def executed(
    stage: Stage, arrays: dict[str, NDArray[np.generic]], bases: dict[str, int]
) -> NDArray[np.generic]:
    """The target after the instructions of every iteration of the serial loops."""
    config = find_config("tiny")
    state = MachineState.zeros(config, np.zeros(16, np.uint8))
    for name, array in arrays.items():
        if name in ("bias", "scale"):
            words = array.reshape(-1, LANES)
            getattr(state.par, name)[bases[name] : bases[name] + len(words)] = words
            continue
        scope = next((ref.buffer.scope for ref in stage.refs if ref.buffer.name == name), Scope.TAB)
        memory = Memory(scope.value)
        words = array.reshape(-1).view(np.uint8).reshape(-1, config.word_bytes(memory))
        places = bases[name] + np.arange(len(words))
        state.write_words(memory, places, words)
    match = tensorize(stage, LANES)
    serial = [loop for loop in stage.loops if loop.kind is SERIAL]
    for indices in product(*(range(loop.extent) for loop in serial)):
        at = {loop.name: index for loop, index in zip(serial, indices, strict=True)}
        instruction = match.instruction(at, bases)
        encode(instruction)
        execute(state, instruction)
    target = stage.target.buffer
    memory = state.act if target.scope is Scope.ACT else state.acc
    size = int(np.prod(target.shape)) // LANES
    start = bases[target.name]
    return memory[start : start + size].reshape(target.shape)


def assert_same(stage: Stage, seed: int, bases: dict[str, int] = BASES) -> Match:
    arrays = arrays_of(stage, np.random.default_rng(seed))
    found = executed(stage, arrays, bases)
    run_kernel(Kernel("kernel", (stage,)), arrays)
    assert np.array_equal(found, arrays[stage.target.buffer.name])
    return tensorize(stage, LANES)


def lane(name: str) -> Loop:
    return Loop(name, LANES, LANE)


def conv(*, tiles: int = 1, deep: int = 1) -> Stage:
    """Strided 3x2 convolution, rows in ``tiles`` tiles, channel blocks in ``deep`` serial parts."""
    x = buffer("x", Scope.ACT, 2, 9, 7, LANES)
    weights = buffer("weights", Scope.WGT, 3, 2, 3, 2, LANES, LANES)
    acc = buffer("acc", Scope.ACC, 3, 4, 3, LANES)
    row = var("yo") * (4 // tiles) + var("yi")
    block = var("ko") * (2 // deep) + var("ki")
    loops = (
        *(Loop("yo", tiles), Loop("ko", deep), Loop("c", 3, HARDWARE)),
        *(
            Loop("yi", 4 // tiles, HARDWARE),
            Loop("x", 3, HARDWARE),
            Loop("ki", 2 // deep, HARDWARE),
        ),
        *(Loop("ky", 3, HARDWARE), Loop("kx", 2, HARDWARE), lane("l"), lane("i")),
    )
    source = Ref(x, (block, row * 2 + var("ky"), var("x") * 2 + var("kx"), var("i")))
    tile = Ref(weights, (var("c"), block, var("ky"), var("kx"), var("l"), var("i")))
    target = Ref(acc, (var("c"), row, var("x"), var("l")))
    reduction = frozenset({"ko", "ki", "ky", "kx", "i"})
    return Stage("sum", loops, reduction, target, Fold.SUM, Product(source, tile))


def pointwise(value: object, *, finish: bool = False, table: bool = False) -> Stage:
    """``y[c, p, l] = value`` for two blocks of 6 pixels, the pixels in two serial parts."""
    loops = (Loop("po", 2), Loop("c", 2, HARDWARE), Loop("pi", 3, HARDWARE), lane("l"))
    place = (var("c"), var("po") * 3 + var("pi"), var("l"))
    bias, scale = (
        Ref(buffer(name, Scope.PAR, 2, LANES), (var("c"), var("l"))) for name in ("bias", "scale")
    )
    return Stage(
        "finish",
        loops,
        frozenset(),
        Ref(buffer("y", Scope.ACT, 2, 6, LANES), place),
        Fold.NONE,
        value,  # type: ignore[arg-type]
        Requantized(bias, scale, 3, -100, 90) if finish else None,
        buffer("table", Scope.TAB, 256, LANES) if table else None,
    )


PLACE = (var("c"), var("po") * 3 + var("pi"), var("l"))
FROM_ACC = Ref(buffer("acc", Scope.ACC, 2, 6, LANES), PLACE)
FROM_ACT = Ref(buffer("x", Scope.ACT, 2, 6, LANES), PLACE)


def windows(fold: Fold, *, taps: bool = False, finish: bool = False) -> Stage:
    """A 2x3 window over two blocks, moving by two rows."""
    x = buffer("x", Scope.ACT, 2, 6, 7, LANES)
    source = Ref(x, (var("c"), var("y") * 2 + var("ky"), var("x") + var("kx"), var("l")))
    tap = Ref(buffer("taps", Scope.TAP, 2, 2, 3, LANES), (var("c"), var("ky"), var("kx"), var("l")))
    loops = (
        *(Loop("c", 2), Loop("y", 3, HARDWARE), Loop("x", 5, HARDWARE)),
        *(Loop("ky", 2, HARDWARE), Loop("kx", 3, HARDWARE), lane("l")),
    )
    bias, scale = (
        Ref(buffer(name, Scope.PAR, 2, LANES), (var("c"), var("l"))) for name in ("bias", "scale")
    )
    return Stage(
        "finish",
        loops,
        frozenset({"ky", "kx"}),
        Ref(buffer("y", Scope.ACT, 2, 3, 5, LANES), (var("c"), var("y"), var("x"), var("l"))),
        fold,
        Product(source, tap) if taps else source,
        Requantized(bias, scale, -5, -128, 127) if finish else None,
    )


@pytest.mark.parametrize("intrinsic", intrinsics(LANES), ids=lambda i: i.name)
def test_the_meaning_of_every_intrinsic_is_what_it_does(intrinsic: Intrinsic) -> None:
    names = {ref.buffer.name for ref in intrinsic.meaning.refs}
    bases = {name: 16 * number for number, name in enumerate(sorted(names))}
    assert assert_same(intrinsic.meaning, 1, bases).intrinsic.name == intrinsic.name


@pytest.mark.parametrize(("tiles", "deep"), [(1, 1), (2, 1), (4, 2), (1, 2)])
def test_a_convolution_is_gemm(tiles: int, deep: int) -> None:
    match = assert_same(conv(tiles=tiles, deep=deep), tiles)
    assert match.intrinsic.name == "gemm"
    instruction = match.instruction({"yo": 0, "ko": deep - 1}, BASES)
    assert isinstance(instruction, Gemm)
    assert instruction.accumulate == (deep == 2)


@pytest.mark.parametrize(
    "stage",
    [
        pointwise(FROM_ACT),
        pointwise(FROM_ACC, finish=True),
        pointwise(FROM_ACC, finish=True, table=True),
        pointwise(FROM_ACT, table=True),
        windows(Fold.MAX),
        windows(Fold.SUM, finish=True),
        windows(Fold.SUM, taps=True, finish=True),
    ],
    ids=["copy", "requantize", "requantize and look up", "look up", "max", "mean", "depthwise"],
)
def test_folds_and_finishes_are_vector(stage: Stage) -> None:
    assert assert_same(stage, 2).unit.name == "VECTOR"


def test_a_sum_of_two_scaled_tensors_is_one_vector() -> None:
    other = replace(FROM_ACT, buffer=replace(FROM_ACT.buffer, name="other"))
    stage = pointwise(Total(Scaled(FROM_ACT, 70_000), Scaled(other, -123)), finish=True)
    match = assert_same(stage, 3, {**BASES, "other": 300})
    assert match.intrinsic.name == "vector.pair"


def odd_rows() -> Stage:
    stage = conv()
    wrong = Ref(stage.target.buffer, (*stage.target.indices[:3], var("i")))
    return replace(stage, target=wrong)


def deep_nest() -> Stage:
    loops = tuple(Loop(f"n{number}", 2, HARDWARE) for number in range(7))
    x, y = (buffer(name, Scope.ACT, *[2] * 7, LANES) for name in ("x", "y"))
    place = (*(var(loop.name) for loop in loops), var("l"))
    return Stage("copy", (*loops, lane("l")), frozenset(), Ref(y, place), Fold.NONE, Ref(x, place))


@pytest.mark.parametrize(
    ("stage", "reason"),
    [
        (odd_rows(), "does not run over lane"),
        (deep_nest(), "7 loops; it has 4 levels"),
        (
            replace(
                windows(Fold.SUM),
                loops=(Loop("c", 2), *windows(Fold.SUM).loops[1:-1], Loop("l", 2, LANE)),
            ),
            "lanes",
        ),
        (pointwise(Ref(buffer("x", Scope.WGT, 2, 6, LANES), PLACE)), "lies in wgt"),
        (
            pointwise(
                Ref(buffer("x", Scope.ACT, 2, 6 * LANES), (var("c"), var("pi") * 2 + var("l")))
            ),
            "does not move by whole words",
        ),
        (pointwise(Scaled(FROM_ACT, 3)), "it computes"),
        (windows(Fold.SUM), "an int8 result that may be out of range needs a finish"),
        (pointwise(FROM_ACC, table=True), "an int8 result that may be out of range"),
        (pointwise(Total(Scaled(FROM_ACC, 2), Scaled(FROM_ACC, 3)), finish=True), "lies in acc"),
    ],
)
def test_a_stage_that_is_no_instruction_is_told_why(stage: Stage, reason: str) -> None:
    with pytest.raises(TensorizeError, match=f"stage .* is no instruction; .*{reason}"):
        tensorize(stage, LANES)


def test_constant_offsets_and_serial_loops_move_the_bases() -> None:
    x, y = (buffer(name, Scope.ACT, 12, LANES) for name in ("x", "y"))
    place = var("o") * 3 + var("i")
    stage = Stage(
        "copy",
        (Loop("o", 3), Loop("i", 3, HARDWARE), lane("l")),
        frozenset(),
        Ref(y, (place + Affine(2), var("l"))),
        Fold.NONE,
        Ref(x, (place, var("l"))),
    )
    vector = tensorize(stage, LANES).instruction({"o": 2}, {"x": 100, "y": 50})
    assert vector.source_address == 106  # type: ignore[union-attr]
    assert vector.destination_address == 58  # type: ignore[union-attr]
