"""Cycles that the compiler expects of each layer, beside those that the simulator counts.

Prints a table of every network, and with ``--json FILE`` writes the figures.
"""

import json
from pathlib import Path

import click
from models import models
from rich.console import Console
from rich.table import Table

from dovetail.compiler import compile
from dovetail.compiler.cli.arrays import random_inputs
from dovetail.runtime.profile.layers import share_cycles

DEFAULT = ("resnet18", "ic_resnet8", "vww_mbv1", "kws_dscnn", "mobilenet_v2_int8")


def measure(path: Path, target: str) -> list[dict[str, object]]:
    """Name, expected and counted cycles of each layer, and of the whole."""
    module = compile(path, target=target)
    result = module.run(random_inputs(module), device="sim")
    layers = module.details["layers"]
    counted = share_cycles(result.timeline, len(layers), result.cycles or 0)
    rows = [
        {"layer": layer["name"], "expected": layer["expected_cycles"], "counted": cycles}
        for layer, cycles in zip(layers, counted, strict=True)
    ]
    whole = {"expected": module.details["expected_cycles"], "counted": result.cycles}
    return [*rows, {"layer": "all", **whole}]


@click.command()
@click.argument("networks", nargs=-1)
@click.option("--target", default="vta:zynq7020", show_default=True)
@click.option("--json", "json_file", type=click.Path(path_type=Path))
def main(networks: tuple[str, ...], target: str, json_file: Path | None) -> None:
    """Compare NETWORKS (the usual ones, if none is named)."""
    known = models()
    found = {}
    for name in networks or [name for name in DEFAULT if name in known]:
        rows = found[name] = measure(known[name].path(), target)
        table = Table("layer", "expected", "counted", "difference", title=name)
        for row in rows:
            expected, counted = int(str(row["expected"])), int(str(row["counted"]))
            off = f"{expected / counted - 1:+.1%}" if counted else ""
            table.add_row(str(row["layer"])[-40:], f"{expected:,}", f"{counted:,}", off)
        Console().print(table)
    if json_file:
        json_file.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
