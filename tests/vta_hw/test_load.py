"""The load unit on Verilator, behind memories of every kind, against the semantics."""

from typing import Any

import cocotb
from cocotb.triggers import FallingEdge, ReadOnly

from dovetail.isa import semantics
from dovetail.isa.footprint import load_cells
from dovetail.isa.instructions import Load
from dovetail.isa.memories import Memory
from dovetail.isa.state import MachineState
from dovetail.vta_hw.load_writes import table_rows

from .axi_memory import AXI_MEMORIES
from .memory_driver import DRAM_BYTES, begin, random_load, start_unit
from .memory_top import APART, CONFIG, PIECES, make_memory_top
from .rtl import simulate, simulate_all

ROWS = table_rows(CONFIG)
"""Words of TAB that LOAD writes at once, at most."""


async def run_load(
    dut: Any, instruction: Load, limit: int = 20_000
) -> dict[Memory, dict[int, int]]:
    """Run one LOAD; return what it wrote: nothing twice, nothing after its end."""
    start_unit(dut, "load", instruction)
    await ReadOnly()
    assert dut.load__free.value == 1
    await FallingEdge(dut.clk)
    dut.load__start.value = 0
    written: dict[Memory, dict[tuple[int, int], int]] = {memory: {} for memory in Memory}
    for _ in range(limit):
        await ReadOnly()
        assert dut.load__busy.value == 1
        for memory in Memory:
            pieces = int(getattr(dut, f"write_{memory.value}__enable").value)
            address = int(getattr(dut, f"write_{memory.value}__address").value)
            data = int(getattr(dut, f"write_{memory.value}__data").value)
            if memory is Memory.TAB:
                for row in (row for row in range(ROWS) if pieces >> row & 1):
                    place = (address // ROWS * ROWS + row) % CONFIG.tab_depth, 0
                    bits = 8 * CONFIG.block
                    assert place not in written[memory]
                    written[memory][place] = data >> bits * row & ((1 << bits) - 1)
                continue
            for piece in range(PIECES[memory]):
                if pieces >> piece & 1:
                    place = (address % CONFIG.depth(memory), piece)
                    assert place not in written[memory]
                    bits = 8 * CONFIG.word_bytes(memory) // PIECES[memory]
                    # Of WGT even and odd pieces get data of their own, of PAR both halves.
                    run = PIECES[memory] // APART[memory] if memory is Memory.PAR else 1
                    own = data >> bits * (piece // run % APART[memory])
                    written[memory][place] = own & ((1 << bits) - 1)
        done = dut.load__done.value == 1
        await FallingEdge(dut.clk)
        if done:
            await ReadOnly()
            assert dut.load__busy.value == 0
            assert not any(getattr(dut, f"write_{m.value}__enable").value for m in Memory)
            await FallingEdge(dut.clk)
            return {memory: _words(memory, found) for memory, found in written.items()}
    raise AssertionError(f"no end after {limit} cycles: {instruction}")


def _words(memory: Memory, written: dict[tuple[int, int], int]) -> dict[int, int]:
    """Whole words, of their pieces: of each word all of them."""
    bits = 8 * CONFIG.word_bytes(memory) // PIECES[memory]
    words = {address: 0 for address, _ in written}
    assert len(written) == len(words) * PIECES[memory]
    for (address, piece), data in written.items():
        words[address] |= data << (bits * piece)
    return words


def expected_writes(state: MachineState, instruction: Load) -> dict[int, bytes]:
    """Writes of the semantics: every byte of the padded block."""
    cells, _ = load_cells(instruction, CONFIG.depth(instruction.memory))
    semantics.load(state, instruction)
    words = state.words(instruction.memory)
    return {int(cell): words[cell].tobytes() for cell in cells.reshape(-1)}


@cocotb.test()
async def random_blocks(dut: Any) -> None:
    """Blocks for every memory, padded or not, strides of both signs, one after the other."""
    rng, state, _ = await begin(dut)
    for _ in range(30):
        instruction = random_load(rng)
        written = await run_load(dut, instruction)
        found = {
            address: word.to_bytes(CONFIG.word_bytes(instruction.memory), "little")
            for address, word in written.pop(instruction.memory).items()
        }
        assert not any(written.values()), "a memory other than the destination was written"
        assert found == expected_writes(state, instruction), instruction


@cocotb.test()
async def block_across_the_end_of_the_window(dut: Any) -> None:
    """The burst that leaves the window is refused, and no later one is asked for."""
    _, _, _ = await begin(dut)
    dut.window_limit.value = DRAM_BYTES - 2
    instruction = Load(memory=Memory.ACT, sram_address=0, dram_address=DRAM_BYTES - 96, count_x=24)
    start_unit(dut, "load", instruction)
    await FallingEdge(dut.clk)
    dut.load__start.value = 0
    words = 0
    for _ in range(200):
        await ReadOnly()
        words += int(dut.write_act__enable.value)
        if dut.load_outside.value == 1:
            break
        await FallingEdge(dut.clk)
    assert dut.load_outside.value == 1
    await FallingEdge(dut.clk)
    dut.enable.value = 0
    for _ in range(300):
        await ReadOnly()
        words += int(dut.write_act__enable.value)
        await FallingEdge(dut.clk)
    await ReadOnly()
    assert dut.quiet.value == 1
    assert words == 8, "the first burst has eight words"


def test_random_blocks_are_loaded_as_the_semantics_say() -> None:
    simulate_all(
        make_memory_top, [(random_blocks, {"seed": 11, "memory": each}) for each in AXI_MEMORIES]
    )


def test_a_block_that_leaves_the_window_is_refused() -> None:
    simulate(make_memory_top, block_across_the_end_of_the_window, seed=12, memory="paused")
