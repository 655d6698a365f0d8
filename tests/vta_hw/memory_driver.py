"""Drives FETCH, LOAD and STORE in ``MemoryTop``, standing in for the issue logic."""

from dataclasses import replace
from typing import Any

import numpy as np
from cocotb.triggers import FallingEdge

from dovetail.isa.encoding import encode
from dovetail.isa.footprint import load_cells
from dovetail.isa.instructions import Load, Store
from dovetail.isa.memories import Memory
from dovetail.isa.state import MachineState
from dovetail.vta_hw import layouts

from .axi_memory import Dram, attach_memory
from .memory_top import CONFIG
from .rtl import parameters, start_clock

__all__ = ["DRAM_BYTES", "begin", "random_load", "random_state", "random_store", "start_unit"]

DRAM_BYTES = 1 << 16
LAYOUTS = {"load": layouts.LOAD, "store": layouts.STORE}


async def begin(dut: Any) -> tuple[np.random.Generator, MachineState, Dram]:
    """Reset, fill the ACT of STORE, and attach a memory of the test's kind and seed.

    Return the generator of random numbers, what the machine holds, and the DRAM behind the port.
    """
    values = parameters()
    rng = np.random.default_rng(values["seed"])
    state = random_state(rng)
    dram = Dram(bytearray(state.dram.tobytes()))
    await start_clock(dut)
    attach_memory(dut, values["memory"], dram, np.random.default_rng(values["seed"] + 1))
    dut.window_base.value = 0
    dut.window_limit.value = DRAM_BYTES - 1
    dut.full.value = 0
    dut.act__enable.value = 1
    for address, word in enumerate(state.words(Memory.ACT)):
        dut.act__address.value = address
        dut.act__data.value = int.from_bytes(word.tobytes(), "little")
        await FallingEdge(dut.clk)
    dut.act__enable.value = 0
    dut.enable.value = 1
    return rng, state, dram


def random_state(rng: np.random.Generator) -> MachineState:
    """DRAM and ACT of random bytes."""
    state = MachineState.zeros(CONFIG, rng.integers(0, 256, DRAM_BYTES).astype(np.uint8))
    state.act[:] = rng.integers(-128, 128, state.act.shape)
    return state


def start_unit(dut: Any, unit: str, instruction: Load | Store) -> None:
    """Hand ``instruction`` to ``unit`` in this cycle."""
    word = int.from_bytes(encode(instruction), "little")
    getattr(dut, f"{unit}__start").value = 1
    getattr(dut, f"{unit}__instruction").value = word & ((1 << LAYOUTS[unit].size) - 1)


def _dram_place(
    rng: np.random.Generator, size: int, counts: tuple[int, int, int]
) -> tuple[int, int, int]:
    """Address and strides (y, z), multiples of ``size``, that keep a block in DRAM."""
    x, y, z = counts
    room = DRAM_BYTES // size - x
    stride_y = int(rng.integers(-40, 41)) if y > 1 else int(rng.integers(-(1 << 20), 1 << 20))
    stride_z = int(rng.integers(-90, 91)) if z > 1 else 0
    corners = [
        j * stride_y * (y > 1) + k * stride_z * (z > 1) for j in (0, y - 1) for k in (0, z - 1)
    ]
    low, high = max(0, -min(corners)), room - max(0, *corners)
    start = int(rng.integers(low, high))
    if y <= 1:
        stride_y = 0
    return start * size, stride_y * size, stride_z * size


def random_load(rng: np.random.Generator) -> Load:
    """Any legal block of at most some hundred cells, often padded, sometimes a pure fill."""
    while True:
        load = _random_block(rng)
        cells, _ = load_cells(load, CONFIG.depth(load.memory))
        if len(np.unique(cells)) == cells.size:
            return load


