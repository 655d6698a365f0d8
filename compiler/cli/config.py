"""The command ``dovetail config``: your own accelerators, in files."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .output import clear_errors, human, json_option, print_json, require_folder
from .paths import PATH

if TYPE_CHECKING:
    from dovetail.isa.config import HardwareConfig

__all__ = ["config"]


@click.group()
def config() -> None:
    """Show, check and write configurations of the accelerator (docs/guides/own-hardware.md)."""


@config.command()
@click.argument("which", metavar="NAME|FILE.toml|MODULE.dvt")
@json_option
@clear_errors
def show(which: str, as_json: bool) -> None:
    """Print every field of a configuration, as a file that may be read again.

    Of a module it is the configuration that it was compiled for.
    """
    from dovetail.isa.config_file import config_to_toml

    found = _find(which)
    if as_json:
        from dataclasses import asdict

        print_json({**asdict(found), **_figures(found)})
    else:
        click.echo(config_to_toml(found, [f"{which}: {_said(_figures(found))}"]), nl=False)


@config.command()
@click.argument("which", metavar="NAME|FILE.toml|MODULE.dvt")
@json_option
@clear_errors
def manual(which: str, as_json: bool) -> None:
    """Print the manual of the instruction set for one configuration, its own finish included."""
    from dovetail.isa.document import manual as written

    found = _find(which)
    if as_json:
        print_json({"name": found.name, "manual": written(found)})
    else:
        click.echo(written(found), nl=False)


@config.command()
@click.argument("file", type=PATH)
@json_option
@clear_errors
def check(file: Path, as_json: bool) -> None:
    """Say whether FILE, a configuration as TOML, can be built, and what it comes to."""
    from dovetail.isa.config_file import read_config
    from dovetail.isa.configs import CONFIGS

    found = read_config(file, CONFIGS)
    figures = _figures(found)
    if as_json:
        print_json({"name": found.name, **figures})
    else:
        human.print(f"{file}: {found.name}, {_said(figures)}")


@config.command()
@click.argument("file", type=PATH)
@click.option("--base", default="zynq7020", show_default=True, help="NAME or FILE to start from.")
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@json_option
@clear_errors
def new(file: Path, base: str, force: bool, as_json: bool) -> None:
    """Write FILE.toml with every field, its meaning and its range, to be edited."""
    from dovetail.isa.config_file import SUFFIX, config_to_toml, require_name
    from dovetail.isa.configs import CONFIGS, find_config
    from dovetail.runtime.files import write_whole

    require_folder(file)
    if file.suffix != SUFFIX:
        raise click.UsageError(f"{file} does not end in {SUFFIX}; configurations are known by that")
    if file.exists() and not force:
        raise click.UsageError(f"{file} is there already; --force replaces it")
    require_name(file.stem, str(file), CONFIGS)
    notes = (
        f"An accelerator that begins as a copy of {base}.  A field that is left out has its value",
        'where a line says so: base = "zynq7020".  Check with: dovetail config check FILE',
    )
    text = config_to_toml(find_config(base), notes, file.stem)
    write_whole(file, text.encode())
    if as_json:
        print_json({"output": str(file), "name": file.stem, "base": base})
        return
    human.print(f"{file}: a copy of {base}; edit it, then: dovetail config check {file}")


def _find(which: str) -> "HardwareConfig":
    """Raises ConfigError when there is no such configuration, ModuleError for a damaged module,
    DeviceError for one that is for no accelerator.
    """
    if which.endswith(".dvt"):
        from dovetail.runtime.accelerator.part import accelerator_parts
        from dovetail.runtime.module import Module

        return accelerator_parts(Module.load(Path(which)))[0].configuration
    from dovetail.isa.configs import find_config

    return find_config(which)


def _figures(found: "HardwareConfig") -> dict[str, object]:
    """Properties derived from the fields."""
    from dovetail.isa.memories import Memory

    kilobytes = sum(found.depth(each) * found.word_bytes(each) for each in Memory) / 1024
    return {
        "macs_per_cycle": found.macs_per_cycle,
        "kib_of_memories": round(kilobytes, 1),
        "bus_bits": 8 * found.bus_bytes,
        "mhz": found.clock_hz / 1e6,
        "fingerprint": f"{found.fingerprint:#010x}",
    }


def _said(figures: dict[str, object]) -> str:
    return (
        f"{figures['macs_per_cycle']} MACs a cycle, {figures['kib_of_memories']} KiB of memories, "
        f"a bus of {figures['bus_bits']} bits, {figures['mhz']:g} MHz, "
        f"fingerprint {figures['fingerprint']}"
    )
