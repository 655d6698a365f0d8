"""Synthesising the accelerator with Yosys, for the resource counts of docs/resources.md.

``python -m dovetail.vta_hw.synthesis [CONFIG ...]`` synthesises the configurations (all of them by
default) for ECP5 and for Xilinx 7, checks that there are no latches, no nets with several drivers
and that the large memories are in block RAM, and writes their lines of the page again.  Nothing is
placed or routed: LUT counts are estimates.
"""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from dovetail.isa.config import HardwareConfig
from dovetail.isa.configs import CONFIGS, find_config
from dovetail.isa.errors import DovetailError
from dovetail.isa.frozen import frozen
from dovetail.isa.memories import Memory

from .gemm import matrix_parts
from .tap_scratchpad import TapScratchpad
from .verilog import HardwareError, emit_verilog, find_yosys

__all__ = ["FAMILIES", "Family", "Resources", "synthesize", "write_page"]

BLOCK_RAM_BITS = 1 << 14
"""A memory of at least this many bits must be in block RAM."""


@frozen
class Family:
    """A synthesis target.

    script: the Yosys commands that map the top module ``{top}``.
    luts, registers, multipliers, block_rams: how much one cell of a type counts, by a pattern of
    its name.
    capacity: LUTs, registers, multipliers and block RAMs of the part named.
    library: Verilog of cells that a top module may have and Yosys has no model of.
    """

    name: str
    script: str
    luts: Mapping[str, float]
    registers: Mapping[str, float]
    multipliers: Mapping[str, float]
    block_rams: Mapping[str, float]
    part: str
    capacity: tuple[int, int, int, int]
    library: str = ""


FAMILIES = (
    Family(
        name="ECP5",
        script="synth_ecp5 -top {top}",
        # A distributed RAM of 16x4 takes four LUTs for bits and two for its write port.
        luts={"LUT4": 1, "CCU2C": 2, "TRELLIS_DPR16X4": 6},
        registers={"TRELLIS_FF": 1},
        multipliers={"MULT18X18D": 1},
        block_rams={"DP16KD": 1, "PDPW16KD": 1},
        part="LFE5U-85F",
        capacity=(83_640, 83_640, 156, 208),
    ),
    Family(
        name="Xilinx 7",
        script="synth_xilinx -family xc7 -flatten -noiopad -top {top}",
        luts={"LUT[1-6]": 1, "RAM32M": 4, "RAM64M": 4, "RAM(32|64)X1D": 2, "SRL16E|SRLC32E": 1},
        registers={"FD[RSCP]E": 1},
        multipliers={"DSP48E1": 1},
        block_rams={"RAMB36E1": 1, "RAMB18E1": 0.5},
        part="XC7Z020",
        capacity=(53_200, 106_400, 220, 140),
        library="+/xilinx/cells_sim.v +/xilinx/cells_xtra.v",
    ),
)
"""Where a configuration is synthesised for."""


@frozen
class Resources:
    """Resources of a configuration: block RAMs in whole blocks of the family (DP16KD, RAMB36)."""

    luts: int
    registers: int
    multipliers: int
    block_rams: float


def synthesize(
    config: HardwareConfig, family: Family, verilog: str | None = None, top: str | None = None
) -> Resources:
    """Map ``config`` to the cells of ``family``.

    verilog: its text, if that is there.  top: the module of it that is synthesised, if that is not
    the accelerator alone.

    Raises HardwareError when Yosys fails, finds a latch or a net with several drivers, or leaves a
    memory of ``BLOCK_RAM_BITS`` outside block RAM.
    """
    top = top or f"dovetail_{config.name}"
    script = "\n".join(
        (
            *([f"read_verilog -lib {family.library}"] if family.library else ()),
            f"read_verilog {top}.v",
            f"hierarchy -check -top {top}",
            "proc",
            "check -assert",
            "select -assert-none t:$dlatch t:$adlatch t:$dlatchsr t:$sr",
            family.script.format(top=top),
            "check -assert",
            "select -assert-none t:*LATCH* t:LD?E",
            "tee -q -o cells.json stat -json",
        )
    )
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        (work / f"{top}.v").write_text(verilog or emit_verilog(config))
        (work / "run.ys").write_text(script + "\n")
        # The WebAssembly build of Yosys sees relative paths only.
        done = subprocess.run(
            [find_yosys(), "-Q", "-l", "log", "run.ys"],
            cwd=work,
            capture_output=True,
            text=True,
            check=False,
        )
        log = (work / "log").read_text() if (work / "log").exists() else done.stdout
        if done.returncode:
            tail = "\n".join((log + done.stderr).splitlines()[-15:])
            raise HardwareError(f"{config.name}: synthesis for {family.name} failed:\n{tail}")
        cells = json.loads((work / "cells.json").read_text())["design"]["num_cells_by_type"]
    _check_memories(config, family, log)
    counts = (family.luts, family.registers, family.multipliers, family.block_rams)
    luts, registers, multipliers, block_rams = (_count(cells, weights) for weights in counts)
    return Resources(int(luts), int(registers), int(multipliers), block_rams)


