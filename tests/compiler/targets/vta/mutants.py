"""Programs with one fault each: does the checker, or a run, notice?

    python -m tests.compiler.targets.vta.mutants --count 1000

A fault is a token removed, given one instruction of its unit too early or taken one too late, or an
address that is a word off.  A fault is caught when the checker refuses the program, or a run of it
leaves another result.  Those that are not are printed.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import click
import numpy as np
import onnx

from dovetail.compiler.front.integer import integer_graph
from dovetail.compiler.front.table import open_model
from dovetail.compiler.graph.passes.eliminate_dead import EliminateDead
from dovetail.compiler.graph.passes.simplify import simplify
from dovetail.compiler.targets.vta.check import CheckError, check
from dovetail.compiler.targets.vta.emit import CompiledProgram, compile_partition
from dovetail.compiler.targets.vta.passes.dense_to_conv import DenseToConv
from dovetail.compiler.targets.vta.passes.fuse import fuse
from dovetail.isa.config import HardwareConfig
from dovetail.isa.encoding import encode
from dovetail.isa.footprint import reads_parameters, with_bank_masks, written_memory
from dovetail.isa.instructions import (
    Fold,
    Gemm,
    Instruction,
    Load,
    Multiplier,
    Store,
    Vector,
)
from dovetail.isa.memories import Memory, Unit
from dovetail.isa.state import MachineState
from dovetail.vta_hw.simulate import RtlJob, run_programs
from dovetail.vta_sim.machine import simulate
from dovetail.vta_sim.timing import time_program

__all__ = ["KINDS", "Mutant", "Subject", "mutants"]

KINDS = ("remove", "early", "late", "address")
WATCHDOG = 1 << 20
RUNS = 2
"""Inputs that a mutant which passes the checker is run with."""


@dataclass(frozen=True)
class Subject:
    """A compiled network whose program is mutated; ``source``: what it reads."""

    name: str
    program: CompiledProgram
    source: str
    config: HardwareConfig

    @staticmethod
    def of(name: str, model: onnx.ModelProto, config: HardwareConfig) -> "Subject":
        """Compile ``model``."""
        layers = integer_graph(open_model(model))
        graph = EliminateDead().run(DenseToConv().run(simplify(layers)))
        partition = fuse(graph)
        program = compile_partition(graph, partition, config, time_program)
        return Subject(name, program, partition.sources[0].last, config)

    @cached_property
    def results(self) -> list[bytes]:
        """Memory after the sound program, for each input."""
        found = [self.run(self.program.instructions, seed) for seed in range(RUNS)]
        assert all(each is not None for each in found)
        return [each for each in found if each is not None]

    def run(self, instructions: Sequence[Instruction], seed: int) -> bytes | None:
        """All of DRAM and ACT after a random input, from the simulator; None for no end."""
        ended = simulate(*self._start(instructions, seed), watchdog=WATCHDOG)
        if not ended.finished:
            return None
        kept = ended.state.dram[: self.program.program_address]
        return bytes(kept) + ended.state.words(Memory.ACT).tobytes()

    def differ_in_rtl(self, tried: Sequence["Mutant"]) -> list[bool]:
        """True for those after which the RTL's memory differs from the simulator's.

        Raises AssertionError when it takes other cycles.
        """
        starts = [self._start(mutant.instructions, 0) for mutant in tried]
        jobs = [RtlJob(*start, watchdog=WATCHDOG, dump=True) for start in starts]
        found = []
        for start, rtl in zip(starts, run_programs(self.config, jobs), strict=True):
            sim = simulate(*start, watchdog=WATCHDOG)
            assert np.array_equal(sim.ended, rtl.ended)
            same = np.array_equal(sim.state.dram, rtl.state.dram)
            words = [(sim.state.words(each), rtl.state.words(each)) for each in Memory]
            found.append(not same or any(not np.array_equal(*pair) for pair in words))
        return found

    def _start(
        self, instructions: Sequence[Instruction], seed: int
    ) -> tuple[MachineState, int, int, tuple[int, int]]:
        """Memory with a random input, address and length of the program, and the window."""
        program, source = self.program, self.program.activations[self.source]
        dram = np.frombuffer(program.image, np.uint8).copy()
        size = source.blocks * source.height * source.width * source.lanes
        values = np.random.default_rng(seed).integers(0, 256, size, np.uint8)
        dram[program.addresses[self.source] :][:size] = values
        code = b"".join(encode(each) for each in instructions)
        dram[program.program_address :][: len(code)] = np.frombuffer(code, np.uint8)
        state = MachineState.zeros(self.config, dram)
        return state, program.program_address, len(instructions), (0, len(dram) - 1)

    def catches(self, mutant: "Mutant") -> str | None:
        """Who notices: ``checker`` or ``run``; None for nobody."""
        try:
            check(mutant.instructions, self.config)
        except CheckError:
            return "checker"
        for seed, wanted in enumerate(self.results):
            if self.run(mutant.instructions, seed) != wanted:
                return "run"
        return None


@dataclass(frozen=True, slots=True)
class Mutant:
    """A program with one fault, and what it is."""

    kind: str
    fault: str
    instructions: list[Instruction]


def mutants(subject: Subject, rng: np.random.Generator) -> Iterator[Mutant]:
    """Mutants of a subject without end, of all kinds in turn."""
    program = list(subject.program.instructions)
    tokens = list(_tokens(program))
    while True:
        for kind in KINDS:
            found: Mutant | None = None
            while found is None:
                if kind == "address":
                    found = _shifted(program, subject.config, rng)
                else:
                    giver, taker = tokens[int(rng.integers(len(tokens)))]
                    found = _without(program, kind, giver, taker)
            yield found


def _tokens(program: Sequence[Instruction]) -> Iterator[tuple[int, int]]:
    """Giver and taker of every token."""
    given: dict[tuple[Unit, Unit], list[int]] = {}
    for index, instruction in enumerate(program):
        for unit in instruction.wait:
            yield given[unit, instruction.unit].pop(0), index
        for unit in instruction.post:
            given.setdefault((instruction.unit, unit), []).append(index)


def _without(program: list[Instruction], kind: str, giver: int, taker: int) -> Mutant | None:
    """One token less, given too early, or taken too late."""
    changed = list(program)
    source, target = program[giver].unit, program[taker].unit
    if kind in ("remove", "early"):
        changed[giver] = replace(changed[giver], post=changed[giver].post - {target})
    if kind in ("remove", "late"):
        changed[taker] = replace(changed[taker], wait=changed[taker].wait - {source})
    if kind == "early":
        place = _near(program, range(giver - 1, -1, -1), source)
        if place is None or target in program[place].post:
            return None
        changed[place] = replace(changed[place], post=changed[place].post | {target})
    if kind == "late":
        place = _near(program, range(taker + 1, len(program)), target)
        if place is None or source in program[place].wait:
            return None
        changed[place] = replace(changed[place], wait=changed[place].wait | {source})
    return Mutant(kind, f"token from {giver} ({source.name}) to {taker} ({target.name})", changed)


def _near(program: Sequence[Instruction], places: range, unit: Unit) -> int | None:
    return next((place for place in places if program[place].unit is unit), None)


def _shifted(
    program: list[Instruction], config: HardwareConfig, rng: np.random.Generator
) -> Mutant | None:
    """One address a word higher or lower."""
    index = int(rng.integers(len(program)))
    instruction = program[index]
    spaces = _addresses(instruction)
    name = sorted(spaces)[int(rng.integers(len(spaces)))]
    memory = spaces[name]
    step = 1 if rng.random() < 0.5 else -1
    address = getattr(instruction, name)
    if memory is None:
        read = instruction.memory if isinstance(instruction, Load) else Memory.ACT
        moved = address + step * config.word_bytes(read)
    else:
        moved = (address + step) % config.depth(memory)
    if moved < 0:
        return None
    changed = list(program)
    shifted = replace(instruction, **{name: moved})  # type: ignore[arg-type]
    changed[index] = with_bank_masks(shifted, config)
    return Mutant("address", f"{name} of {index} ({instruction.unit.name}) {step:+}", changed)


def _addresses(instruction: Instruction) -> dict[str, Memory | None]:
    """The fields that hold an address in use, and its memory; None for DRAM."""
    match instruction:
        case Load(memory=memory):
            reads = instruction.words > 0
            return {"sram_address": memory} | ({"dram_address": None} if reads else {})
        case Store():
            return {"sram_address": Memory.ACT, "dram_address": None}
        case Gemm():
            return {
                "act_address": Memory.ACT,
                "wgt_address": Memory.WGT,
                "acc_address": Memory.ACC,
            }
        case Vector():
            found: dict[str, Memory | None] = {
                "source_address": instruction.source,
                "destination_address": written_memory(instruction),
            }
            if reads_parameters(instruction):
                found["par_address"] = Memory.PAR
            if instruction.fold is Fold.MAC and instruction.multiplier is Multiplier.TAP:
                found["tap_address"] = Memory.TAP
            return found


@click.command()
@click.option("--count", default=1000, show_default=True)
@click.option("--seed", default=1, show_default=True)
def main(count: int, seed: int) -> None:
    """Make COUNT mutants of several networks; print how many are caught, and all that are not."""
    from .test_mutants import subjects

    rng = np.random.default_rng(seed)
    sources = [(subject, mutants(subject, rng)) for subject in subjects()]
    caught, missed = Counter[tuple[str, str]](), []
    for number in range(count):
        subject, source = sources[number // len(KINDS) % len(sources)]
        mutant = next(source)
        by = subject.catches(mutant)
        caught[mutant.kind, by or "nobody"] += 1
        if by is None:
            missed.append(f"{subject.name}: {mutant.kind}: {mutant.fault}")
    for (kind, by), times in sorted(caught.items()):
        print(f"{kind:8} {by:8} {times}")
    print(f"caught: {1 - len(missed) / count:.2%} of {count}")
    print("\n".join(missed))


if __name__ == "__main__":
    main()
