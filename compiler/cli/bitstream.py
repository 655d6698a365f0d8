"""The command ``dovetail bitstream``."""

import shutil
import subprocess
import tempfile
from pathlib import Path

import click

from .output import clear_errors, human, print_json, progress, table

__all__ = ["bitstream"]

LOADER = "openFPGALoader"


@click.command()
@click.option("--board", "board_name", required=True, help="A board of 'dovetail devices'.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), required=True, help="Folder for the files."
)
@click.option("--seeds", default=8, show_default=True, help="Placements to try, at most.")
@click.option("--first-seed", default=1, show_default=True, help="The first one's seed.")
@click.option("--jobs", default=2, show_default=True, help="Placements at a time.")
@click.option("--program", is_flag=True, help=f"Load it into the board, with {LOADER}.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
@clear_errors
def bitstream(
    board_name: str,
    output: Path,
    seeds: int,
    first_seed: int,
    jobs: int,
    program: bool,
    as_json: bool,
) -> None:
    """Make a board's bitstream: NAME.bit, NAME.svf and manifest.json."""
    from dovetail.bitstreams import flow
    from dovetail.bitstreams.boards import find_board
    from dovetail.bitstreams.record import make_record
    from dovetail.runtime.module import write_whole

    board = find_board(board_name)
    if program and not shutil.which(LOADER):
        raise click.ClickException(
            f"{LOADER} is not on PATH, and --program needs it; install it, or load the file "
            "yourself"
        )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with progress(f"generating {board.name}"):
            flow.write_sources(board, folder)
        with progress("synthesising"):
            flow.synthesize(folder)
        with progress(f"placing and routing, {jobs} at a time"):
            placement = flow.place(
                board, folder, range(first_seed, first_seed + seeds), jobs, human.print
            )
        bits = flow.pack(placement, folder)
        record = make_record(board, placement, folder, bits)
        output.mkdir(parents=True, exist_ok=True)
        for suffix in (".bit", ".svf"):
            write_whole(output / f"{board.name}{suffix}", bits.with_suffix(suffix).read_bytes())
        write_whole(output / "manifest.json", record.to_json().encode())
    if as_json:
        print_json(record.row())
    else:
        row = record.row()
        human.print(table(board.name, dict.fromkeys(row, "left"), [tuple(row.values())]))
        human.print(f"{output / board.name}.bit")
    if program:
        subprocess.run([LOADER, "--board", "ulx3s", str(output / f"{board.name}.bit")], check=True)
