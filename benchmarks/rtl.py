"""Whole networks on the RTL under Verilator, beside the simulator: every byte of DRAM, every cycle
and counter, and the time of every instruction must be equal.  Exits with 1 when one is not.

Prints how long both took; building the Verilated model is not counted.
"""

import dataclasses
import time

import click
import numpy as np
from models import ModelFile, models
from rich.console import Console

from dovetail.compiler import compile
from dovetail.compiler.cli.arrays import random_inputs
from dovetail.isa.config import HardwareConfig
from dovetail.isa.configs import find_config
from dovetail.isa.launch import Launch, LaunchResult
from dovetail.runtime.accelerator.device import prepare_launch
from dovetail.runtime.accelerator.part import accelerator_part
from dovetail.runtime.devices import open_launcher
from dovetail.vta_hw.build import build_harness


def differences(sim: LaunchResult, rtl: LaunchResult) -> list[str]:
    """What is not the same in both results."""
    found = []
    if not (sim.finished and rtl.finished):
        found.append(f"finished: simulator {sim.finished}, RTL {rtl.finished}")
    wrong = int((sim.dram != rtl.dram).sum())
    if wrong:
        found.append(f"DRAM: {wrong:,} bytes")
    for name, count in sim.counters.items():
        if rtl.counters[name] != count:
            found.append(f"{name}: simulator {count:,}, RTL {rtl.counters[name]:,}")
    for name in ("dispatched", "accepted", "ended"):
        first, second = getattr(sim, name), getattr(rtl, name)
        if first is not None and second is not None and not np.array_equal(first, second):
            place = int(np.flatnonzero(first != second)[0])
            found.append(f"{name}: instruction {place}, {first[place]:,} and {second[place]:,}")
    return found


def prepare(model: ModelFile, config: HardwareConfig) -> Launch:
    """One inference of a network on a random input; all of DRAM is compared afterwards."""
    module = compile(model.path(), f"vta:{config.name}")
    launch = prepare_launch(accelerator_part(module), random_inputs(module))
    return dataclasses.replace(launch, reads=None)


@click.command()
@click.argument("names", nargs=-1)
@click.option("--config", "config_name", default="zynq7020", show_default=True)
def main(names: tuple[str, ...], config_name: str) -> None:
    """Run the networks NAMES, or resnet18, on both."""
    console, config, known = Console(highlight=False), find_config(config_name), models()
    begin = time.perf_counter()
    with console.status("building the RTL"):
        build_harness(config)
    console.print(f"RTL of {config.name} built or found in {time.perf_counter() - begin:.1f} s")
    failed = False
    for name in names or ("resnet18",):
        if name not in known:
            console.print(f"{name}: skipped, not among {', '.join(known)}")
            continue
        with console.status(f"compiling {name}"):
            launch = prepare(known[name], config)
        results = {}
        for device in ("sim", "rtl"):
            with console.status(f"{name} on {device}"):
                results[device] = open_launcher(device).run(launch)
        sim, rtl = results["sim"], results["rtl"]
        wrong = differences(sim, rtl)
        failed |= bool(wrong)
        console.print(
            f"{name}: {rtl.counters['cycles']:,} cycles, {launch.program_count:,} instructions; "
            f"simulator {sim.seconds:.2f} s, RTL {rtl.seconds:.1f} s, "
            f"{rtl.seconds / sim.seconds:.0f} times: {'; '.join(wrong) or 'equal'}",
            soft_wrap=True,
        )
    if failed:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
