"""Instructions, one after the other, on symbols instead of bytes.

Which words an instruction touches is said by ``isa.footprint``, what it computes by the manual.
Units, tokens and time play no part: that every run leaves what this order leaves is what the race
checker shows.
"""

import numpy as np

from dovetail.isa.footprint import block_bytes, dram_word_bytes, load_cells, nest
from dovetail.isa.instructions import Gemm, Instruction, Load, Store, Vector
from dovetail.isa.memories import Memory
from dovetail.isa.nibbles import from_nibbles
from dovetail.isa.short_form import from_short

from ..errors import TranslationError
from .matrix import gemm
from .state import State
from .symbol_sums import chosen
from .symbols import Array, constants, integers, words_of, write
from .vector import vector

__all__ = ["execute"]


def execute(state: State, instruction: Instruction) -> None:
    """Apply one instruction.

    Raises TranslationError where it takes a parameter, tap or table from what is not constant.
    """
    match instruction:
        case Load():
            _load(state, instruction)
        case Gemm():
            gemm(state, instruction)
        case Vector():
            vector(state, instruction)
        case Store():
            _store(state, instruction)


def _load(state: State, load: Load) -> None:
    config, memory = state.config, load.memory
    size = dram_word_bytes(load, config)
    cells, data = load_cells(load, config.depth(memory))
    starts = block_bytes(load.dram_address, load, size)
    places = starts[:, None] + np.arange(size)
    outside = np.zeros(places.shape, bool)
    if load.step:
        column = (np.arange(len(places)) % load.count_x * load.step)[:, None] + np.arange(size)
        outside = (column < load.row_first) | (column >= load.row_end)
    places = _in_dram(state, np.where(outside, 0, places), load)
    padding = cells[~data]
    if load.nibbles and memory is Memory.WGT:
        _constant(state, places, load)
        weights = from_nibbles(state.bytes[places], config).reshape(len(places), -1)
        write(state.words[memory], cells[data], constants(weights))
        padded = np.full((len(padding), weights.shape[1]), load.pad_value, np.int8)
        write(state.words[memory], padding, constants(padded))
        return
    if memory in (Memory.ACT, Memory.WGT):
        fill = constants(np.full((len(padding), size), load.pad_value, np.int8))
        write(state.words[memory], padding, fill)
        pad = constants(np.full(places.shape, load.pad_value, np.int8))
        found = chosen(outside, pad, state.dram.moved(lambda x: x[places]))
        write(state.words[memory], cells[data], found)
        return
    special = load.step or load.same or len(padding)
    if memory is Memory.PAR and not (state.known[places].all() or special):
        # The host makes some of these for each run.
        given = words_of(state.dram.moved(lambda x: x[places]))
        if load.nibbles:
            given = np.concatenate([np.zeros_like(given), given], axis=1)
        state.parameters[cells[data]] = given.astype(np.int32).view(np.uint8)
        state.made[cells[data]] = ~state.known[places].all(axis=1)
        return
    _constant(state, places, load)
    raw = np.where(outside, np.uint8(load.pad_value & 0xFF), state.bytes[places])
    if load.nibbles:
        raw = from_short(raw, memory, config, same=load.same)
    fill_raw = np.full((len(padding), raw.shape[1]), load.pad_value & 0xFF, np.uint8)
    for where, words in ((padding, fill_raw), (cells[data], raw)):
        if memory is Memory.PAR:
            state.parameters[where] = words
            state.made[where] = False
        elif memory in (Memory.TAB, Memory.TAP):
            held = state.tables if memory is Memory.TAB else state.taps
            held[where] = words.view(np.int8)
        else:
            write(state.words[memory], where, integers(words.view(np.int32)))


def _constant(state: State, places: Array, load: Load) -> None:
    """Refuse ``places`` whose bytes are not known."""
    if not state.known[places].all():
        raise TranslationError(f"a LOAD of {load.memory.name} reads what is not constant: {load}")


def _store(state: State, store: Store) -> None:
    config = state.config
    rows = nest(
        store.sram_address,
        (store.count_x, store.count_y, store.count_z),
        (1, store.sram_stride_y, store.sram_stride_z),
        config.act_depth,
    )
    size = config.word_bytes(Memory.ACT)
    places = block_bytes(store.dram_address, store, size)[:, None] + np.arange(size)
    _in_dram(state, places, store)
    state.put(places, state.words[Memory.ACT].moved(lambda x: x[rows]))


def _in_dram(state: State, places: Array, instruction: Instruction) -> Array:
    """``places``, if all are existing bytes."""
    if places.size and (places.min() < 0 or places.max() >= len(state.bytes)):
        raise TranslationError(
            f"DRAM has {len(state.bytes)} bytes; byte {int(places.max())} is touched: {instruction}"
        )
    return places
