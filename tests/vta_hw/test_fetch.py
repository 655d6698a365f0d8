"""FETCH on Verilator: legality of words against the decoder, dispatch in order."""

from collections.abc import Iterator
from typing import Any

import cocotb
import numpy as np
import pytest
from amaranth.sim import Simulator
from cocotb.triggers import FallingEdge, ReadOnly

from dovetail.isa.config import INSTRUCTION_BYTES, HardwareConfig
from dovetail.isa.configs import find_config
from dovetail.isa.encoding import decode
from dovetail.isa.errors import EncodingError
from dovetail.isa.instructions import FORMATS
from dovetail.isa.legality import legality_problem
from dovetail.isa.memories import Unit
from dovetail.vta_hw.legality import Legality

from .axi_memory import AXI_MEMORIES, Dram
from .memory_driver import begin
from .memory_top import CONFIG, make_memory_top
from .rtl import simulate


def is_legal(word: int, config: HardwareConfig) -> bool:
    """The instruction set's verdict on ``word``."""
    try:
        instruction = decode(word.to_bytes(INSTRUCTION_BYTES, "little"))
    except EncodingError:
        return False
    return legality_problem(instruction, config) is None


def random_words(rng: np.random.Generator, config: HardwareConfig, count: int) -> Iterator[int]:
    """Words often legal: fields random or extreme, enumerations valid, perhaps a bit flipped."""
    for _ in range(count):
        layout = FORMATS[rng.integers(0, len(FORMATS))]
        values = {}
        for field in layout.fields:
            values[field.name] = int(rng.integers(field.low, field.high + 1))
            if rng.integers(0, 8) == 0:
                values[field.name] = int(rng.choice([0, field.low, field.high]))
        unit = FORMATS.index(layout)
        values["opcode"] = unit + 1
        for name in ("wait", "post"):
            values[name] &= ~(1 << unit)
        grain = config.block * int(rng.choice([1, config.block, 8]))
        for name in ("dram_address", "dram_stride_y", "dram_stride_z"):
            if name in values:
                values[name] -= values[name] % grain
        if layout is FORMATS[Unit.LOAD] and rng.integers(0, 4):
            windows = rng.integers(0, 2)
            values["step"] = windows * int(rng.integers(config.bus_bytes - 2, 256))
            values |= {"pad_x_before": 0, "memory": 0} if windows else {}
            values |= {"pad_x_after": 0} if windows and rng.integers(0, 8) else {}
        if layout is FORMATS[Unit.VECTOR]:
            values["rounding"] %= 2
            values["tab_address"] &= ~255
            values["fold"] %= 5
            values["finish"] %= 3
            values["lookup"] &= 1 - values["destination"]
            values["reduction_levels"] = 1 + values["reduction_levels"] % 5
            low, high = sorted((values["low"], values["high"]))
            values |= {"low": low, "high": high}
        word = layout.encode(values)
        if rng.integers(0, 2):
            word ^= 1 << int(rng.integers(0, layout.used_bits))
        if rng.integers(0, 16) == 0:
            word ^= 1 << int(rng.integers(0, 8 * INSTRUCTION_BYTES))
        yield word


@pytest.mark.parametrize("name", ["tiny", "large"])
def test_a_word_is_refused_exactly_when_the_instruction_set_refuses_it(name: str) -> None:
    config = find_config(name)
    rng = np.random.default_rng(31)
    words = [*random_words(rng, config, 1500), 0, (1 << 512) - 1]
    words += [int.from_bytes(rng.bytes(INSTRUCTION_BYTES), "little") for _ in range(100)]
    verdicts = [is_legal(word, config) for word in words]
    assert 0.2 < np.mean(verdicts) < 0.8, "the words must be of both kinds"
    dut = Legality(config)

    async def compare(ctx: Any) -> None:
        for word, legal in zip(words, verdicts, strict=True):
            ctx.set(dut.word, word)
            await ctx.delay(1e-9)
            assert ctx.get(dut.legal) == legal, hex(word)
            if legal:
                assert ctx.get(dut.unit) == (word & 15) - 1

    simulator = Simulator(dut)
    simulator.add_testbench(compare)
    simulator.run()


