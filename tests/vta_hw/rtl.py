"""Testbenches of gateware: a component as Verilog, built by Verilator, driven by cocotb.

A test module holds both halves.  Coroutines under ``@cocotb.test()`` run inside the simulator;
pytest functions call ``simulate`` with a function that makes the top component and a coroutine::

    def make_gemm() -> Gemm:
        return Gemm(TINY)

    @cocotb.test()
    async def gemm_equals_the_semantics(dut): ...

    def test_gemm_equals_the_semantics():
        simulate(make_gemm, gemm_equals_the_semantics, seed=3)

A build is kept in the user's cache for as long as its Verilog stays the same, whatever else is
edited.  Only the top's ports can be seen, by Amaranth's names: ``start`` of member ``control`` is
``dut.control__start``.
"""

import fcntl
import hashlib
import inspect
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from amaranth.lib import wiring
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, FallingEdge
from cocotb_tools import config
from cocotb_tools.check_results import get_results
from cocotb_tools.runner import Verilator

from dovetail.isa.cache import cache_directory, fetch, has_whole, keep, keep_file
from dovetail.vta_hw import build, verilog

from ..quick_builds import SHORT_FUNCTIONS

__all__ = ["RUNS", "VALUES", "parameters", "simulate", "simulate_all", "start_clock"]

ROOT = Path(__file__).resolve().parents[2]
GATEWARE = ("isa", "vta_hw", "bitstreams")
"""Folders that Verilog is made from."""
RUNS = "DOVETAIL_BENCH_RUNS"
"""Variable of a run: the module, name and values of each test, as JSON."""

VALUES: dict[str, Any] = {}
"""Values of the test that runs, inside the simulator."""

TOP = "bench_top"
PUBLIC = f'`verilator_config\npublic_flat_rw -module "{TOP}" -var "*"\n'
BUILD_ARGS = (
    *("-O3", "--x-assign", "fast", "--x-initial", "fast", "--noassert", "-Wno-fatal"),
    *("-Wno-WIDTHEXPAND", "-Wno-WIDTHTRUNC", *SHORT_FUNCTIONS),
)

ENVIRONMENT = {
    "COCOTB_LOG_LEVEL": "WARNING",
    "COCOTB_REWRITE_ASSERTION_FILES": "test_*.py",
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
}
"""Variables of a run.  By default cocotb has pytest rewrite all imported modules, for two seconds,
and load plugins that nothing uses there."""

LIBRARY = (*build.LIBRARY, "verilated_vpi.o")
"""Verilator's own objects in a bench."""


class PortsOnly(Verilator):
    """cocotb's Verilator runner without ``--public-flat-rw``: public signals are slow."""

    def _set_env_common(self) -> None:
        super()._set_env_common()
        self.env["PYTHONPATH"] = os.pathsep.join((str(ROOT), self.env["PYTHONPATH"]))

    def _build_command(self) -> list[list[str]]:
        commands: list[list[str]] = super()._build_command()
        return [[word for word in line if word != "--public-flat-rw"] for line in commands]


def simulate(make: Callable[[], wiring.Component], case: Any, **values: object) -> None:
    """Run the cocotb test ``case`` on the component that ``make`` returns; fail as it fails.

    ``make`` is a function of a module and takes nothing.  ``values``, plain JSON, reach the test
    by ``parameters``.
    """
    simulate_all(make, [(case, values)])


def simulate_all(
    make: Callable[[], wiring.Component], runs: Sequence[tuple[Any, Mapping[str, object]]]
) -> None:
    """The same for several tests, or one with several values, one after the other in one process.

    A process takes a second to start, more than most tests.
    """
    folder = _build(make)
    asked = [(_module_name(case.func), str(case.name), values) for case, values in runs]
    with tempfile.TemporaryDirectory() as work:
        log = Path(work) / "log"
        try:
            results = PortsOnly().test(
                test_module="tests.vta_hw.runs",
                hdl_toplevel=TOP,
                hdl_toplevel_lang="verilog",
                build_dir=folder,
                test_dir=work,
                extra_env={**ENVIRONMENT, RUNS: json.dumps(asked)},
                log_file=log,
            )
            assert get_results(results) == (len(runs), 0), f"not all were run: {asked}"
        except SystemExit:
            text = log.read_text() if log.exists() else "(no log)"
            pytest.fail(f"{asked}\n{text[-4000:]}", pytrace=False)


