"""The command ``dovetail explore``."""

import os
from collections import Counter
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..output import clear_errors, human, json_option, print_json, progress, table
from ..paths import PATH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ...explore.exploration import Exploration, Progress

__all__ = ["explore"]

SHOWN = 12
"""Designs of the front that the terminal shows."""

SHOWN_FAILURES = 5
"""Reasons for failures that it shows."""


@click.command()
@click.argument("models", metavar="[MODEL]...", nargs=-1, type=PATH)
@click.option(
    "--models",
    "more_models",
    multiple=True,
    type=PATH,
    help="A quantised model; the same as MODEL.",
)
@click.option("--space", required=True, type=PATH, help="Space of designs, SPACE.toml.")
@click.option("-o", "--output", required=True, type=PATH, help="Folder for the results.")
@click.option("--jobs", type=click.IntRange(1), help="Processes.  Default: one for each core.")
@click.option("--scheduler", help="Address of a Dask scheduler, to use its workers.")
@click.option(
    "--budget",
    type=click.IntRange(1),
    default=5000,
    show_default=True,
    help="Most designs to try; a larger space is searched with Optuna.",
)
@click.option(
    "--family",
    type=click.Choice(["ECP5", "Xilinx 7"]),
    default="Xilinx 7",
    show_default=True,
    help="FPGA family that a search optimises for; results are for both.",
)
@click.option("--seed", default=0, show_default=True, help="Seed of the search.")
@click.option("--cache/--no-cache", default=True, help="Use the results of other explorations.")
@click.option(
    "--synthesize",
    type=click.IntRange(0),
    default=0,
    metavar="N",
    help="Count the areas of the N best designs of the front with Yosys (minutes each).",
)
@click.option(
    "--front-dir",
    type=PATH,
    help="Folder that gets the designs of the front for --family: front_1.toml and so on.",
)
@click.option(
    "--pick",
    type=click.IntRange(1),
    metavar="N",
    help="Write the Nth design of that front as front_N.toml and front_N.v, with the results.",
)
@json_option
@clear_errors
def explore(
    models: tuple[Path, ...],
    more_models: tuple[Path, ...],
    space: Path,
    output: Path,
    jobs: int | None,
    scheduler: str | None,
    budget: int,
    family: str,
    seed: int,
    cache: bool,
    synthesize: int,
    front_dir: Path | None,
    pick: int | None,
    as_json: bool,
) -> None:
    """Evaluate many accelerators and schedules: MODEL MODEL --space SPACE.toml.

    Each result is written to the folder at once; after an interruption, the same command continues.
    Afterwards the folder has results.csv, results.parquet and report.html.
    """
    paths = (*more_models, *models)
    if not paths:
        raise click.UsageError("no model is given; required one or more models")
    from ...explore.exploration import Options
    from ...explore.exploration import explore as run

    options = Options(
        workers=jobs or os.cpu_count() or 1,
        scheduler=scheduler,
        budget=budget,
        family=family,
        seed=seed,
        cache=cache,
    )
    with _bar() as observe:
        found = run(paths, space, output, options, observe)
    if synthesize and _synthesize(found, family, synthesize):
        with _bar() as observe:
            found = run(paths, space, output, options, observe)
    written = _write(found, output)
    if front_dir:
        written += _write_front(found, family, front_dir)
    if pick:
        written += _write_pick(found, family, pick, output)
    if as_json:
        print_json(_figures(found))
    else:
        _show(found, family)
    for note in found.notes:
        human.print(f"note: {note}")
    for path in written:
        human.print(f"written: {path}")


