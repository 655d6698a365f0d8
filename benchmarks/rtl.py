"""Whole networks on the RTL under Verilator, beside the simulator: every byte of DRAM, every cycle
and counter, and the time of every instruction must be equal.  TensorFlow Lite's files are run with
real inputs, and their outputs must be those of LiteRT's reference kernels.  Exits with 1 when
something is not equal.

Prints how long both took; building the Verilated model is not counted.
"""

import dataclasses
import time

import click
import numpy as np
from models import ModelFile, models
from rich.console import Console
from tflite_models import references, tflite_models

from dovetail.compiler import compile
from dovetail.compiler.cli.arrays import random_inputs
from dovetail.isa.config import HardwareConfig
from dovetail.isa.configs import find_config
from dovetail.isa.launch import Launch, LaunchResult
from dovetail.runtime import run
from dovetail.runtime.accelerator.device import prepare_launch
from dovetail.runtime.accelerator.part import accelerator_part
from dovetail.runtime.devices import open_launcher
from dovetail.vta_hw.build import build_harness

DEVICES = ("sim", "rtl")


def differences(sim: LaunchResult, rtl: LaunchResult) -> list[str]:
    """Differences of the two results, one a line."""
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


@dataclasses.dataclass(frozen=True, slots=True)
class Prepared:
    """The launches of a network's inferences; all of DRAM is compared after each.

    wrong: how many bytes of the outputs, on the simulator, are not the reference's; "" for none.
    """

    launches: tuple[Launch, ...]
    wrong: str = ""


def prepare(model: ModelFile, config: HardwareConfig, images: int) -> Prepared:
    """A network on a random input, or on ``images`` that it has a reference for."""
    path = model.path()
    module = compile(path, f"vta:{config.name}")
    pairs = references(path, images)
    given = [{module.inputs[0].name: x.reshape(module.inputs[0].shape)} for x, _ in pairs]
    total = wrong = 0
    for each, (_, wanted) in zip(given, pairs, strict=True):
        (found,) = run(module, each).outputs.values()
        total, wrong = total + found.size, wrong + int((found.ravel() != wanted.ravel()).sum())
    part = accelerator_part(module)
    launches = [prepare_launch(part, each) for each in given or [random_inputs(module)]]
    return Prepared(
        tuple(dataclasses.replace(each, reads=None) for each in launches),
        f"outputs: {wrong:,} of {total:,} bytes" if wrong else "",
    )


@click.command()
@click.argument("names", nargs=-1)
@click.option("--config", "config_name", default="zynq7020", show_default=True)
@click.option("--images", default=30, show_default=True, help="Of TensorFlow Lite's files.")
def main(names: tuple[str, ...], config_name: str, images: int) -> None:
    """Run the networks NAMES, or resnet18, on both."""
    console, config = Console(highlight=False), find_config(config_name)
    known = models() | tflite_models()
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
            prepared = prepare(known[name], config, images)
        wrong, seconds = [prepared.wrong] if prepared.wrong else [], dict.fromkeys(DEVICES, 0.0)
        for launch in prepared.launches:
            results = {}
            for device in DEVICES:
                with console.status(f"{name} on {device}"):
                    results[device] = open_launcher(device).run(launch)
                seconds[device] += results[device].seconds
            wrong += differences(results["sim"], results["rtl"])
        failed |= bool(wrong)
        console.print(
            f"{name}: {results['rtl'].counters['cycles']:,} cycles, "
            f"{launch.program_count:,} instructions, {len(prepared.launches)} inputs; "
            f"simulator {seconds['sim']:.2f} s, RTL {seconds['rtl']:.1f} s, "
            f"{seconds['rtl'] / seconds['sim']:.0f} times: {'; '.join(wrong) or 'equal'}",
            soft_wrap=True,
        )
    if failed:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
