"""Kernels of a PTX text: parameters, arrays and instructions."""

import re
from dataclasses import dataclass, field

__all__ = ["Instruction", "Kernel", "read_kernels"]

SIZES = {"pred": 1, "b8": 1, "b16": 2, "b32": 4, "b64": 8, "f32": 4, "f64": 8}
ARRAY = re.compile(r"\.(shared|local) \.align \d+ \.b8\s+([\w$.]+)\[(\d*)\]")
SCALAR = re.compile(r"\.shared \.align \d+ \.(\w+)\s+([\w$.]+);")


@dataclass(frozen=True, slots=True)
class Instruction:
    """guard: a predicate and whether it must hold.  words: the name, cut at the dots."""

    guard: tuple[str, bool] | None
    words: tuple[str, ...]
    operands: tuple[str, ...]


@dataclass(slots=True)
class Kernel:
    """labels: the numbers of the instructions that follow them.  shared, local: bytes by name."""

    name: str
    parameters: list[str] = field(default_factory=list)
    registers: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By stem: how many there are, and the bytes of each."""
    instructions: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    shared: dict[str, int] = field(default_factory=dict)
    local: dict[str, int] = field(default_factory=dict)
    given: list[str] = field(default_factory=list)
    """Names of the shared memory that a launch gives."""


def read_kernels(text: str) -> dict[str, Kernel]:
    """Every entry of the text, by name."""
    found: dict[str, Kernel] = {}
    outside: dict[str, int] = {}
    given: list[str] = []
    kernel: Kernel | None = None
    before = ""
    for raw in text.splitlines():
        line = raw.split("//")[0].strip()
        if not line or line in "{})":
            continue
        line, before = f"{before} {line}".strip(), ""
        if line.startswith(("mma.", "@")) and not line.endswith(";"):
            before = line
            continue
        array = ARRAY.search(line)
        if line.startswith(".visible .entry"):
            kernel = Kernel(line.split()[2].rstrip("("))
            found[kernel.name] = kernel
        elif array:
            place, name, size = array.groups()
            chosen = outside if kernel is None or place == "shared" else kernel.local
            if size:
                chosen[name] = int(size)
            else:
                given.append(name)
        elif scalar := SCALAR.search(line):
            outside[scalar[2]] = SIZES.get(scalar[1], 8)
        elif kernel is None:
            continue
        elif line.startswith(".param"):
            kernel.parameters.append(line.split()[-1].rstrip(","))
        elif line.startswith(".reg"):
            _, kind, name = line.split()
            stem, _, count = name.partition("<")
            kernel.registers[stem.rstrip(";")] = int(count.rstrip(">;") or 1), SIZES[kind[1:]]
        elif line.endswith(":"):
            kernel.labels[line[:-1]] = len(kernel.instructions)
        elif not line.startswith("."):
            kernel.instructions.append(_instruction(line))
    for each in found.values():
        each.shared.update(outside)
        each.given += given
    return found


def _instruction(line: str) -> Instruction:
    guard = None
    if line.startswith("@"):
        predicate, _, line = line.partition(" ")
        guard = predicate.lstrip("@!"), not predicate.startswith("@!")
    name, _, rest = line.rstrip(";").strip().partition("\t")
    if not rest:
        name, _, rest = name.partition(" ")
    operands = tuple(each.strip() for each in re.split(r",(?![^{\[]*[}\]])", rest) if each.strip())
    return Instruction(guard, tuple(name.strip().split(".")), operands)