def _count(cells: Mapping[str, int], weights: Mapping[str, float]) -> float:
    return sum(
        number * weight
        for pattern, weight in weights.items()
        for cell, number in cells.items()
        if re.fullmatch(pattern, cell)
    )


def _check_memories(config: HardwareConfig, family: Family, log: str) -> None:
    """Hold the log's line for each scratchpad bank to ``BLOCK_RAM_BITS``."""
    mapped = dict(re.findall(r"mapping memory (\S+) via (\S+)", log))
    banks = [
        name
        for name in mapped
        if re.search(r"(act|acc|wgt|par)_bank\d|tap_part\d|tab_lane\d", name)
    ]
    if not banks:
        raise HardwareError(f"{config.name}: Yosys names no scratchpad among {sorted(mapped)}")
    for name in banks:
        bits = _bank_bits(config, name)
        block = re.search(r"16KD|BLOCKRAM", mapped[name], re.IGNORECASE)
        if bits >= BLOCK_RAM_BITS and not block:
            raise HardwareError(
                f"{config.name}: {name} ({bits} bits) became {mapped[name]} on {family.name}; "
                "required block RAM"
            )


def _bank_bits(config: HardwareConfig, name: str) -> int:
    found = re.search(r"(act|acc|wgt|par|tap|tab)_(bank|part|lane)\d", name)
    assert found
    memory = Memory(found[1])
    if memory is Memory.TAB:
        return 8 * config.tab_depth
    if memory is Memory.TAP:
        return 8 * config.block * config.tap_depth // TapScratchpad.GROUP
    parts = matrix_parts(config) if memory in (Memory.WGT, Memory.ACC) else 1
    return 8 * config.word_bytes(memory) // parts * config.bank_words(memory)


HEADER = """# Resources

What each configuration takes, from `python -m dovetail.vta_hw.synthesis` (Yosys; not placed or
routed). LUT counts are estimates: ECP5 counts LUT4 cells, two for a carry cell and six for a 16x4
distributed RAM; Xilinx 7 counts LUT cells of all sizes and LUTs used as RAM or shift register.
Block RAMs are DP16KD (18 kbit) and RAMB36 (36 kbit). Percentages are of an {parts}. Every run also
checks that there are no latches, no nets with several drivers, and that memories of 16 kbit and
more are in block RAM.

The ECP5 rows of tiny and zynq7020 are without `row_parameters` and `nibble_weights`; tiny's Xilinx
7 row is without its roots, its results of 20 bits and `nibble_weights`.
Of `load_ahead` and `short_constants` all rows are without but that of zynq7020 for Xilinx 7.

| configuration | family | LUT | FF | multipliers | block RAM |
|---|---|---|---|---|---|
"""


def write_page(path: Path, measured: Mapping[tuple[str, str], Resources]) -> None:
    """Write ``measured`` (by configuration and family) to the page; lines of others are kept."""
    rows = {}
    if path.exists():
        for line in path.read_text().splitlines():
            parts = [part.strip() for part in line.strip("|").split("|")]
            if len(parts) == 6 and parts[0] in CONFIGS:
                rows[parts[0], parts[1]] = line
    for family in FAMILIES:
        for name in CONFIGS:
            if (name, family.name) in measured:
                rows[name, family.name] = _row(name, family, measured[name, family.name])
    parts_named = " and an ".join(family.part for family in FAMILIES)
    order = [(name, family.name) for name in CONFIGS for family in FAMILIES]
    lines = [rows[key] for key in order if key in rows]
    path.write_text(HEADER.format(parts=parts_named) + "\n".join(lines) + "\n")


def _row(name: str, family: Family, used: Resources) -> str:
    figures = (used.luts, used.registers, used.multipliers, used.block_rams)
    cells = [
        f"{figure:,g} ({100 * figure / there:.0f} %)"
        if isinstance(figure, float)
        else f"{figure:,} ({100 * figure / there:.0f} %)"
        for figure, there in zip(figures, family.capacity, strict=True)
    ]
    return f"| {name} | {family.name} | " + " | ".join(cells) + " |"


def main(names: Sequence[str]) -> int:
    """Synthesise the configurations called ``names`` (all when empty) and write the page."""
    page = Path(__file__).parents[1] / "docs" / "resources.md"
    try:
        for config in [find_config(name) for name in names] or CONFIGS.values():
            for family in FAMILIES:
                print(f"{config.name}: {family.name} ...", file=sys.stderr, flush=True)
                used = synthesize(config, family)
                print(f"{config.name}: {family.name}: {used}", flush=True)
                write_page(page, {(config.name, family.name): used})
    except DovetailError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
