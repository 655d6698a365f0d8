"""The command ``dovetail run``."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .arrays import dimensions_option, read_dimensions, read_inputs, write_outputs
from .numbers import LARGEST, POSITIVE
from .output import clear_errors, human, json_option, print_json, progress, table
from .paths import PATH
from .records import record_paths, records_option

if TYPE_CHECKING:
    from dovetail.runtime.module import Module

__all__ = ["run"]


@click.command()
@click.argument("module", type=PATH)
@click.option("--target", default="vta", help="Target, if MODULE is a model.", show_default=True)
@records_option
@click.option(
    "--device",
    default="sim",
    help="sim, rtl, cpu, opencl or webgpu; sim:CONFIG accepts only that configuration.",
    show_default=True,
)
@click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="NAME=FILE.npy",
    help="Value of an input; give one for each.",
)
@dimensions_option
@click.option("--output-dir", type=PATH, default=Path(), help="Folder for NAME.npy.")
@click.option(
    "--config",
    "config_name",
    help="Configuration, if MODULE is a program: .s or .bin, with input 'dram'.",
)
@click.option(
    "--check",
    "checked",
    type=PATH,
    metavar="MODEL",
    help="The model that MODULE was compiled from: compare its layers with the interpreter.",
)
@click.option(
    "--require-signature",
    "key",
    type=PATH,
    metavar="KEY.pub",
    help="Run MODULE only if the owner of this key has signed it.",
)
@click.option(
    "--sandbox", is_flag=True, help="Run in a process without access to files and network."
)
@click.option(
    "--sandbox-memory",
    type=POSITIVE,
    default=8 << 30,
    metavar="BYTES",
    help="Address space of the sandbox.",
    show_default=True,
)
@click.option(
    "--sandbox-seconds",
    type=click.IntRange(1, LARGEST),
    default=600,
    help="Processor time of the sandbox.",
    show_default=True,
)
@json_option
@clear_errors
def run(
    module: Path,
    target: str,
    records: tuple[str, ...],
    device: str,
    inputs: tuple[str, ...],
    dims: tuple[str, ...],
    output_dir: Path,
    config_name: str | None,
    checked: Path | None,
    key: Path | None,
    sandbox: bool,
    sandbox_memory: float,
    sandbox_seconds: int,
    as_json: bool,
) -> None:
    """Run MODULE (.dvt, or a model, which is compiled first) once and write its outputs.

    With --config, MODULE is a program on its own, assembly (.s) or bytes.  It runs on a machine
    that was just reset, with the uint8 array of input 'dram' from address 0 on; output 'dram' is
    what the program left there.
    """
    from dovetail.isa.configs import find_config
    from dovetail.runtime.session import run as run_module
    from dovetail.runtime.trust.sandbox import SandboxLimits, run_sandboxed

    from .building import build_for, build_rtl
    from .programs import is_model, open_module, opening, run_file

    if checked and config_name:
        raise click.UsageError("--check compares the layers of a model; a program has none")
    if checked:
        from ..front.table import open_model

        open_model(checked)  # What is wrong with it is said before anything runs.
    arrays = read_inputs(inputs)
    if config_name:
        config = find_config(config_name)
        built = build_rtl([config], device)
    else:
        with progress(f"{opening(module)} {module.name}"):
            sizes = read_dimensions(dims)
            loaded = open_module(module, target, record_paths(records), key, sizes)
        _require_inputs(loaded, set(arrays))
        # A sandbox builds nothing: what it needs is there before, or it says so.
        built = 0.0 if sandbox else build_for(loaded, device)
    with progress(f"running {module.name} on {device}"):
        if config_name:
            result = run_file(module, config, arrays, device)
        else:
            if sandbox:
                limits = SandboxLimits(int(sandbox_memory), sandbox_seconds)
                result = run_sandboxed(loaded, arrays, device, limits)
            else:
                if not is_model(module) and key is None:
                    _tell_of_code(module, loaded)
                result = run_module(loaded, arrays, device)
    figures = {"outputs": write_outputs(output_dir, result.outputs), **result.figures()}
    if built:
        figures["build_seconds"] = built
    if checked:
        from .layer_check import check_layers

        figures["checks"] = check_layers(checked, loaded, device, arrays, result.outputs)
    if as_json:
        print_json(figures)
    else:
        outputs: list[tuple[object, ...]] = [*figures.pop("outputs").items()]
        human.print(table("Outputs", {"name": "left", "file": "left"}, outputs))
        rows: list[tuple[object, ...]] = [
            (name.replace("_", " "), _shown(name, value))
            for name, value in figures.items()
            if name != "checks"
        ]
        human.print(table(f"{module.name} on {device}", {"figure": "left", "value": "right"}, rows))


def _shown(name: str, value: object) -> str:
    """A figure for people."""
    if isinstance(value, float):
        return f"{value:.1%}" if name.endswith("utilization") else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _require_inputs(module: "Module", given: set[str]) -> None:
    """Say how an input is given that is missing; what else is wrong with inputs, running says."""
    from dovetail.runtime.errors import InputError

    wanted = {tensor.name: tensor for tensor in module.inputs}
    missing = [tensor for name, tensor in wanted.items() if name not in given]
    if missing and given <= wanted.keys():
        first = missing[0]
        raise InputError(
            f"input {first.name!r} is missing; required {first.kind}: --input {first.name}=FILE.npy"
        )


def _tell_of_code(path: Path, module: "Module") -> None:
    """Say that a file from elsewhere holds code, which can do what its user can."""
    from dovetail.runtime.trust.origin import holds_code, is_own

    if holds_code(module) and not is_own(path):
        human.print(
            f"note: {path} holds machine code that you did not compile here: it can do whatever "
            "you can; --sandbox prevents that, --require-signature KEY.pub checks who made it"
        )
