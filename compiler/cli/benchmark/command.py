"""The command ``dovetail benchmark``."""

import tempfile
from pathlib import Path
from typing import Any

import click

from ..numbers import POSITIVE
from ..output import clear_errors, human, json_option, print_json, progress_line, require_folder
from ..paths import PATH
from ..records import record_paths, records_option

__all__ = ["benchmark"]

NOTE = """\
ms: one inference; of accelerators its cycles at the clock, without the host's part, which took \
this machine host ms.
MB: the process at its largest; of accelerators their DRAM."""


@click.command()
@click.argument("model", type=PATH)
@click.option(
    "--devices",
    default="sim,cpu",
    show_default=True,
    help="Separated by commas: sim, rtl, board:MODEL@PORT, cpu, and ort (ONNX Runtime).",
)
@click.option(
    "--target", "targets", multiple=True, help="Accelerator; may be repeated.  [default: vta]"
)
@click.option("--mhz", type=POSITIVE, help="Clock of accelerators.  Default: their own.")
@click.option("--data", type=PATH, help="Inputs, as for dovetail quantize.  Default: random ones.")
@click.option(
    "--samples",
    default=32,
    show_default=True,
    type=click.IntRange(1),
    help="Samples of --data to take.",
)
@click.option("--labels", type=PATH, help="Classes of the samples, FILE.npy.")
@click.option(
    "--reference",
    type=PATH,
    metavar="MODEL",
    help="Float model to compare outputs with.  Default: ort, if it is measured.",
)
@click.option(
    "--rounds",
    default=5,
    show_default=True,
    type=click.IntRange(1),
    help="Rounds; devices take turns.",
)
@click.option(
    "--runs", default=20, show_default=True, type=click.IntRange(1), help="Runs in each round."
)
@click.option(
    "--threads",
    default=1,
    show_default=True,
    type=click.IntRange(1, 1024),
    help="Threads of cpu and ort.",
)
@records_option
@click.option("--svg", type=PATH, help="Write the figures as a picture, FILE.svg.")
@json_option
@clear_errors
def benchmark(
    model: Path,
    devices: str,
    targets: tuple[str, ...],
    mhz: float | None,
    data: Path | None,
    samples: int,
    labels: Path | None,
    reference: Path | None,
    rounds: int,
    runs: int,
    threads: int,
    records: tuple[str, ...],
    svg: Path | None,
    as_json: bool,
) -> None:
    """Measure latency, memory and accuracy of MODEL, of any front end, on several devices.

    Devices take turns, each round in a fresh process; figures are medians over the rounds.
    Accelerators run every sample once.
    """
    from dataclasses import replace

    from dovetail.runtime.files import write_whole

    from ...benchmark.accuracy import accuracy_of
    from ...benchmark.measure import Measurement
    from ...benchmark.subjects import ORT, subjects
    from ...front.table import open_model
    from ...options import CompileOptions
    from .given import read_batch, read_labels
    from .picture import picture_svg
    from .show import Row, figures, result_table
    from .taking import measure_all, reference_outputs

    if svg and svg.suffix != ".svg":
        raise click.UsageError(f"{svg}; required FILE.svg")
    require_folder(svg)
    chosen = subjects(devices.split(","), targets or ("vta",))
    loaded: Any = open_model(model)
    batch = read_batch(loaded, data, samples)
    count = len(next(iter(batch.values())))
    classes = read_labels(labels, count) if labels else None
    options = CompileOptions.from_environment()
    cpu = replace(options.cpu, threads=threads)
    options = replace(options, records=record_paths(records), cpu=cpu)
    with tempfile.TemporaryDirectory() as folder, progress_line("benchmark") as tell:
        measurement = Measurement(Path(folder), batch, rounds, runs, threads)
        wanted, against = None, ""
        if reference:
            wanted, against = reference_outputs(reference, loaded, measurement, options, tell)
        found = measure_all(chosen, model, loaded, measurement, options, mhz, tell)
        ort = next((each for each in found if each.subject.device == ORT), None)
        if wanted is None and ort:
            wanted, against = ort.outputs, ORT
    rows = [Row(each, found[0], accuracy_of(each.outputs, wanted, classes)) for each in found]
    about: dict[str, Any] = {
        "model": str(model),
        "samples": count,
        "rounds": rounds,
        "runs": runs,
        "threads": threads,
        "against": against or None,
    }
    if wanted is not None and classes is not None and reference:
        about["reference_top1"] = accuracy_of(wanted, None, classes).top1
    if svg:
        write_whole(svg, picture_svg(model.name, rows, about).encode())
        human.print(f"written: {svg}")
    if as_json:
        print_json(figures(rows, about))
        return
    title = f"{model.name}: {rounds} rounds of {runs} runs, {_count(count, 'sample')}"
    human.print(result_table(title, rows))
    human.print(NOTE)
    if against:
        human.print(f"agreement, error: of the first output, against {against}")
    if "reference_top1" in about:
        human.print(f"top 1 of {against}: {about['reference_top1']:.1%}")


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("s" if number != 1 else "")
