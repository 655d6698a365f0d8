"""The command ``dovetail convert``."""

from collections import Counter
from pathlib import Path

import click

from .arrays import dimensions_option, read_dimensions
from .output import clear_errors, human, json_option, print_json, progress, require_folder
from .paths import PATH

__all__ = ["convert"]


@click.command()
@click.argument("model", type=PATH)
@click.option("-o", "--output", type=PATH, required=True, help="FILE.onnx")
@dimensions_option
@json_option
@clear_errors
def convert(model: Path, output: Path, dims: tuple[str, ...], as_json: bool) -> None:
    """Write MODEL, a file of any front end, as ONNX with fixed shapes.

    Inputs and outputs keep their names and layouts; inside the model, images are channels-first.
    """
    from dovetail.runtime.files import write_whole

    from ..front.onnx.write import onnx_model
    from ..front.table import open_model

    require_folder(output)
    with progress(f"converting {model.name}"):
        written = onnx_model(open_model(model).bind(read_dimensions(dims)), batch=1)
    write_whole(output, written.SerializeToString())
    operators = Counter(node.op_type for node in written.graph.node)
    figures = {
        "output": str(output),
        "opset": written.opset_import[0].version,
        "operators": dict(sorted(operators.items(), key=lambda each: (-each[1], each[0]))),
        "inputs": [each.name for each in written.graph.input],
        "outputs": [each.name for each in written.graph.output],
        "bytes": output.stat().st_size,
    }
    if as_json:
        print_json(figures)
    else:
        human.print(f"{output}: {operators.total():,} nodes, {figures['bytes']:,} bytes")
