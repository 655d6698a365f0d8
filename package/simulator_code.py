"""The simulator's machine code, which the wheel brings: ``python -m dovetail.simulator_code``.

For each kind of processor, and for cores of all sizes, as LLVM makes it for three levels of x86-64
and the one of AArch64; it is in the folder of the simulator's sources.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from dovetail.compiler.targets.cpu.arch.arch import Arch
from dovetail.compiler.targets.cpu.arch.table import ARCHES
from dovetail.compiler.targets.cpu.llvm.link import link
from dovetail.compiler.targets.cpu.llvm.target import CpuTarget, target_machine
from dovetail.vta_sim.event_loop import run_machine
from dovetail.vta_sim.native import shipped
from dovetail.vta_sim.native.language import Native
from dovetail.vta_sim.native.library import names_of
from dovetail.vta_sim.native.machine_code import object_code
from dovetail.vta_sim.replay import replay_steps

__all__ = ["main", "write"]

LANES = (4, 8, 16, 32, 64)
LEVELS = {"x86-64": ("avx512vnni", "avx2", "x86-64")}
"""Levels of the kinds of processors that have several, the best first."""
VNNI = "avx512vnni"


def write(folder: Path, lanes: Sequence[int] = LANES) -> list[Path]:
    """Write a file for each kind of processor; their paths."""
    paths = []
    for arch in ARCHES:
        path = folder / f"{arch.triple.partition('-')[0]}{shipped.SUFFIX}"
        path.write_bytes(shipped.pack(list(_entries(arch, lanes))))
        paths.append(path)
    return paths


def _entries(arch: Arch, lanes: Sequence[int]) -> Iterator[shipped.Shipped]:
    yield _entry(arch, arch.baseline, run_machine, 0)
    for count in lanes:
        for level in LEVELS.get(arch.name, (arch.baseline,)):
            yield _entry(arch, level, replay_steps, count)


def _entry(arch: Arch, level: str, function: Native, lanes: int) -> shipped.Shipped:
    target, names = CpuTarget.at_level(level), names_of([function])
    code = object_code([function], lanes, target_machine(target, 2), vnni=level == VNNI)
    # Of other kinds than x86-64, Linux has no names for what all of them have.
    flags = target.flags if arch.name in LEVELS else ()
    return shipped.Shipped(tuple(names), lanes, flags, link(arch, [code], names))


def main() -> None:
    """Write the files into the folder of the simulator's sources."""
    for path in write(Path(shipped.__file__).parent):
        print(f"{path.name}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
