"""The command ``dovetail export``."""

from pathlib import Path

import click

from ..arrays import read_dimensions
from ..output import clear_errors, human, print_json, progress_line
from ..paths import PATH

__all__ = ["export"]


@click.group()
def export() -> None:
    """Write a model for a place where Dovetail is not."""


@export.command()
@click.argument("model", type=PATH)
@click.option("-o", "--output", type=PATH, required=True, help="FOLDER")
@click.option(
    "--dim", "dims", multiple=True, metavar="NAME=SIZE", help="Size of a symbolic dimension."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
@clear_errors
def web(model: Path, output: Path, dims: tuple[str, ...], as_json: bool) -> None:
    """Write a folder with a page that runs MODEL in the browser, on its GPU.

    The folder has WGSL, weights, a manifest and the page; serve it as it is.
    """
    from dovetail.runtime.gpu.part import GpuPart

    from ...driver import compile_model
    from ...errors import ModelError
    from ...options import CompileOptions
    from .folder import FILES, write_folder

    with progress_line(f"compiling {model.name}"):
        options = CompileOptions.from_environment()
        module = compile_model(model, "webgpu", options, read_dimensions(dims))
    (part,) = module.parts
    if not isinstance(part, GpuPart):
        raise ModelError(
            f"{model}: its shapes depend on data; required fixed ones: bind sizes (--dim)"
        )
    write_folder(part, output, model.stem)
    figures = {
        "output": str(output),
        "files": {name: (output / name).stat().st_size for name in FILES},
        "kernels": len(part.kernels),
        "inputs": [each.name for each in part.inputs],
        "outputs": [each.name for each in part.outputs],
    }
    if as_json:
        print_json(figures)
    else:
        size = sum((output / name).stat().st_size for name in FILES)
        human.print(f"{output}: {len(part.kernels)} kernels, {size:,} bytes")
        human.print(f"to see it: python3 -m http.server --directory {output}")