def write_program(rng: np.random.Generator, dram: Dram, address: int, count: int) -> list[int]:
    """Put legal words at ``address``; return them."""
    words: list[int] = []
    for word in random_words(rng, CONFIG, 100 * count):
        if is_legal(word, CONFIG) and len(words) < count:
            words.append(word)
    for index, word in enumerate(words):
        place = address + INSTRUCTION_BYTES * index
        dram.data[place : place + INSTRUCTION_BYTES] = word.to_bytes(INSTRUCTION_BYTES, "little")
    return words


async def follow(dut: Any, rng: np.random.Generator, words: list[int], limit: int = 30_000) -> int:
    """Check each dispatch, queues full at random, until one is refused or all are done."""
    sent = 0
    for _ in range(limit):
        full = int(rng.integers(0, 16)) if rng.integers(0, 3) else 0
        dut.full.value = full
        await ReadOnly()
        requested, dispatched = int(dut.requested.value), int(dut.dispatched.value)
        assert dispatched == sent <= int(dut.received.value) <= requested <= len(words)
        assert requested - dispatched <= CONFIG.fetch_ahead
        if push := int(dut.push.value):
            unit = (words[sent] & 15) - 1
            assert push == 1 << unit
            assert not full >> unit & 1
            assert int(dut.word.value) == words[sent]
            sent += 1
        refused = (
            dut.illegal.value == 1 or dut.read_error.value == 1 or dut.fetch_outside.value == 1
        )
        await FallingEdge(dut.clk)
        if refused or sent == len(words):
            return sent
    raise AssertionError(f"{sent} of {len(words)} dispatched after {limit} cycles")


@cocotb.test()
async def whole_program(dut: Any) -> None:
    """Every word reaches the queue of its unit, in order."""
    rng, _, dram = await begin(dut)
    dut.enable.value = 0
    words = write_program(rng, dram, 0x440, 60)
    dut.program_address.value = 0x440
    dut.program_count.value = len(words)
    dut.enable.value = 1
    assert await follow(dut, rng, words) == len(words)


@cocotb.test()
async def illegal_word(dut: Any) -> None:
    """Dispatch stops in front of the first word that is not legal."""
    rng, _, dram = await begin(dut)
    dut.enable.value = 0
    words = write_program(rng, dram, 0, 30)
    dram.data[17 * INSTRUCTION_BYTES] = 0
    words[17] &= ~255
    dut.program_address.value = 0
    dut.program_count.value = len(words)
    dut.enable.value = 1
    assert await follow(dut, rng, words) == 17
    await ReadOnly()
    assert dut.illegal.value == 1
    assert int(dut.dispatched.value) == 17


@cocotb.test()
async def program_across_the_end_of_the_window(dut: Any) -> None:
    """The first instruction outside the window is not asked for."""
    rng, _, dram = await begin(dut)
    dut.enable.value = 0
    words = write_program(rng, dram, 0, 30)
    dut.window_limit.value = 9 * INSTRUCTION_BYTES + 62
    dut.program_address.value = 0
    dut.program_count.value = len(words)
    dut.enable.value = 1
    await follow(dut, rng, words)
    await ReadOnly()
    assert int(dut.requested.value) == 9


def test_a_program_is_dispatched_in_order_to_the_queues_of_its_units() -> None:
    for each in AXI_MEMORIES:
        simulate(make_memory_top, whole_program, seed=32, memory=each)


def test_dispatch_stops_at_an_illegal_word_and_where_the_program_leaves_the_window() -> None:
    simulate(make_memory_top, illegal_word, seed=33, memory="paused")
    simulate(make_memory_top, program_across_the_end_of_the_window, seed=34, memory="shuffled")
