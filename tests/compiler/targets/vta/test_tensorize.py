"""Tensorize: executing the instructions gives what the interpreter of loop programs gives."""

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from dovetail.compiler.loops.interpreter import interpret
from dovetail.compiler.loops.ir import Function, LoopKind
from dovetail.compiler.loops.parse import parse
from dovetail.compiler.targets.vta.intrinsics import Intrinsic, intrinsics
from dovetail.compiler.targets.vta.nest import Loop, Nest
from dovetail.compiler.targets.vta.read_nests import read_nests
from dovetail.compiler.targets.vta.tensorize import Match, TensorizeError, tensorize
from dovetail.isa.configs import find_config
from dovetail.isa.encoding import encode
from dovetail.isa.instructions import Gemm
from dovetail.isa.memories import Memory
from dovetail.isa.semantics import execute
from dovetail.isa.state import MachineState

from .programs import TINY

LANES = TINY.block
BASES = {"x": 3, "y": 700, "weights": 2, "taps": 5, "acc": 9, "bias": 4, "scale": 4, "table": 256}
Arrays = dict[str, NDArray[np.generic]]


def nest_of(function: Function) -> Nest:
    (nest,) = read_nests(function).nests
    return nest


def arrays_of(function: Function, rng: np.random.Generator) -> Arrays:
    """Random contents for every parameter."""
    found: Arrays = {}
    for each in sorted((*function.inputs, *function.outputs), key=lambda buffer: buffer.name):
        if each.dtype == "float32":
            found[each.name] = rng.uniform(0.001, 0.05, each.shape).astype(np.float32)
        else:
            found[each.name] = rng.integers(-128, 128, each.shape).astype(each.dtype)
    return found