def _random_block(rng: np.random.Generator) -> Load:
    memory = list(Memory)[rng.integers(0, len(Memory))]
    x, y, z = (int(rng.integers(1, most)) for most in (25, 5, 4))
    if rng.integers(0, 4) == 0:
        x, y, z = int(rng.integers(30, 80)), 1, 1
    pads = [int(pad) for pad in rng.integers(0, 4, 4) * (rng.integers(0, 3, 4) == 0)]
    if rng.integers(0, 8) == 0:
        x, pads[0] = 0, pads[0] or 2
    elif rng.integers(0, 8) == 0:
        y, pads[2] = 0, pads[2] or 1
    columns, rows = pads[0] + x + pads[1], pads[2] + y + pads[3]
    stride_y = columns + int(rng.integers(0, 3))
    stride_z = stride_y * rows + int(rng.integers(0, 3))
    sign_y, sign_z = (int(sign) for sign in rng.choice([-1, 1], 2))
    nibbles = memory in CONFIG.short_memories and bool(rng.integers(0, 2))
    same = nibbles and memory is Memory.PAR and bool(rng.integers(0, 2))
    size = CONFIG.short_bytes(memory, same=same) if nibbles else CONFIG.word_bytes(memory)
    # Of a table in its short form several words come in a beat.
    rows = CONFIG.bus_bytes // size if nibbles and memory is Memory.TAB else 1
    address, dram_y, dram_z = _dram_place(rng, size * rows, (x, max(y, 1), z))
    pads[0] = -(-pads[0] // rows) * rows
    columns = pads[0] + x * rows + pads[1]
    stride_y = -(-max(stride_y, columns) // rows) * rows
    stride_z = -(-max(stride_z, stride_y * (pads[2] + y + pads[3])) // rows) * rows
    load = Load(
        memory=memory,
        sram_address=int(rng.integers(0, 1 << 16)) // rows * rows,
        dram_address=address,
        count_x=x * rows,
        count_y=y,
        count_z=z,
        dram_stride_y=dram_y,
        dram_stride_z=dram_z,
        sram_stride_y=sign_y * stride_y,
        sram_stride_z=sign_z * stride_z,
        pad_x_before=pads[0],
        pad_x_after=pads[1],
        pad_y_before=pads[2],
        pad_y_after=pads[3],
        pad_value=int(rng.integers(-128, 128)),
        nibbles=nibbles,
        gap=int(same),
    )
    wants = memory is Memory.ACT or rng.integers(0, 3) == 0
    return _windows(rng, load) if wants and x and rng.integers(0, 2) else load


def _windows(rng: np.random.Generator, load: Load) -> Load:
    """``load`` into ACT, its rows of windows somewhere in the middle of DRAM."""
    bus = CONFIG.bus_bytes
    gap = int(rng.integers(0, 3))
    stride = (abs(load.sram_stride_y) + load.count_x) * (1 + gap)
    step = int(rng.integers(bus, 40))
    return replace(
        load,
        memory=Memory.ACT,
        nibbles=False,
        pad_x_before=0,
        pad_x_after=0,
        dram_address=DRAM_BYTES // 2 + int(rng.integers(-2000, 2000)),
        dram_stride_y=bus * int(rng.integers(-400, 400)),
        dram_stride_z=bus * int(rng.integers(-900, 900)),
        sram_stride_y=stride,
        sram_stride_z=stride * load.rows,
        step=step,
        gap=gap,
        row_first=int(rng.integers(0, 30)) * int(rng.integers(0, 2)),
        row_end=int(rng.integers(0, load.count_x * step + 20)),
    )


def random_store(rng: np.random.Generator) -> Store:
    """Any legal block of at most some hundred words."""
    x, y, z = (int(rng.integers(1, most)) for most in (30, 6, 4))
    if rng.integers(0, 4) == 0:
        x, y, z = int(rng.integers(30, 120)), 1, 1
    address, dram_y, dram_z = _dram_place(rng, CONFIG.word_bytes(Memory.ACT), (x, y, z))
    return Store(
        dram_address=address,
        sram_address=int(rng.integers(0, 1 << 16)),
        count_x=x,
        count_y=y,
        count_z=z,
        dram_stride_y=dram_y,
        dram_stride_z=dram_z,
        sram_stride_y=int(rng.integers(-(1 << 15), 1 << 15)),
        sram_stride_z=int(rng.integers(-(1 << 15), 1 << 15)),
    )
