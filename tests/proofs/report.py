"""docs/proofs.md: what is proved, of what, for how long, and what is not."""

from pathlib import Path

from .run import Proof, Proved
from .table import PROOFS

__all__ = ["HOLES", "INTRODUCTION", "property_row", "write_report"]

INTRODUCTION = """# Proofs

These properties of the gateware are proved for all inputs and for runs of any length; [some others
are not](#what-is-not-proved). `make prove` proves them all and writes this page; `make test` proves
most of them for their first configuration, with one bug.

Each property is written with a small model of correct behaviour (`tests/proofs`). Yosys makes a
transition system of gateware and model, and a solver (Yices 2) is asked:

- *base*: does the property hold in all runs of some steps from the start?
- *induction*: if it has held for `steps` cycles, from any state, does it hold in the next
  one? With the base, it then holds forever. Facts about registers (*lemmas*) are proved with it.
- *cover*: can the events that the property is about happen at all?
- *bugs*: planted in the gateware one at a time, does each break the property from the start,
  without the lemmas?

Registers without a reset, and memories, may hold anything at the start.

"""

HOLES = """## What is not proved

Each proof covers one module, under the assumptions in the table. An assumption about one
module is proved of its neighbour only where the table says so. These are not proved, only tested
with random programs against semantics and simulator (`make differential`):

- the accelerator as a whole: that its modules are connected correctly, and that each keeps to
  what the others assume (units end what they began in order; no unit has more in flight than
  its queue holds; the host leaves settings alone during a run);
- progress: that every waiter is served, every burst is offered, and a run ends. All
  properties here say what never happens;
- a reset in the middle of a run: proofs begin at the first reset;
- requantisation as a whole: its two parts are proved, but that they are joined by the product of
  their mantissas, and that together they are the manual's formula, is only read and tested;
- the rest of the arithmetic of GEMM and VECTOR, scratchpads and their ports, the data of STORE's
  beats, padding, windows and placing of LOAD, and every cycle count of [timing.md](timing.md);
- the SDRAM's choice of row and column for a word, its data, often enough refreshes,
  tRRD and tMRD; clocks other than the one named;
- the matrix core's own clock domain, and its crossings (`core_clock_ratio` 2);
- counters, the trace ports, and the wrappers of boards (bridges, clocks, pins, and the serial link:
  that it refuses a damaged frame, unless the checksums collide);
- other configurations and other parameters of width than those named;
- Amaranth, Yosys (RTLIL to SMT), Yices, and synthesis for an FPGA.
"""


def property_row(proof: Proof) -> str:
    """The page's row for a proof, without times."""
    how = f"induction of {proof.steps}"
    if not proof.steps:
        how = f"{proof.base} cycles from any state: nothing lasts longer"
    cells = (
        f"`{proof.name}`",
        f"`vta_hw/{proof.subject}.py`",
        proof.says,
        proof.assumes or "nothing",
        how,
        str(len(proof.bugs)),
    )
    return f"| {' | '.join(cells)} |"


def write_report(results: list[Proved], path: Path, solver: str) -> None:
    """Write the page."""
    lines = [
        "| name | module | always | if | how | bugs found |",
        "|---|---|---|---|---|---|",
        *(property_row(proof) for proof in PROOFS),
        "",
        f"Seconds of each, base, induction, cover and bugs together ({solver}):",
        "",
        "| name | configurations |",
        "|---|---|",
    ]
    for proof in PROOFS:
        times = [
            f"`{each.config}` {each.seconds:.0f}"
            for each in results
            if each.proof.name == proof.name
        ]
        lines.append(f"| `{proof.name}` | {', '.join(times)} |")
    lines.append("")
    path.write_text(INTRODUCTION + "\n".join(lines) + "\n" + HOLES, encoding="utf-8")
