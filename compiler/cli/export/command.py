"""The command ``dovetail export``."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..arrays import read_dimensions
from ..output import clear_errors, human, print_json, progress_line
from ..paths import PATH

if TYPE_CHECKING:
    from dovetail.runtime.gpu.part import GpuPart

    from ...targets.target import Target

__all__ = ["export"]


@click.group()
def export() -> None:
    """Write a model as code that runs without Dovetail."""


def _options(command: Callable[..., None]) -> Callable[..., None]:
    """The argument and the options that all places have."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output."),
        click.option(
            "--dim",
            "dims",
            multiple=True,
            metavar="NAME=SIZE",
            help="Size of a symbolic dimension.",
        ),
        click.option("-o", "--output", type=PATH, required=True, help="FOLDER"),
        click.argument("model", type=PATH),
    ):
        command = option(command)
    return command


@export.command()
@_options
@clear_errors
def web(model: Path, output: Path, dims: tuple[str, ...], as_json: bool) -> None:
    """Write a folder with a page that runs MODEL in the browser, on its GPU.

    The folder has WGSL, weights, a manifest and the page; serve it as it is.
    """
    from .folder import FILES, write_folder

    part = _compiled(model, "webgpu", dims)
    write_folder(part, output, model.stem)
    _report(part, output, FILES, as_json)
    if not as_json:
        human.print(f"to see it: python3 -m http.server --directory {output}")


@export.command()
@_options
@clear_errors
def c(model: Path, output: Path, dims: tuple[str, ...], as_json: bool) -> None:
    """Write MODEL as a header and a source file of plain C.

    They need C's own library alone; the header says how the model is run.
    """
    from ...targets.gpu.target import PLAIN_C
    from .c_program import OPTIONS, c_name, write_c

    part = _compiled(model, PLAIN_C, dims)
    name = c_name(model.stem)
    files = [each.name for each in write_c(part, output, name)]
    _report(part, output, files, as_json)
    if not as_json:
        human.print(f"to compile it: gcc {OPTIONS} -c {output / name}.c")


@export.command()
@_options
@clear_errors
def metal(model: Path, output: Path, dims: tuple[str, ...], as_json: bool) -> None:
    """Write the kernels of MODEL in Metal's language, weights, and a manifest of their launches.

    Nothing here compiles them: no Metal has.
    """
    from ...targets.gpu.target import METAL
    from .folder import METAL_FILES, write_metal

    part = _compiled(model, METAL, dims)
    write_metal(part, output, model.stem)
    _report(part, output, METAL_FILES, as_json)


def _compiled(model: Path, target: "str | Target", dims: tuple[str, ...]) -> "GpuPart":
    """The kernels.  Raises ModelError for shapes that depend on data."""
    from dovetail.runtime.gpu.part import GpuPart

    from ...driver import compile_model
    from ...errors import ModelError
    from ...options import CompileOptions

    with progress_line(f"compiling {model.name}"):
        options = CompileOptions.from_environment()
        module = compile_model(model, target, options, read_dimensions(dims))
    (part,) = module.parts
    if not isinstance(part, GpuPart):
        raise ModelError(
            f"{model}: its shapes depend on data; required fixed ones: bind sizes (--dim)"
        )
    return part


def _report(part: "GpuPart", output: Path, files: Sequence[str], as_json: bool) -> None:
    sizes = {name: (output / name).stat().st_size for name in files}
    figures = {
        "output": str(output),
        "files": sizes,
        "kernels": len(part.kernels),
        "inputs": [each.name for each in part.inputs],
        "outputs": [each.name for each in part.outputs],
    }
    if as_json:
        print_json(figures)
    else:
        total = sum(sizes.values())
        human.print(f"{output}: {len(part.kernels)} kernels, {total:,} bytes")
