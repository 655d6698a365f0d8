"""The command ``dovetail profile``."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..arrays import dimensions_option, random_inputs, read_dimensions, read_inputs
from ..output import clear_errors, human, json_option, print_json, progress, require_folder
from ..paths import PATH
from ..records import record_paths, records_option

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from dovetail.runtime.profile.profile import Profile

__all__ = ["profile"]

MOST = 3
"""Causes of a layer's cycles, and things to try, that the text names; the report has all."""


@click.command()
@click.argument("model", type=PATH)
@click.option(
    "--target", default="vta", help="Target, if MODEL is not a module.", show_default=True
)
@click.option("--device", default="sim", help="sim or rtl.", show_default=True)
@click.option("--input", "inputs", multiple=True, metavar="NAME=FILE.npy", help="Default: random.")
@click.option("--html", type=PATH, help="Write the whole report, FILE.html.")
@click.option("--trace", type=PATH, help="Write a Perfetto trace, FILE.")
@click.option("--timeline", type=PATH, help="Write the timeline as a picture, FILE.svg.")
@click.option(
    "--against",
    type=PATH,
    help="Model or module to compare with in the report; runs likewise, but without --records.",
)
@records_option
@dimensions_option
@click.option(
    "--threads", type=click.IntRange(1, 1024), default=1, help="Threads of the code (cpu)."
)
@json_option
@clear_errors
def profile(
    model: Path,
    target: str,
    device: str,
    inputs: tuple[str, ...],
    html: Path | None,
    trace: Path | None,
    timeline: Path | None,
    against: Path | None,
    records: tuple[str, ...],
    dims: tuple[str, ...],
    threads: int,
    as_json: bool,
) -> None:
    """Show where the time of MODEL (.dvt, or a model) goes: layers, units, a timeline.

    With --target cpu, shows the kernels of the model on this CPU.
    """
    from dovetail.runtime.files import write_whole

    from ..programs import is_model
    from ..report import layer_table, unit_table
    from ..timeline import timeline_svg

    for path, suffix in ((html, ".html"), (timeline, ".svg")):
        if path and path.suffix != suffix:
            raise click.UsageError(f"{path}; required FILE{suffix}")
        require_folder(path)
    require_folder(trace)
    if against and not html:
        raise click.UsageError("--against is for the report; required --html FILE.html")
    if target == "cpu" and is_model(model):
        if trace or timeline or against or records:
            raise click.UsageError(
                "--trace, --timeline, --against and --records are of the accelerator; "
                "for --target cpu only --html and --json"
            )
        _cpu(model, read_inputs(inputs), read_dimensions(dims), threads, html, as_json)
        return
    if threads > 1:
        raise click.UsageError("--threads is for code on the CPU; required --target cpu")
    sizes = read_dimensions(dims)
    found = _profile(model, target, device, inputs, sizes, records)
    other = _profile(against, target, device, inputs, sizes) if against else None
    written = []
    if html:
        from .page import profile_page

        with progress(f"drawing {html.name}"):
            written.append((html, profile_page(found, other).encode()))
    if trace:
        from .perfetto import perfetto_trace

        written.append((trace, perfetto_trace(found)))
    if timeline:
        names = [layer.name for layer in found.layers]
        written.append((timeline, timeline_svg(found.timeline, names, found.cycles).encode()))
    for path, content in written:
        write_whole(path, content)
    result, config = found.result, found.config
    if as_json:
        print_json(
            {
                **result.figures(),
                "roof_cycles": found.roof_cycles,
                "counters": dict(result.counters),
                "layers": [{**asdict(each), "bound": each.bound} for each in found.layers],
            }
        )
        return
    human.print(layer_table(found.layers, result))
    human.print(unit_table(result))
    human.print(
        f"utilisation: {result.gemm_utilization:.1%} of {config.macs_per_cycle} MAC a cycle"
    )
    milliseconds = 1e3 * found.cycles / config.clock_hz
    human.print(f"{found.cycles:,} cycles: {milliseconds:.3f} ms at {config.clock_hz / 1e6:g} MHz")
    if found.roof_cycles:
        over = found.cycles / found.roof_cycles
        human.print(f"roof: {found.roof_cycles:,} cycles; the run takes {over:.2f} times as many")
    _explain(found)
    for path, _ in written:
        human.print(f"written: {path}")


def _explain(found: "Profile") -> None:
    """Print what the tables leave open: parts on the CPU, and the first things to try."""
    from ..report import short

    parts, macs = found.beside
    if parts:
        human.print(
            f"not counted: {parts} part{'s' * (parts > 1)} on the CPU with {macs:,} MACs (dovetail "
            "compile says why)"
        )
    if found.slowest is None:
        return
    name, why = found.slowest
    human.print(f"most is lost in {short(name)}. {why.summary}")
    for fact in why.because[:MOST]:
        human.print(f"  {fact}")
    for each in why.tries[:MOST]:
        human.print(f"  try: {each}")


def _cpu(
    model: Path,
    inputs: "Mapping[str, NDArray[Any]]",
    dims: dict[str, int],
    threads: int,
    html: Path | None,
    as_json: bool,
) -> None:
    """The kernels of a model on this CPU."""
    from dovetail.runtime.files import write_whole

    from .cpu import kernel_table, profile_cpu

    with progress(f"compiling and timing {model.name}"):
        found = profile_cpu(model, inputs, dims, threads)
    if html:
        from .page import cpu_page

        write_whole(html, cpu_page(found).encode())
    if as_json:
        print_json(asdict(found))
        return
    human.print(kernel_table(found))
    if html:
        human.print(f"written: {html}")


def _profile(
    model: Path,
    target: str,
    device: str,
    inputs: tuple[str, ...],
    dims: dict[str, int],
    records: tuple[str, ...] = (),
) -> "Profile":
    """Compile if need be, run once, explain."""
    from dovetail.runtime.accelerator.part import accelerator_part
    from dovetail.runtime.errors import DeviceError
    from dovetail.runtime.profile.profile import make_profile
    from dovetail.runtime.session import run

    from ..building import build_for
    from ..programs import open_module, opening

    with progress(f"{opening(model)} {model.name}"):
        module = open_module(model, target, record_paths(records), dims=dims)
    if module.target == "cpu":
        raise DeviceError(
            f"{model} was compiled for the CPU, without clocks; profile the model with --target cpu"
        )
    accelerator_part(module)  # Refuses a module without one.
    build_for(module, device)
    with progress(f"profiling {model.name} on {device}"):
        result = run(module, read_inputs(inputs) or random_inputs(module), device)
        return make_profile(model.name, module, result)
