"""The command ``dovetail inspect``."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .output import clear_errors, human, json_option, print_json, progress, table
from .paths import PATH

if TYPE_CHECKING:
    from .facts import Facts

__all__ = ["inspect"]


@click.command()
@click.argument("file", type=PATH)
@click.option("--target", default="vta", show_default=True, help="Target, if FILE is a model.")
@click.option("--key", type=PATH, metavar="KEY.pub", help="Check FILE's signature.")
@json_option
@clear_errors
def inspect(file: Path, target: str, key: Path | None, as_json: bool) -> None:
    """Show what is in FILE, a module (.dvt) or a model (.onnx, .tflite, .pt2), without running it.

    Shows inputs, outputs, operators, parts with their sizes, the share of the multiply-accumulates
    on the accelerator, and who signed the file.
    """
    from .facts import model_facts, module_facts

    is_module = file.suffix == ".dvt"
    if key and not is_module:
        raise click.UsageError(f"--key with the model {file}; only modules (.dvt) are signed")
    with progress(f"reading {file.name}"):
        if key:
            from dovetail.runtime.trust.signature import load_signed

            load_signed(file, key)
        facts = module_facts(file) if is_module else model_facts(file, target)
    if key:
        facts["signature_checked"] = str(key)
    if as_json:
        print_json(facts)
    else:
        _show(facts)


def _show(facts: "Facts") -> None:
    tensors: list[tuple[object, ...]] = [
        (kind[:-1], each["name"], each["dtype"], _shape(each["shape"]))
        for kind in ("inputs", "outputs")
        for each in facts[kind]
    ]
    headings = dict.fromkeys(("", "name", "elements", "shape"), "left")
    human.print(table(facts["file"], headings, tensors))
    if facts["operators"]:
        counted: list[tuple[object, ...]] = list(facts["operators"].items())
        human.print(table("Operators", {"operator": "left", "count": "right"}, counted))
    for number, part in enumerate(facts["parts"], 1):
        rows: list[tuple[object, ...]] = [
            (name.replace("_", " "), f"{value:,}" if isinstance(value, int) else value)
            for name, value in part.items()
        ]
        human.print(table(f"Part {number}", {"": "left", "value": "right"}, rows))
    human.print(f"{facts['kind']} for {facts['target']}, {facts['bytes']:,} bytes")
    if facts["macs_on_accelerator"] is not None:
        human.print(f"{facts['macs_on_accelerator']:.1%} of the MACs on the accelerator")
    if facts["kind"] == "module":
        human.print(_signature(facts))
    elif facts["problem"]:
        human.print(f"{facts['target']} runs nothing of it: {facts['problem']}")


def _shape(sizes: list[int | None]) -> str:
    return f"[{', '.join('any' if size is None else str(size) for size in sizes)}]"


def _signature(facts: "Facts") -> str:
    origin = "compiled here" if facts["compiled_here"] else "not compiled here"
    code = "holds machine code" if facts["holds_machine_code"] else "holds data only"
    if facts["signed_by"] is None:
        return f"not signed; {origin}; {code}"
    checked = facts.get("signature_checked")
    said = f"checked with {checked}" if checked else "not checked: --key KEY.pub does"
    return f"signed by key {facts['signed_by'][:16]}..., {said}; {origin}; {code}"
