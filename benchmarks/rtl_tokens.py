"""A language model's launches on the RTL under Verilator, beside the simulator, token after token:
every byte of DRAM, every cycle and counter, and the time of every instruction must be equal.  Exits
with 1 when something is not equal.

Each token is the likeliest one after those before it.
"""

import dataclasses
import time
from pathlib import Path

import click
from models import SHARED
from rich.console import Console
from rtl import DEVICES, differences

from dovetail.compiler import compile
from dovetail.isa.configs import find_config
from dovetail.runtime import Session
from dovetail.runtime.accelerator.device import prepare_launch
from dovetail.runtime.accelerator.part import AcceleratorPart
from dovetail.runtime.devices import open_launcher
from dovetail.runtime.generate.decoder import Decoder
from dovetail.runtime.session import values_before
from dovetail.vta_hw.build import build_harness

STORIES = SHARED / "stories260k" / "stories260k_decode_int8.onnx"


@click.command()
@click.argument("models", nargs=-1, type=click.Path(path_type=Path, dir_okay=False))
@click.option("--config", "config_name", default="zynq7020", show_default=True)
@click.option("--tokens", default=16, show_default=True, help="Runs of the model.")
@click.option("--first", default=1, show_default=True, help="The token that begins the text.")
def main(models: tuple[Path, ...], config_name: str, tokens: int, first: int) -> None:
    """Run a text of each of MODELS, or of stories260k, on both."""
    console, config = Console(highlight=False), find_config(config_name)
    begin = time.perf_counter()
    with console.status("building the RTL"):
        build_harness(config)
    console.print(f"RTL of {config.name} built or found in {time.perf_counter() - begin:.1f} s")
    failed = False
    for model in models or (STORIES,):
        if not model.is_file():
            console.print(f"{model}: skipped, there is no such file")
            continue
        failed |= not is_equal(model, f"vta:{config_name}", tokens, first, console)
    if failed:
        raise SystemExit(1)


def is_equal(model: Path, target: str, tokens: int, token: int, console: Console) -> bool:
    """True if all launches of a text of ``tokens``, which begins with ``token``, are equal."""
    with console.status(f"compiling {model.name}"):
        module = compile(model, target)
    parts = [part for part in module.parts if isinstance(part, AcceleratorPart)]
    equal = True
    with Session(module, "sim") as session:
        decoder = Decoder(session)
        for number in range(tokens):
            inputs, seconds = decoder.inputs(token), dict.fromkeys(DEVICES, 0.0)
            wrong: list[str] = []
            cycles = 0
            for part in parts:
                launch = prepare_launch(part, values_before(module, part, inputs))
                launch = dataclasses.replace(launch, reads=None)
                results = {device: open_launcher(device).run(launch) for device in DEVICES}
                wrong += differences(results["sim"], results["rtl"])
                cycles += results["rtl"].counters["cycles"]
                for device in DEVICES:
                    seconds[device] += results[device].seconds
            equal &= not wrong
            console.print(
                f"{model.name}, position {number}, token {token}: {cycles:,} cycles, "
                f"{len(parts)} launches; simulator {seconds['sim']:.2f} s, "
                f"RTL {seconds['rtl']:.1f} s: {'; '.join(wrong) or 'equal'}",
                soft_wrap=True,
            )
            token = int(decoder.step(token).argmax())
    return equal


if __name__ == "__main__":
    main()
