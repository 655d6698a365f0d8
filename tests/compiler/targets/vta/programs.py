"""Random programs without tokens, in so little memory that most instructions conflict."""

from dataclasses import replace

import numpy as np

from dovetail.isa.config import INSTRUCTION_BYTES, HardwareConfig
from dovetail.isa.configs import find_config
from dovetail.isa.encoding import encode
from dovetail.isa.footprint import with_bank_masks
from dovetail.isa.instructions import Finish, Fold, Gemm, Instruction, Load, Store, Vector
from dovetail.isa.memories import Memory
from dovetail.isa.semantics import execute
from dovetail.isa.state import MachineState
from dovetail.vta_sim.machine import SimResult, simulate

__all__ = ["DATA_BYTES", "TINY", "draw", "executed", "random_program", "same", "simulated", "start"]

TINY = find_config("tiny")
DATA_BYTES = 4096
"""DRAM below this address is data; the program lies above it."""

Rng = np.random.Generator


def draw(rng: Rng, config: HardwareConfig) -> Instruction:
    """One legal instruction with its bank masks; no address wraps."""
    make = (_load, _gemm, _vector, _store)[int(rng.integers(4))]
    return with_bank_masks(make(rng, config), config)


def random_program(rng: Rng, config: HardwareConfig, most: int = 24) -> list[Instruction]:
    """Up to ``most`` instructions."""
    return [draw(rng, config) for _ in range(int(rng.integers(2, most + 1)))]


def _act(rng: Rng, config: HardwareConfig) -> int:
    """A word at the beginning of one of two banks."""
    return int(rng.integers(2)) * config.bank_words(Memory.ACT) + int(rng.integers(24))


def _acc(rng: Rng, config: HardwareConfig) -> int:
    return int(rng.integers(2)) * config.bank_words(Memory.ACC) + int(rng.integers(8))


def _load(rng: Rng, config: HardwareConfig) -> Load:
    memory = list(Memory)[int(rng.integers(len(Memory)))]
    size = config.word_bytes(memory)
    base = {Memory.ACT: _act(rng, config), Memory.ACC: _acc(rng, config)}
    return Load(
        memory=memory,
        sram_address=base.get(memory, int(rng.integers(8))),
        dram_address=size * int(rng.integers(0, 1024 // size)),
        count_x=int(rng.integers(1, 6)),
    )


def _store(rng: Rng, config: HardwareConfig) -> Store:
    size = config.word_bytes(Memory.ACT)
    return Store(
        dram_address=size * int(rng.integers(0, 1024 // size)),
        sram_address=_act(rng, config),
        count_x=int(rng.integers(1, 6)),
    )


def _gemm(rng: Rng, config: HardwareConfig) -> Gemm:
    return Gemm(
        act_address=_act(rng, config),
        wgt_address=int(rng.integers(8)),
        acc_address=_acc(rng, config),
        extent=(int(rng.integers(1, 4)), int(rng.integers(1, 5)), 1, 1, 1, 1),
        act_stride=(1, 2, 0, 0, 0, 0),
        wgt_stride=(1, 0, 0, 0, 0, 0),
        acc_stride=(0, 1, 0, 0, 0, 0),
        reduction=1,
    )


def _vector(rng: Rng, config: HardwareConfig) -> Vector:
    """From ACC or ACT to ACT or ACC; ACT to ACT goes to words of its own."""
    to_acc = rng.random() < 0.3
    source = Memory.ACT if to_acc or rng.random() < 0.3 else Memory.ACC
    there = 32 + _act(rng, config) if source is Memory.ACT else _act(rng, config)
    return Vector(
        source=source,
        destination=Memory.ACC if to_acc else Memory.ACT,
        source_address=_act(rng, config) if source is Memory.ACT else _acc(rng, config),
        destination_address=_acc(rng, config) if to_acc else there,
        extent=(int(rng.integers(1, 3)), int(rng.integers(1, 6)), 1, 1, 1),
        source_stride=(1, 1, 0, 0, 0),
        destination_stride=(1, 0, 0, 0),
        fold=Fold(int(rng.integers(5))),
        finish=(Finish.NONE, Finish.REQUANTIZE, Finish.SHIFT)[int(rng.integers(3))],
        shift=3,
        lookup=not to_acc and rng.random() < 0.2,
        par_address=int(rng.integers(8)),
        tap_address=int(rng.integers(8)),
        tab_address=256 * int(rng.integers(2)),
    )


def start(config: HardwareConfig, count: int, seed: int = 0) -> MachineState:
    """A state of small random bytes, with room for ``count`` instructions after the data."""
    rng = np.random.default_rng(seed)
    dram = np.zeros(DATA_BYTES + INSTRUCTION_BYTES * count, np.uint8)
    dram[:DATA_BYTES] = rng.integers(0, 60, DATA_BYTES, dtype=np.uint8)
    return MachineState.zeros(config, dram)


def executed(program: list[Instruction], config: HardwareConfig) -> MachineState:
    """The state after executing the instructions one after the other."""
    state = start(config, len(program))
    for instruction in program:
        execute(state, instruction)
    return state


def simulated(program: list[Instruction], config: HardwareConfig, latency: int = 24) -> SimResult:
    """Result of the cycle-exact simulator, with memory that answers after ``latency`` cycles."""
    slow = replace(config, dram=replace(config.dram, latency_cycles=latency))
    state = start(slow, len(program))
    code = b"".join(encode(instruction) for instruction in program)
    state.dram[DATA_BYTES:] = np.frombuffer(code, np.uint8)
    window = (0, len(state.dram) - 1)
    return simulate(state, DATA_BYTES, len(program), window, watchdog=20_000)


def same(left: MachineState, right: MachineState) -> bool:
    """True if both hold the same data in every scratchpad and in DRAM below the program."""
    return np.array_equal(left.dram[:DATA_BYTES], right.dram[:DATA_BYTES]) and all(
        np.array_equal(left.words(memory), right.words(memory)) for memory in Memory
    )
