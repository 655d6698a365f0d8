"""The command ``dovetail check``."""

from dataclasses import asdict
from pathlib import Path

import click

from .arrays import dimensions_option, random_arrays, read_dimensions, read_inputs
from .numbers import NOT_NEGATIVE
from .output import clear_errors, human, json_option, print_json, progress, table
from .paths import PATH

__all__ = ["check"]


@click.command()
@click.argument("model", type=PATH)
@click.option("--input", "inputs", multiple=True, metavar="NAME=FILE.npy", help="Default: random.")
@dimensions_option
@click.option("--threads", type=click.IntRange(1, 1024), default=1, help="Threads of the code.")
@click.option("--cpu-level", default="native", help="CPU that the code is for.")
@click.option(
    "--tolerance",
    type=NOT_NEGATIVE,
    default=1e-4,
    show_default=True,
    help="Largest relative difference.",
)
@json_option
@clear_errors
def check(
    model: Path,
    inputs: tuple[str, ...],
    dims: tuple[str, ...],
    threads: int,
    cpu_level: str,
    tolerance: float,
    as_json: bool,
) -> None:
    """Compare machine code of MODEL with the graph interpreter, kernel by kernel.

    Each kernel runs on operands from the interpreter, so a difference is the fault of that kernel
    alone.  Differences are relative to the tensor's largest magnitude.
    """
    from dovetail.isa.cache import cache_directory

    from ..checking.kernels import check_model
    from ..errors import CompilerError
    from ..front.table import open_model
    from ..targets.cpu.llvm.compile import LlvmOptions
    from ..targets.cpu.native import signature_of

    sizes = read_dimensions(dims)
    options = LlvmOptions(cpu_level, threads, cache=cache_directory())
    with progress(f"checking {model.name}"):
        loaded = open_model(model)
        arrays = read_inputs(inputs) or random_arrays(signature_of(loaded, sizes))
        done = check_model(loaded, arrays, sizes, options)
    if as_json:
        print_json({"worst": done.worst, **asdict(done)})
    else:
        rows: list[tuple[object, ...]] = [
            (", ".join(each.origins) or f"output {each.tensor}", each.elements, each.unequal,
             f"{each.largest:.3g}", f"{each.relative:.3g}")
            for each in (*done.kernels, *done.outputs)
        ]  # fmt: skip
        headings = {"nodes": "left"} | dict.fromkeys(
            ("elements", "unequal", "largest", "relative"), "right"
        )
        human.print(table(f"{model.name} against the interpreter", headings, rows))
    if done.worst > tolerance:
        raise CompilerError(
            f"a relative difference of {done.worst:.3g}; tolerated are {tolerance:g}"
        )