def executed(function: Function, arrays: Arrays, bases: dict[str, int]) -> NDArray[np.generic]:
    """The result after the instructions of every iteration of the serial loops."""
    config = find_config("tiny")
    state = MachineState.zeros(config, np.zeros(16, np.uint8))
    (target,) = function.outputs
    for buffer in (*function.inputs, target):
        name, array = buffer.name, arrays[buffer.name]
        if name in ("bias", "scale"):
            words = array.reshape(-1, LANES)
            getattr(state.par, name)[bases[name] : bases[name] + len(words)] = words
            continue
        if buffer.scope == "par":
            continue
        memory = Memory(buffer.scope.value)
        words = array.reshape(-1).view(np.uint8).reshape(-1, config.word_bytes(memory))
        state.write_words(memory, bases[name] + np.arange(len(words)), words)
    nest = nest_of(function)
    match = tensorize(nest, LANES)
    serial = [loop for loop in nest.loops if loop.kind is LoopKind.SERIAL]
    for indices in product(*(range(loop.extent) for loop in serial)):
        at = {loop.name: index for loop, index in zip(serial, indices, strict=True)}
        instruction = match.instruction(at, bases)
        encode(instruction)
        execute(state, instruction)
    row = state.par.bias if target.dtype == "int32" else state.par.scale
    memory = {"act": state.act, "acc": state.acc, "par": row}[target.scope.value]
    start = bases[target.name]
    return memory[start : start + target.elements // LANES].reshape(target.shape)


def assert_same(function: Function, seed: int, bases: dict[str, int] = BASES) -> Match:
    arrays = arrays_of(function, np.random.default_rng(seed))
    found = executed(function, arrays, bases)
    (target,) = function.outputs
    inputs = {buffer.name: arrays[buffer.name] for buffer in function.inputs}
    wanted = interpret(function, inputs, initial={target.name: arrays[target.name]}, seed=seed)
    assert np.array_equal(found, wanted[target.name])
    return tensorize(nest_of(function), LANES)


def nested(loops: list[str], *body: str) -> list[str]:
    """Lines of ``body`` in loops, each given as ``name extent kind``."""
    lines = []
    for depth, loop in enumerate(loops):
        name, extent, *kind = loop.split()
        lines.append("  " * depth + f"for {name} in {extent} {' '.join(kind)}:")
    return [*lines, *("  " * len(loops) + line for line in body)]


def program(buffers: list[str], *lines: str) -> Function:
    """A function of ``buffers``, the last of which is written."""
    declared = [f"  input {each}" for each in buffers[:-1]] + [f"  output {buffers[-1]}"]
    text = "\n".join(['function "kernel"', *declared, *(f"  {line}" for line in lines)])
    return parse(text.replace("LANES", str(LANES)))


def requantized(value: str, zero_point: int, low: int, high: int) -> str:
    """``value`` with biases and scales of block c."""
    scaled = f"rint(cast(float32, {value} + bias[c, l]) * scale[c, l]) + {zero_point}.0:float32"
    return f"cast(int8, min(max({scaled}, {low}.0:float32), {high}.0:float32))"


PARAMETERS = ["bias: int32[2, LANES] par", "scale: float32[2, LANES] par"]


def conv(*, tiles: int = 1, deep: int = 1, place: str = "l") -> Function:
    """Strided 3x2 convolution, rows in ``tiles`` tiles, channel blocks in ``deep`` serial parts."""
    buffers = [
        "x: int8[2, 9, 7, LANES] act",
        "weights: int8[3, 2, 3, 2, LANES, LANES] wgt",
        "acc: int32[3, 4, 3, LANES] acc",
    ]
    row, block = f"(yo * {4 // tiles} + yi)", f"ko * {2 // deep} + ki"
    loops = [
        *(f"yo {tiles}", f"ko {deep}", "c 3 hardware", f"yi {4 // tiles} hardware"),
        *("x_ 3 hardware", f"ki {2 // deep} hardware", "ky 3 hardware", "kx 2 hardware"),
        *("l LANES vector", "i LANES vector"),
    ]
    source = f"cast(int32, x[{block}, {row} * 2 + ky, x_ * 2 + kx, i])"
    tile = f"cast(int32, weights[c, {block}, ky, kx, l, i])"
    return program(
        buffers,
        *nested(["a 3", "b 4", "d 3", "e LANES"], "acc[a, b, d, e] = 0:int32"),
        *nested(loops, f"acc[c, {row}, x_, {place}] add= {source} * {tile}"),
    )


PIXELS = ["po 2", "c 2 hardware", "pi 3 hardware", "l LANES vector"]
PLACE = "[c, po * 3 + pi, l]"


def pointwise(
    value: str,
    *buffers: str,
    finish: bool = False,
    table: bool = False,
) -> Function:
    """``y[c, p, l] = value`` for two blocks of 6 pixels, the pixels in two serial parts."""
    given = [*buffers, *(PARAMETERS if finish else ())]
    if finish:
        value = requantized(value, 3, -100, 90)
    if table:
        given.append("table: int8[256, LANES] tab")
        value = f"table[cast(int64, {value}) + 128, l]"
    given.append("y: int8[2, 6, LANES] act")
    return program(given, *nested(PIXELS, f"y{PLACE} = {value}"))


ACC = "acc: int32[2, 6, LANES] acc"
ACT = "x: int8[2, 6, LANES] act"
OTHER = "other: int8[2, 6, LANES] act"


def windows(
    function: str,
    *,
    taps: bool = False,
    finish: bool = False,
    lanes: str = "LANES",
    rows: str = "hardware",
) -> Function:
    """A 2x3 window over two blocks, moving by two rows.  rows: kind of the loop of its own."""
    wide = finish or taps
    value = "x[c, y_ * 2 + ky, x_ + kx, l]"
    buffers = ["x: int8[2, 6, 7, LANES] act"]
    if wide:
        value = f"cast(int32, {value})"
    if taps:
        buffers.append("taps: int8[2, 2, 3, LANES] tap")
        value += " * cast(int32, taps[c, ky, kx, l])"
    start = "0" if function == "add" else "-128"
    result = "total[]"
    if finish:
        buffers += PARAMETERS
        result = requantized(result, -5, -128, 127)
    buffers.append("y: int8[2, 3, 5, LANES] act")
    dtype = "int32" if wide else "int8"
    return program(
        buffers,
        *nested(
            ["c 2", "y_ 3 hardware", "x_ 5 hardware", f"l {lanes} vector"],
            f"alloc total: {dtype}[] register:",
            f"  total[] = {start}:{dtype}",
            f"  for ky in 2 {rows}:",
            "    for kx in 3 hardware:",
            f"      total[] {function}= {value}",
            f"  y[c, y_, x_, l] = {result}",
        ),
    )


@pytest.mark.parametrize("intrinsic", intrinsics(LANES), ids=lambda i: i.name)
def test_the_meaning_of_every_intrinsic_is_what_it_does(intrinsic: Intrinsic) -> None:
    function = intrinsic.declaration.meaning
    names = sorted(buffer.name for buffer in (*function.inputs, *function.outputs))
    bases = {name: 16 * number for number, name in enumerate(names)}
    bases |= {"bias": 5, "scale": 5, "target": 16}
    assert assert_same(function, 1, bases).intrinsic.name == intrinsic.name


@pytest.mark.parametrize(("tiles", "deep"), [(1, 1), (2, 1), (4, 2), (1, 2)])
def test_a_convolution_is_gemm(tiles: int, deep: int) -> None:
    match = assert_same(conv(tiles=tiles, deep=deep), tiles)
    assert match.intrinsic.name == "gemm"
    instruction = match.instruction({"yo": 0, "ko": deep - 1}, BASES)
    assert isinstance(instruction, Gemm)
    assert instruction.accumulate == (deep == 2)


@pytest.mark.parametrize(
    "function",
    [
        pointwise(f"x{PLACE}", ACT),
        pointwise(f"acc{PLACE}", ACC, finish=True),
        pointwise(f"acc{PLACE}", ACC, finish=True, table=True),
        pointwise(f"x{PLACE}", ACT, table=True),
        windows("max"),
        windows("add", finish=True),
        windows("add", taps=True, finish=True),
    ],
    ids=["copy", "requantize", "requantize and look up", "look up", "max", "mean", "depthwise"],
)
def test_folds_and_finishes_are_vector(function: Function) -> None:
    assert assert_same(function, 2).unit.name == "VECTOR"


def pair(first: str, second: str, *buffers: str, finish: bool = True) -> Function:
    return pointwise(
        f"cast(int32, {first}{PLACE}) * 70000:int32 + cast(int32, {second}{PLACE}) * -123:int32",
        *buffers,
        finish=finish,
    )


def test_a_scaled_tensor_is_one_vector() -> None:
    match = assert_same(pointwise(f"cast(int32, x{PLACE}) * 70000:int32", ACT, finish=True), 3)
    assert match.intrinsic.name == "vector.factor"


def test_a_sum_of_two_scaled_tensors_is_one_vector() -> None:
    match = assert_same(pair("x", "other", ACT, OTHER), 3, {**BASES, "other": 300})
    assert match.intrinsic.name == "vector.pair"


def times(place: str, other: str) -> Function:
    """A tensor times another, each less a zero point."""
    left, right = f"cast(int32, x{PLACE}) - -3:int32", f"cast(int32, other{place}) + 128:int32"
    return pointwise(f"({left}) * ({right})", ACT, other, finish=True)


@pytest.mark.parametrize(
    ("place", "other"), [(PLACE, OTHER), ("[c, 0, l]", "other: int8[2, 1, LANES] act")]
)
def test_a_product_of_two_tensors_is_one_vector(place: str, other: str) -> None:
    """One of them may stay while the other moves."""
    match = assert_same(times(place, other), 3, {**BASES, "other": 300})
    assert match.intrinsic.name == "vector.product"


def deep_nest() -> Function:
    names = [f"n{number}" for number in range(7)]
    shape, place = ", ".join(["2"] * 7), ", ".join(names)
    return program(
        [f"x: int8[{shape}, LANES] act", f"y: int8[{shape}, LANES] act"],
        *nested(
            [*(f"{name} 2 hardware" for name in names), "l LANES vector"],
            f"y[{place}, l] = x[{place}, l]",
        ),
    )


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (conv(place="i"), "does not run over lane|reduces, or does not"),
        (deep_nest(), "7 loops; it has 4 levels"),
        (windows("add", lanes="2"), "lanes"),
        (pointwise(f"x{PLACE}", "x: int8[2, 6, LANES] wgt"), "is in wgt"),
        (
            pointwise("x[c, pi * 2 + l]", f"x: int8[2, {6 * LANES}] act"),
            "does not move by whole words",
        ),
        (
            pointwise(f"acc{PLACE} * 3:int32", ACC, finish=True),
            "it computes",
        ),
        (windows("add"), "an int8 result that may be out of range needs a finish"),
        (pair("acc", "acc", ACC), "is in acc"),
        (
            times("[c, po * 3 + pi * 2048, l]", "other: int8[2, 6200, LANES] act"),
            "moves by 2048 words; required at most 2047",
        ),
        (windows("max", rows=""), "it folds over a serial loop"),
    ],
)
def test_a_nest_that_is_no_instruction_is_told_why(function: Function, reason: str) -> None:
    with pytest.raises(TensorizeError, match=f"nest of .* is not an instruction; .*({reason})"):
        tensorize(nest_of(function), LANES)


