"""The command ``dovetail validate``."""

from dataclasses import asdict
from pathlib import Path

import click

from .output import clear_errors, human, json_option, print_json, progress, table
from .paths import PATH

__all__ = ["validate"]


@click.command()
@click.argument("module", type=PATH)
@click.argument("model", type=PATH)
@click.option("--seed", default=0, show_default=True, help="Chooses the symbols.")
@json_option
@clear_errors
def validate(module: Path, model: Path, seed: int, as_json: bool) -> None:
    """Show that MODULE computes MODEL, for every input.

    The accelerator's programs are executed on symbols instead of numbers.  Each element of each
    output must be the same function of the inputs as in the model's graph: the same products, with
    the same weights, in the same order of functions.
    """
    from dovetail.runtime.module import Module

    from ..front.table import open_model
    from ..translation.module import validate_module

    with progress(f"validating {module.name}"):
        found = list(validate_module(Module.load(module), open_model(model), seed))
    if as_json:
        print_json({"parts": [asdict(each) for each in found]})
        return
    rows: list[tuple[object, ...]] = [
        (each.part, each.target, each.found.instructions, each.found.elements)
        if each.found
        else (each.part, each.target, "not looked at", "")
        for each in found
    ]
    headings = {"part": "right", "target": "left", "instructions": "right", "outputs": "right"}
    human.print(table(f"{module.name} computes what {model.name} says", headings, rows))