def parameters() -> dict[str, Any]:
    """Arguments of ``simulate``, inside the simulator."""
    return VALUES


async def start_clock(dut: Any) -> None:
    """Start the clock, reset, and return in the middle of a cycle: at a falling edge.

    Outputs are settled there, and inputs set there belong to the same cycle.  The matrix core's own
    clock, where there is one, is twice as fast and rises with the other.
    """
    clock, reset = dut.clk, dut.rst
    if hasattr(dut, "core_clk"):
        Clock(dut.core_clk, 2, "step").start(start_high=True)
        Clock(clock, 4, "step").start(start_high=False)
    else:
        Clock(clock, 2, "step").start(start_high=False)
    reset.value = 1
    await ClockCycles(clock, 2)
    await FallingEdge(clock)
    reset.value = 0
    await FallingEdge(clock)


def _module_name(function: Callable[..., object]) -> str:
    """The module of ``function``, for a Python that has the project's root on its path."""
    path = Path(inspect.getfile(function)).resolve().relative_to(ROOT)
    return ".".join(path.with_suffix("").parts)


def _build(make: Callable[[], wiring.Component]) -> Path:
    """The folder of the simulation of ``make()``, built unless its Verilog is known.

    Sources that are known need no elaboration to find their Verilog's build.
    """
    cache = cache_directory()
    source = f"sources/{make.__name__}-{_digest_of_sources(make)}"
    known = (fetch(cache, source) or b"").decode()
    if known and has_whole(cache, known):
        return (cache / known).parent
    text = verilog.to_verilog(make(), TOP)
    content = f"bench-{make.__name__}-{_digest(PUBLIC, text)}"
    entry = f"{content}/{TOP}"
    with open(cache / f"{content}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not has_whole(cache, entry):
            with tempfile.TemporaryDirectory(dir=cache) as work:
                _verilate(text, Path(work), cache)
                keep_file(cache, entry, Path(work) / TOP)
    keep(cache, source, entry.encode())
    return cache / content


def _digest(*texts: str) -> str:
    """Identity of what is built from ``texts`` by the tools that are installed."""
    tools = (version("verilator"), config.libs_dir, BUILD_ARGS, build.make_flags(), sys.version)
    return hashlib.sha256(f"{tools}{texts}".encode()).hexdigest()[:20]


def _digest_of_sources(make: Callable[[], wiring.Component]) -> str:
    sources = [Path(inspect.getfile(make)), Path(__file__)]
    for folder in GATEWARE:
        sources += sorted((ROOT / folder).glob("*.py"))
    return _digest(*(path.read_text() for path in sources))


def _verilate(text: str, folder: Path, cache: Path) -> None:
    """Build the simulation of the Verilog ``text`` in ``folder``; ``cache`` keeps ``LIBRARY``."""
    source, public, log = folder / f"{TOP}.v", folder / "public.vlt", folder / "build.log"
    source.write_text(text)
    public.write_text(PUBLIC)
    try:
        with _tools(), build.shared_objects(cache, folder, LIBRARY):
            PortsOnly().build(
                sources=[public, source],
                hdl_toplevel=TOP,
                build_args=BUILD_ARGS,
                build_dir=folder,
                always=True,
                timescale=("1ns", "1ns"),
                log_file=log,
            )
    except SystemExit:
        pytest.fail(f"Verilator cannot build {TOP}:\n{log.read_text()[-4000:]}", pytrace=False)


@contextmanager
def _tools() -> Iterator[None]:
    """Verilator on PATH, and what its makefile is told."""
    before = dict(os.environ)
    os.environ["PATH"] = f"{build.verilator_directory()}{os.pathsep}{before['PATH']}"
    os.environ["MAKEFLAGS"] = build.make_flags()
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
