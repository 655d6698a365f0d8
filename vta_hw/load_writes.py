"""Writes of LOAD: whole words, or beats of wide ones, and cells of padding."""

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Value

from dovetail.isa.config import SHORT_ROWS, HardwareConfig
from dovetail.isa.latency import pipeline_stages
from dovetail.isa.memories import Memory

from .pipeline import COPIES, copies, delayed, delays
from .ports import WritePort

__all__ = ["parameters_of", "table_rows", "write_beats", "write_port", "write_words"]

PART_BYTES = 64
"""Bytes of a word whose choice between data and padding is one wire."""

PARAMETER_BITS = 32
"""Bits of a bias or a scale."""

Ports = Mapping[Memory, Any]
"""LOAD's side of each memory's ``WritePort``."""


def table_rows(config: HardwareConfig) -> int:
    """Words of TAB that may be written at once: neighbours, of which the first is a multiple."""
    return SHORT_ROWS if config.short_constants else 1


def write_port(memory: Memory, config: HardwareConfig) -> WritePort:
    """LOAD's side of a memory; of TAB with several rows, each is a piece with data of its own."""
    size = config.word_bytes(memory)
    rows = table_rows(config)
    if memory is Memory.TAB and rows > 1:
        return WritePort(8 * size, rows, rows)
    pieces = size // config.bus_bytes if memory in config.by_beats else 1
    return WritePort(8 * size // pieces, pieces, 1 + (memory in config.short_memories))


def write_words(
    m: Module,
    config: HardwareConfig,
    ports: Ports,
    written: Value,
    place: Value,
    pad_value: Value,
    complete: Value,
    words: tuple[Value, Value],
    pads: Value,
    chosen: tuple[Value, Value],
) -> None:
    """Write a word, or a cell of padding, ``Stages.write`` cycles later.

    written: code of the memory.  place: of the word, that much later.  complete: whether there is a
    word.  words: it, that much later, and that of windows.  pads: whether there is a cell.
    chosen: whether the word is one of windows, and whether it is several of TAB.
    """
    word, of_windows = words
    windowed, fours = chosen
    late = pipeline_stages(config).write
    enables = delays(m, complete | pads, "writes", late, reset=True)[-1]
    whole: list[Value] = [complete]
    if late:
        # All words together have hundreds of bits: a register for each of some parts.
        whole = copies(m, delays(m, complete, "word_next", late - 1)[-1], "word_now", COPIES)
    choices = cycle(whole)
    for memory in (each for each in Memory if each not in config.by_beats):
        port = ports[memory]
        size = config.word_bytes(memory)
        value = word[: 8 * size]
        if memory is Memory.ACT:
            value = Mux(windowed, of_windows, value)
        enable = (written == memory.code) & enables
        if memory is Memory.TAB and table_rows(config) > 1:
            several = delays(m, complete & fours, "several", late, reset=True)[-1]
            pad = pad_value.as_unsigned().replicate(size)
            plain = Mux(next(choices), value, pad)
            _write_rows(m, config, port, (enable, several), place, (plain, value))
            continue
        m.d.comb += port.enable.eq(enable)
        for first in range(0, size, PART_BYTES):
            part = value[8 * first : 8 * (first + PART_BYTES)]
            pad = pad_value.as_unsigned().replicate(len(part) // 8)
            data_part = port.data[8 * first : 8 * (first + PART_BYTES)]
            m.d.comb += data_part.eq(Mux(next(choices), part, pad))


def _write_rows(
    m: Module,
    config: HardwareConfig,
    port: Any,
    enables: tuple[Value, Value],
    place: Value,
    words: tuple[Value, Value],
) -> None:
    """Write one word of TAB, or with ``several`` as many as come in a beat, of which each has a
    part that repeats over the lanes.  The second of ``words`` has the beat in each of its beats.
    """
    enable, several = enables
    plain, beats = words
    rows, size = table_rows(config), config.short_bytes(Memory.TAB)
    own = [several | (place[: rows.bit_length() - 1] == row) for row in range(rows)]
    m.d.comb += port.enable.eq(Cat(own) & enable.replicate(rows))
    for row in range(rows):
        lanes = (
            beats.word_select(
                lane // config.bus_bytes * config.bus_bytes + row * size + lane % size, 8
            )
            for lane in range(config.block)
        )
        data = port.data.word_select(row, 8 * config.block)
        m.d.comb += data.eq(Mux(several, Cat(lanes), plain))


def parameters_of(value: Value, short: Value, same: Value) -> list[Value]:
    """Biases and scales of PAR from a beat: all of it, or no bias where a word is ``short``; or, of
    the same bias and scale in all lanes, one of its halves each, if a beat has both.
    """
    bits = len(value)
    bias, scale = value & ~(short & ~same).replicate(bits), value
    if bits >= 2 * PARAMETER_BITS:
        count = bits // PARAMETER_BITS
        bias = Mux(same, value.word_select(0, PARAMETER_BITS).replicate(count), bias)
        scale = Mux(same, value.word_select(1, PARAMETER_BITS).replicate(count), scale)
    return [bias, scale]


def write_beats(
    m: Module,
    config: HardwareConfig,
    ports: Ports,
    written: Value,
    pieces: Value,
    pads: Value,
    value: Value,
    parameters: Sequence[Value] = (),
) -> None:
    """Write ``value``, a beat to some pieces of a word, or padding to all, ``Stages.write`` cycles
    later, to the memory with the code ``written``.

    parameters: with short constants, what biases and scales of PAR get in place of it.
    """
    late = pipeline_stages(config).write
    memories = config.by_beats
    own: list[Value] = [value] * len(memories)
    if parameters:
        own[memories.index(Memory.PAR)] = Cat(parameters)
    if late:
        pieces = delays(m, pieces, "pieces", late - 1, reset=True)[-1]
        pads = delays(m, pads, "pads", late - 1, reset=True)[-1]
        if parameters:
            late_values = [delays(m, each, "value_late", late - 1)[-1] for each in own]
            own = [delayed(m, each, "value_now") for each in late_values]
        else:
            value = delays(m, value, "value_late", late - 1)[-1]
            # The memories have a register each: together they are spread all over an FPGA.
            own = copies(m, value, "value_now", len(memories))
    pieces |= pads.replicate(len(pieces))
    for memory, data in zip(memories, own, strict=True):
        port = ports[memory]
        enable = pieces[: len(port.enable)]
        enable &= (written == memory.code).replicate(len(enable))
        if late:
            enable = delayed(m, enable, f"{memory.value}_pieces", reset=True)
        m.d.comb += [port.enable.eq(enable), port.data.eq(data[: len(port.data)])]
