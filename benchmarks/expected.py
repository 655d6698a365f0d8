"""Cycles that the compiler expects of each layer, beside those that the simulator counts.

Prints a table of every network, and with ``--json FILE`` writes the figures.  Fails when a layer
is further off than ``NEAR``.
"""

import json
from pathlib import Path
from typing import Any

import click
from models import models
from rich.console import Console
from rich.table import Table

from dovetail.compiler import compile
from dovetail.compiler.cli.arrays import random_inputs
from dovetail.runtime import run
from dovetail.runtime.accelerator.part import accelerator_part
from dovetail.runtime.profile.layers import share_cycles

DEFAULT = (
    *("resnet18", "resnet50", "mobilenet_v2_int8", "mobilenet_v1_uint8", "squeezenet", "tiny_yolo"),
    *("ic_resnet8", "vww_mbv1", "kws_dscnn"),
)
NEAR = 0.05
"""Part of a layer's cycles by which it may be off."""


def measure(path: Path, target: str) -> list[dict[str, Any]]:
    """Name, expected and counted cycles of each layer, and of the whole."""
    module = compile(path, target=target)
    result = run(module, random_inputs(module), device="sim")
    part = accelerator_part(module)
    layers = part.layers
    counted = share_cycles(result.timeline, len(layers), result.cycles or 0)
    rows = [
        {"layer": layer.name, "expected": layer.expected_cycles, "counted": cycles}
        for layer, cycles in zip(layers, counted, strict=True)
    ]
    whole = {"expected": part.expected_cycles, "counted": result.cycles}
    return [*rows, {"layer": "all", **whole}]


@click.command()
@click.argument("networks", nargs=-1)
@click.option("--target", default="vta:zynq7020", show_default=True)
@click.option("--json", "json_file", type=click.Path(path_type=Path))
def main(networks: tuple[str, ...], target: str, json_file: Path | None) -> None:
    """Compare NETWORKS (the usual ones, if none is named)."""
    known = models()
    found, off = {}, []
    for name in networks or [name for name in DEFAULT if name in known]:
        rows = found[name] = measure(known[name].path(), target)
        table = Table("layer", "expected", "counted", "difference", title=name)
        for row in rows:
            expected, counted = row["expected"], row["counted"]
            difference = f"{expected / counted - 1:+.1%}" if counted else ""
            table.add_row(row["layer"][-40:], f"{expected:,}", f"{counted:,}", difference)
            if abs(expected - counted) > NEAR * counted:
                off.append(f"{name}: {row['layer']}")
        Console().print(table)
    if json_file:
        json_file.write_text(json.dumps(found, indent=2) + "\n")
    if off:
        raise click.ClickException(f"off by more than {NEAR:.0%}: {', '.join(off)}")


if __name__ == "__main__":
    main()