@contextmanager
def _bar() -> "Iterator[Callable[[Progress], None]]":
    """A line that shows how far the exploration is."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        *(TextColumn("exploring"), BarColumn(), MofNCompleteColumn()),
        *(TextColumn("{task.fields[known]} known, {task.fields[failed]} failed"),),
        TimeRemainingColumn(),
    )
    hidden = not human.is_terminal
    with Bar(*columns, console=human, transient=True, disable=hidden) as bar:
        line = bar.add_task("exploring", total=None, known=0, failed=0)

        def observe(progress: "Progress") -> None:
            bar.update(
                line,
                total=progress.total,
                completed=progress.done,
                known=progress.found,
                failed=progress.failed,
            )

        yield observe


def _synthesize(found: "Exploration", family: str, count: int) -> int:
    """Count what is only estimated, of the first ``count`` designs of the front."""
    from ...explore.area_cache import count_area
    from ...explore.front import fitting_front

    counted = 0
    for result in fitting_front(found.results, family)[:count]:
        if result.families[family].area.basis != "synthesised":
            with progress(f"synthesising {result.design.config.name}"):
                count_area(result.design.config, family)
            counted += 1
    return counted


def _write(found: "Exploration", folder: Path) -> list[Path]:
    """The tables and the page."""
    from dovetail.runtime.files import write_whole

    from ...explore.export import rows, to_csv, to_parquet
    from .page import explore_page

    listed = rows(found)
    content = {"results.csv": to_csv(listed)}
    if find_spec("pyarrow"):
        content["results.parquet"] = to_parquet(listed)
    else:
        human.print(
            "note: no results.parquet, which needs pyarrow: pip install 'dovetail[explore]'"
        )
    content["report.html"] = explore_page(found).encode()
    for name, data in content.items():
        write_whole(folder / name, data)
    return [folder / name for name in content]


def _write_front(found: "Exploration", family: str, folder: Path) -> list[Path]:
    """A configuration for each design of the front; those of an earlier exploration are removed."""
    from dovetail.runtime.files import write_whole

    from ...explore.front_files import front_files

    folder.mkdir(parents=True, exist_ok=True)
    files = front_files(found, family)
    for path in folder.glob("front_*.toml"):
        if path.name not in files and path.stem.removeprefix("front_").isdecimal():
            path.unlink()
    for name, text in files.items():
        write_whole(folder / name, text.encode())
    return [folder / name for name in files]


def _write_pick(found: "Exploration", family: str, number: int, folder: Path) -> list[Path]:
    """The configuration and the Verilog of one design of the front.

    Raises ClickException when the front has fewer.
    """
    from dovetail.runtime.files import write_whole
    from dovetail.vta_hw.verilog import emit_verilog

    from ...explore.front import fitting_front
    from ...explore.front_files import front_configuration, front_files

    front = fitting_front(found.results, family)
    if number > len(front):
        raise click.ClickException(
            f"--pick {number}: the front for {family} has {len(front)} designs"
        )
    config = front_configuration(front[number - 1], family, number)
    with progress(f"generating {config.name}"):
        verilog = emit_verilog(config)
    text = front_files(found, family)[f"{config.name}.toml"]
    content = {f"{config.name}.toml": text, f"{config.name}.v": verilog}
    for name, each in content.items():
        write_whole(folder / name, each.encode())
    return [folder / name for name in content]


def _figures(found: "Exploration") -> dict[str, object]:
    from ...explore.front import fitting_front

    return {
        "designs": len(found.results),
        "searched": found.searched,
        "evaluations": found.progress.done,
        "known": found.progress.found,
        "failed": found.progress.failed,
        "front": {
            family: [
                {
                    "design": result.design.key,
                    **result.design.values,
                    "latency_ms": 1e3 * result.families[family].latency,
                    "share": result.families[family].area.share,
                    "energy_uj": result.energy,
                }
                for result in fitting_front(found.results, family)
            ]
            for family in found.basis.areas
        },
    }


def _show(found: "Exploration", family: str) -> None:
    from ...explore.evaluate import Failure
    from ...explore.front import fitting_front

    front = fitting_front(found.results, family)
    part = found.basis.areas[family].family.part
    axes = [axis.name for axis in found.space.axes if len(axis.values) > 1]
    columns = {
        " ".join(axes): "left",
        "ms": "right",
        "LUT": "right",
        "multipliers": "right",
        "block RAM": "right",
        f"of {part}": "right",
        "area": "left",
        "uJ": "right",
    }
    lines: list[tuple[object, ...]] = []
    for result in front[:SHOWN]:
        mine = result.families[family]
        area = mine.area
        name = " ".join(str(result.design.values[axis]) for axis in axes)
        lines.append(
            (
                *(name, f"{1e3 * mine.latency:.3f}", f"{area.luts:,}", area.multipliers),
                *(f"{area.block_rams:g}", f"{area.share:.0%}", area.said, f"{result.energy:.1f}"),
            )
        )
    if front:
        human.print(table(f"Front of {len(front)} designs, {family}", columns, lines))
    else:
        human.print(f"no design that runs all models fits an {part}")
    how = "searched" if found.searched else "all of"
    human.print(
        f"{len(found.results):,} designs ({how} a space of {found.space.size:,} combinations), "
        f"{found.progress.done:,} evaluations, {found.progress.found:,} of them known, "
        f"{found.progress.failed:,} failed"
    )
    failed = Counter(
        f"{model}: {outcome.message}"
        for result in found.results
        for model, outcome in result.outcomes.items()
        if isinstance(outcome, Failure)
    )
    for said, count in failed.most_common(SHOWN_FAILURES):
        human.print(f"failed on {count:,}: {said}")
