"""Random faults in compiled programs, one at a time: how many does a check tell to the instruction?

python -m tests.compiler.debug.faults MODEL.onnx --target vta:zynq7020 --count 100
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from dovetail.isa.errors import DovetailError
from dovetail.isa.instructions import Finish, Gemm, Instruction, Load, Store, Vector
from dovetail.isa.memories import Memory
from dovetail.runtime.module import Module
from dovetail.runtime.profile.flows import token_flows

from .planted import (
    Subject,
    changed_bytes,
    changed_instruction,
    scaled,
    subject,
    without_token,
)


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault in some instructions: any of them is the right answer."""

    kind: str
    instructions: tuple[int, ...]
    module: Module


def _loads(memory: Memory) -> Callable[[Instruction], bool]:
    return lambda each: isinstance(each, Load) and each.memory is memory and bool(each.words)


def _is(*kinds: type) -> Callable[[Instruction], bool]:
    return lambda each: isinstance(each, kinds)


FIELDS: dict[str, tuple[Callable[[Instruction], bool], str]] = {
    "address of weights": (_loads(Memory.WGT), "dram_address"),
    "address of parameters": (_loads(Memory.PAR), "dram_address"),
    "address of taps": (_loads(Memory.TAP), "dram_address"),
    "address of an activation": (_loads(Memory.ACT), "dram_address"),
    "padding": (lambda each: isinstance(each, Load) and not each.words, "pad_value"),
    "GEMM's input": (_is(Gemm), "act_address"),
    "GEMM's weights": (_is(Gemm), "wgt_address"),
    "GEMM's sums": (_is(Gemm), "acc_address"),
    "GEMM's extent": (_is(Gemm), "extent"),
    "VECTOR's source": (_is(Vector), "source_address"),
    "VECTOR's destination": (_is(Vector), "destination_address"),
    "VECTOR's parameters": (
        lambda each: isinstance(each, Vector) and each.finish is Finish.REQUANTIZE,
        "par_address",
    ),
    "VECTOR's zero point": (_is(Vector), "zero_point"),
    "STORE's place": (_is(Store), "dram_address"),
}


def faults(whole: Subject, rng: np.random.Generator) -> Iterator[Fault]:
    """Faults without end, of all kinds in turn."""
    flows = token_flows(whole.program)
    scales = [i for i, each in enumerate(whole.program) if _loads(Memory.PAR)(each)]
    while True:
        for kind, (fits, field) in FIELDS.items():
            pool = [i for i, each in enumerate(whole.program) if fits(each)]
            if pool:
                index = int(rng.choice(pool))
                value = _other(whole, index, field)
                if value is not None:
                    module = changed_instruction(whole, index, **{field: value})
                    yield Fault(kind, (index,), module)
        index = int(rng.choice(scales))
        load = whole.program[index]
        assert isinstance(load, Load)
        address = load.dram_address + 4 * whole.config.block
        old = whole.part.dram[address : address + 4]
        yield Fault("scale", (index,), changed_bytes(whole.module, address, scaled(old, 1.3)))
        flow = flows[int(rng.integers(len(flows)))]
        yield Fault("token", (flow.target, flow.source), without_token(whole, flow))


def _other(whole: Subject, index: int, field: str) -> Any:
    """Another value of a field; None when there is none."""
    instruction = whole.program[index]
    value = getattr(instruction, field)
    match field:
        case "extent":
            levels = [level for level, count in enumerate(value) if count > 1]
            if not levels:
                return None
            return tuple(count - (level == levels[0]) for level, count in enumerate(value))
        case "dram_address":
            memory = instruction.memory if isinstance(instruction, Load) else Memory.ACT
            return value + whole.config.word_bytes(memory)
        case "pad_value":
            return value ^ 8
        case "zero_point":
            return value - 3 if value > 0 else value + 3
        case _:
            return value + 1


@click.command()
@click.argument("model", type=click.Path(path_type=Path, exists=True))
@click.option("--target", default="vta:tiny", show_default=True)
@click.option("--count", default=150, show_default=True, help="Faults.")
@click.option("--seed", default=1, show_default=True)
def main(model: Path, target: str, count: int, seed: int) -> None:
    """Count, by kind, the faults that change a byte and that are told to the instruction."""
    whole = subject(model, target)
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for fault, _ in zip(faults(whole, np.random.default_rng(seed)), range(count), strict=False):
        try:
            found = whole.debug(fault.module).check()
        except DovetailError as error:
            counts[fault.kind][type(error).__name__] += 1
            continue
        if found.cause is None:
            counts[fault.kind]["proof" if found.unproved else "no byte"] += 1
            continue
        right = found.cause.instruction.index in fault.instructions
        counts[fault.kind]["right" if right else "wrong"] += 1
        if not right:
            print(fault.kind, fault.instructions, found.finding, found.cause, sep="\n  ")
    for kind, each in counts.items():
        print(f"{kind:26}", ", ".join(f"{name} {n}" for name, n in sorted(each.items())))
    total = sum(counts.values(), Counter[str]())
    print(f"told to the instruction: {total['right']} of {total['right'] + total['wrong']}")


if __name__ == "__main__":
    main()