def test_rows_of_a_result_are_computed_by_themselves() -> None:
    function = windows("max")
    match = tensorize(nest_of(function), LANES)
    whole = match.instruction({"c": 1}, BASES)
    part = match.only(1, 2).instruction({"c": 1}, BASES)
    assert part.destination_address == whole.destination_address + 5  # type: ignore[union-attr]
    assert part.source_address == whole.source_address + 14  # type: ignore[union-attr]
    assert (whole.extent, part.extent) == ((3, 2, 5, 3, 1), (3, 2, 5, 2, 1))


def test_blocks_of_an_operand_may_lie_further_apart() -> None:
    function = program(
        ["x: int8[2, 6, LANES] act", "y: int8[2, 6, LANES] act"],
        *nested(["c 2 hardware", "p 6 hardware", "l LANES vector"], "y[c, p, l] = x[c, p, l]"),
    )
    match = tensorize(nest_of(function), LANES)
    apart = match.apart("source", 6, 9).instruction({}, {"x": 0, "y": 0})
    assert apart.source_stride[1:3] == (1, 9)  # type: ignore[union-attr]
    assert apart.destination_stride[:2] == (1, 6)  # type: ignore[union-attr]


def test_constant_offsets_and_serial_loops_move_the_bases() -> None:
    function = program(
        ["x: int8[12, LANES] act", "y: int8[12, LANES] act"],
        *nested(["o 3", "i 3 hardware", "l LANES vector"], "y[o * 3 + i + 2, l] = x[o * 3 + i, l]"),
    )
    vector = tensorize(nest_of(function), LANES).instruction({"o": 2}, {"x": 100, "y": 50})
    assert vector.source_address == 106  # type: ignore[union-attr]
    assert vector.destination_address == 58  # type: ignore[union-attr]


def test_loops_of_a_nest_are_spelled() -> None:
    assert str(Loop("y", 3, LoopKind.HARDWARE)) == "for y in 3 hardware"
