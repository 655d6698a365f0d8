"""The store unit on Verilator, behind memories of every kind, against the semantics."""

from typing import Any

import cocotb
from cocotb.triggers import FallingEdge, ReadOnly

from dovetail.isa import semantics
from dovetail.isa.instructions import Store

from .axi_memory import AXI_MEMORIES
from .memory_driver import DRAM_BYTES, begin, random_store, start_unit
from .memory_top import make_memory_top
from .rtl import simulate, simulate_all


async def run_store(dut: Any, instruction: Store, limit: int = 20_000) -> int:
    """Run one STORE, checking that the port is quiet once it has ended; return its cycles."""
    start_unit(dut, "store", instruction)
    await ReadOnly()
    assert dut.store__free.value == 1
    await FallingEdge(dut.clk)
    dut.store__start.value = 0
    for cycle in range(limit):
        await ReadOnly()
        assert dut.store__busy.value == 1
        done = dut.store__done.value == 1
        await FallingEdge(dut.clk)
        if done:
            await ReadOnly()
            assert dut.store__busy.value == 0
            assert dut.quiet.value == 1
            await FallingEdge(dut.clk)
            return cycle
    raise AssertionError(f"no end after {limit} cycles: {instruction}")


@cocotb.test()
async def random_blocks(dut: Any) -> None:
    """Blocks of every shape, rows overlapping or not, one after the other."""
    rng, state, dram = await begin(dut)
    for _ in range(16):
        instruction = random_store(rng)
        await run_store(dut, instruction)
        semantics.store(state, instruction)
        assert dram.data == state.dram.tobytes(), instruction


@cocotb.test()
async def nothing_is_written_after_a_stop(dut: Any) -> None:
    """``enable`` falls: only bytes offered before change; bursts taken are answered."""
    rng, state, dram = await begin(dut)
    semantics.store(state, instruction := Store(dram_address=0, sram_address=0, count_x=2000))
    start_unit(dut, "store", instruction)
    await FallingEdge(dut.clk)
    dut.store__start.value = 0
    for _ in range(int(rng.integers(20, 400))):
        await FallingEdge(dut.clk)
    dut.enable.value = 0
    await ReadOnly()
    # A beat on offer keeps its strobes until memory takes it.
    offered = dut.memory__wvalid.value == 1 and int(dut.memory__wstrb.value) != 0
    accepted = offered and dut.memory__wready.value == 1
    await FallingEdge(dut.clk)
    for cycle in range(3000):
        await ReadOnly()
        if dut.memory__wvalid.value == 1 and (not offered or accepted):
            assert int(dut.memory__wstrb.value) == 0
        accepted = accepted or dut.memory__wready.value == 1
        if dut.quiet.value == 1 and cycle > 100:
            break
        await FallingEdge(dut.clk)
    assert dut.quiet.value == 1
    length = len(dram.written)
    assert dram.written == list(range(length))
    assert dram.data[:length] == state.dram[:length].tobytes()


@cocotb.test()
async def block_across_the_end_of_the_window(dut: Any) -> None:
    """Bursts up to the one that leaves the window are written; that one is refused."""
    _, state, dram = await begin(dut)
    before = bytes(dram.data)
    semantics.store(state, Store(dram_address=DRAM_BYTES - 192, sram_address=5, count_x=16))
    start_unit(dut, "store", Store(dram_address=DRAM_BYTES - 192, sram_address=5, count_x=40))
    dut.window_limit.value = DRAM_BYTES - 66
    await FallingEdge(dut.clk)
    dut.store__start.value = 0
    for _ in range(300):
        await ReadOnly()
        if dut.store_outside.value == 1:
            break
        await FallingEdge(dut.clk)
    assert dut.store_outside.value == 1
    await FallingEdge(dut.clk)
    for _ in range(300):
        await FallingEdge(dut.clk)
    assert dram.data[:-128] == state.dram.tobytes()[:-128]
    assert dram.data[-128:] == before[-128:]


def test_random_blocks_are_stored_as_the_semantics_say() -> None:
    simulate_all(
        make_memory_top, [(random_blocks, {"seed": 21, "memory": each}) for each in AXI_MEMORIES]
    )


def test_after_a_stop_no_byte_is_offered_to_memory() -> None:
    values = [{"seed": seed, "memory": each} for seed in (22, 23) for each in AXI_MEMORIES]
    simulate_all(make_memory_top, [(nothing_is_written_after_a_stop, each) for each in values])


def test_a_block_that_leaves_the_window_is_refused() -> None:
    simulate(make_memory_top, block_across_the_end_of_the_window, seed=24, memory="prompt")
