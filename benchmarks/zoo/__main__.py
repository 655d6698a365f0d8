"""Architectures that nobody tuned for, through both quantisers, on the accelerator: ``make zoo``.

Weights are random, so results say nothing of accuracy.  What is done is kept in ``build/zoo``, one
file a network; ``--again`` measures anew.  A network that takes longer than ``--limit`` is refused.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import click
from architectures import ZOO, Architecture, Source
from measure import Figures
from quantise import QUANTISERS
from rich.console import Console
from table import reasons, summary, table

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FOLDER = ROOT / "build" / "zoo"
REAL = ROOT.parent / "shared" / "models" / "ultraface" / "ultraface_rfb_320.onnx"
FILE_WIDTH = 180
"""Columns when standard output is no terminal."""


def float_model(chosen: Architecture, size: int | None, folder: Path) -> Path | None:
    """The exported network; None where it cannot be had."""
    if chosen.source is Source.FILE:
        return REAL if REAL.is_file() else None
    path = folder / "float" / f"{chosen.name}-{chosen.image(size)}.onnx"
    if not path.is_file():
        words = [str(path.parent), str(size or 0), chosen.name]
        subprocess.run([sys.executable, str(HERE / "export.py"), *words], check=False)
    return path if path.is_file() else None


def measured(
    path: Path, quantiser: str, target: str, folder: Path, limit: int, again: bool
) -> Figures:
    """The figures of one network, kept or new."""
    stem = f"{path.stem}-{quantiser}"
    result = folder / f"{stem}-{target.replace(':', '_')}.json"
    if again or not result.is_file():
        result.unlink(missing_ok=True)
        words = [path, folder / f"{stem}.onnx", quantiser, target, result]
        command = [sys.executable, str(HERE / "measure.py"), *map(str, words)]
        figures = Figures(path.stem, quantiser, target, where="end")
        try:
            done = subprocess.run(command, timeout=limit, capture_output=True, text=True)
            figures.refused = f"ended with {done.returncode}: {done.stderr[-400:]}"
        except subprocess.TimeoutExpired:
            figures.refused = f"took more than {limit} s"
        if not result.is_file():
            result.write_text(json.dumps(asdict(figures), indent=1) + "\n")
    return Figures(**json.loads(result.read_text()))


def rows(
    names: list[str], quantisers: list[str], size: int | None, target: str, folder: Path,
    limit: int, again: bool,
) -> Iterator[Figures]:  # fmt: skip
    """One after another."""
    for name in names:
        path = float_model(ZOO[name], size, folder)
        for quantiser in quantisers:
            if path is None:
                yield Figures(name, quantiser, target, refused="no file", where="export")
            else:
                yield measured(path, quantiser, target, folder, limit, again)


@click.command()
@click.option("--models", help="Names, separated by commas; default: all.")
@click.option("--quantisers", default=",".join(QUANTISERS), show_default=True)
@click.option("--size", type=int, help="Of the images; default: each network's usual one.")
@click.option("--target", default="vta:zynq7020", show_default=True)
@click.option("--limit", default=1800, show_default=True, help="Seconds for one network.")
@click.option("--again", is_flag=True, help="Measure what is measured already.")
@click.option("--folder", type=click.Path(path_type=Path), default=FOLDER)
@click.option(
    "--json", "json_path", type=click.Path(path_type=Path), help="Write the figures here."
)
def main(
    models: str | None, quantisers: str, size: int | None, target: str, limit: int, again: bool,
    folder: Path, json_path: Path | None,
) -> None:  # fmt: skip
    """Measure networks of the zoo."""
    names, chosen = models.split(",") if models else list(ZOO), quantisers.split(",")
    for given, known in ((names, ZOO), (chosen, QUANTISERS)):
        if unknown := [name for name in given if name not in known]:
            raise click.UsageError(f"no {unknown[0]!r}; known are {', '.join(known)}")
    folder.mkdir(parents=True, exist_ok=True)
    console = Console(width=None if sys.stdout.isatty() else FILE_WIDTH)
    found = []
    for each in rows(names, chosen, size, target, folder, limit, again):
        found.append(each)
        click.echo(f"{each.model} {each.quantiser}: {each.refused or 'done'}", err=True)
    console.print(table(found))
    console.print(summary(found), *reasons(found), sep="\n")
    if json_path:
        json_path.write_text(json.dumps([asdict(each) for each in found], indent=2) + "\n")


if __name__ == "__main__":
    main()
