"""The command ``dovetail tune``."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..arrays import read_dimensions
from ..numbers import POSITIVE
from ..output import clear_errors, human, json_option, print_json, progress
from ..paths import PATH

if TYPE_CHECKING:
    from ...tune.subject import Subject
    from ...tune.tuning import Progress, Tuned

__all__ = ["tune"]


@click.command()
@click.argument("model", type=PATH)
@click.option(
    "--target",
    default="cpu",
    show_default=True,
    help="cpu, vta, vta:CONFIG, opencl, cuda or webgpu.",
)
@click.option("-o", "--output", required=True, type=PATH, help="Folder for the results.")
@click.option(
    "--minutes", type=POSITIVE, default=10.0, show_default=True, help="Minutes after which to stop."
)
@click.option("--trials", type=click.IntRange(1), help="Measurements after which to stop.")
@click.option(
    "--jobs", type=click.IntRange(1), help="Processes that measure.  Default: half the cores."
)
@click.option("--scheduler", help="Address of a Dask scheduler, to measure on its workers.")
@click.option(
    "--threads", type=click.IntRange(1, 1024), default=1, help="Threads of the code (cpu)."
)
@click.option("--cpu-level", default="native", help="CPU that the code is for (cpu).")
@click.option(
    "--dim", "dims", multiple=True, metavar="NAME=SIZE", help="Size of an open dimension (cpu)."
)
@click.option("--device", help="Device to measure on (GPUs).  Default: the target's kind.")
@click.option(
    "--precision",
    type=click.Choice(["fp32", "fp16", "bf16"]),
    default="fp32",
    help="Type of floats in memory (GPUs).",
)
@click.option("--no-winograd", is_flag=True, help="Use only direct convolutions (cpu).")
@click.option("--seed", default=0, show_default=True, help="Seed of the search.")
@json_option
@clear_errors
def tune(
    model: Path,
    target: str,
    output: Path,
    minutes: float,
    trials: int | None,
    jobs: int | None,
    scheduler: str | None,
    threads: int,
    cpu_level: str,
    dims: tuple[str, ...],
    device: str | None,
    precision: str,
    no_winograd: bool,
    seed: int,
    as_json: bool,
) -> None:
    """Search for faster schedules of MODEL by measuring them.

    Each measurement is written to trials.jsonl in the folder at once, and the best schedules at the
    end to records.json, for `dovetail compile --records`.  After an interruption, the same command
    continues.
    """
    from dovetail.runtime.parts import target_kind

    from ...front.table import store_model
    from ...options import CompileOptions, Precision
    from ...targets.gpu.target import Gpu
    from ...targets.table import find_target
    from ...targets.vta.target import Vta
    from ...tune.kernel import Setting
    from ...tune.subject import cpu_subject
    from ...tune.tuning import RECORDS, Options
    from ...tune.tuning import tune as run

    chosen = find_target(target)
    options = Options(
        seconds=60 * minutes, trials=trials, workers=jobs or 1, scheduler=scheduler, seed=seed
    )
    with progress(f"reading {model.name}"):
        loaded = store_model(model)
        subject: Subject
        if isinstance(chosen, Gpu):
            from ...tune.gpu_subject import gpu_subject

            compiled = CompileOptions(precision=Precision(precision))
            where = device or target_kind(chosen.name)
            subject = gpu_subject(loaded, read_dimensions(dims), chosen, where, compiled)
        elif not isinstance(chosen, Vta):
            setting = Setting(cpu_level, threads)
            subject = cpu_subject(loaded, read_dimensions(dims), setting, not no_winograd)
        else:
            from ...tune.accelerator import accelerator_subject

            subject = accelerator_subject(loaded, chosen.config)
    with _bar(subject.unit) as observe:
        found = run(subject, output, options, observe)
    for note in found.notes:
        human.print(f"note: {note}")
    _report(found, subject, output / RECORDS, as_json)


@contextmanager
def _bar(unit: Callable[[float], str]) -> "Iterator[Callable[[Progress], None]]":
    """A line that shows the best so far."""
    from rich.progress import Progress as Bar
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        *(SpinnerColumn(), TextColumn("tuning"), TimeElapsedColumn()),
        TextColumn("{task.fields[trials]} trials, {task.fields[failed]} failed"),
        TextColumn("{task.fields[figures]}"),
        TextColumn("{task.fields[title]}"),
    )
    hidden = not human.is_terminal
    with Bar(*columns, console=human, transient=True, disable=hidden) as bar:
        line = bar.add_task("tuning", total=None, trials=0, failed=0, figures="", title="")

        def observe(progress: "Progress") -> None:
            figures = ""
            if progress.start:
                part = progress.best / progress.start
                figures = f"{unit(progress.start)} → {unit(progress.best)} ({part:.3f})"
            bar.update(
                line,
                trials=progress.trials,
                failed=progress.failed,
                figures=figures,
                title=progress.title[:48],
            )

        yield observe


def _report(found: "Tuned", subject: "Subject", path: Path, as_json: bool) -> None:
    done = found.progress
    figures = {
        "output": str(path),
        "records": len(found.entries),
        "problems": done.problems,
        "trials": done.trials,
        "known": done.known,
        "failed": done.failed,
        "seconds": round(done.seconds, 1),
        "start": done.start,
        "best": done.best,
        "whole": done.whole,
    }
    if as_json:
        print_json(figures)
        return
    gain = f", {subject.unit(done.start)} → {subject.unit(done.best)}" if done.start else ""
    if done.whole:
        gain += f"; as a whole {subject.unit(done.whole[0])} → {subject.unit(done.whole[1])}"
    human.print(
        f"{path}: {len(found.entries)} records of {done.problems} problems, {done.trials:,} trials "
        f"({done.failed:,} failed) and {done.known:,} known ones{gain}"
    )
