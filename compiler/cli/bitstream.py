"""The command ``dovetail bitstream``."""

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .output import clear_errors, human, json_option, print_json, progress, table
from .paths import PATH

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from dovetail.bitstreams.boards import Board, ZynqBoard
    from dovetail.bitstreams.record import Record
    from dovetail.isa.config import HardwareConfig

__all__ = ["bitstream"]

LOADER = "openFPGALoader"


def _names() -> tuple[str, ...]:
    """Names of the boards; the table of them is read only when they are asked for."""
    from dovetail.bitstreams.boards import board_names

    return board_names()


class _Board(click.ParamType):
    """The name of a board; which there are is said where none is named."""

    name = "name"

    def get_missing_message(self, param: Any, ctx: Any) -> str:
        return f"One of: {', '.join(_names())}."

    def shell_complete(self, ctx: Any, param: Any, incomplete: str) -> "list[CompletionItem]":
        from click.shell_completion import CompletionItem

        return [CompletionItem(name) for name in _names() if name.startswith(incomplete)]


class _BoardOption(click.Option):
    """Names the boards in its help."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        self.help = f"One of: {', '.join(_names())}."
        return super().get_help_record(ctx)


@click.command()
@click.option("--board", "board_name", required=True, type=_Board(), cls=_BoardOption)
@click.option(
    "--config",
    "config_name",
    metavar="FILE.toml",
    help="Your own accelerator instead of the board's.",
)
@click.option("-o", "--output", type=PATH, required=True, help="Folder for the files.")
@click.option("--seeds", default=8, show_default=True, help="Most placements to try.")
@click.option("--first-seed", type=int, help="Seed of the first placement.  Default: the board's.")
@click.option("--jobs", default=2, show_default=True, help="Placements to run at a time.")
@click.option("--program", is_flag=True, help=f"Load the bitstream into the board, with {LOADER}.")
@click.option("--count", is_flag=True, help="Zynq: count cells with Yosys, in manifest.json.")
@json_option
@clear_errors
def bitstream(
    board_name: str,
    config_name: str | None,
    output: Path,
    seeds: int,
    first_seed: int | None,
    jobs: int,
    program: bool,
    count: bool,
    as_json: bool,
) -> None:
    """Make a board's bitstream: NAME.bit, NAME.svf, manifest.json, and nextpnr's report.json.

    For a Zynq board: NAME.zip, a Vivado project with its address map.
    """
    if program and not shutil.which(LOADER):
        raise click.ClickException(
            f"{LOADER} is not on PATH, and --program needs it; install it, or load the file "
            "yourself"
        )
    from dovetail.bitstreams.boards import ZynqBoard, any_board
    from dovetail.isa.configs import find_config

    board, config = any_board(board_name), find_config(config_name) if config_name else None
    if isinstance(board, ZynqBoard):
        if program:
            raise click.ClickException(f"{board_name} is programmed from Vivado, or by PYNQ")
        _zynq_project(board, config, output, count, as_json)
        return
    record, path = _bitstream(board, config, output, first_seed, seeds, jobs)
    _show(record, as_json)
    if not as_json:
        human.print(str(path))
    if program:
        _program(path)


def _show(record: "Record", as_json: bool) -> None:
    row = record.row()
    if as_json:
        print_json(row)
    else:
        human.print(table(record.board, dict.fromkeys(row, "left"), [tuple(row.values())]))


def _zynq_project(
    board: "ZynqBoard", config: "HardwareConfig | None", output: Path, count: bool, as_json: bool
) -> None:
    """Write a Vivado project, and count its cells where that is asked for."""
    from dataclasses import replace

    from dovetail.bitstreams.zynq_archive import make_archive
    from dovetail.bitstreams.zynq_record import count_cells
    from dovetail.runtime.files import write_whole

    board = replace(board, config=config) if config else board
    with progress(f"generating {board.name}"):
        content = make_archive(board)
    output.mkdir(parents=True, exist_ok=True)
    path = output / f"{board.name}.zip"
    write_whole(path, content)
    if not as_json:
        human.print(f"{path}: a Vivado project; unzip it and run build_dovetail.sh")
    elif not count:
        print_json({"board": board.name, "configuration": board.config.name, "output": str(path)})
    if count:
        with progress("counting cells with Yosys"):
            counted = count_cells(board, content)
        write_whole(output / "manifest.json", counted.to_json().encode())
        _show(counted, as_json)


def _bitstream(
    board: "Board",
    config: "HardwareConfig | None",
    output: Path,
    first: int | None,
    count: int,
    jobs: int,
) -> "tuple[Record, Path]":
    """Make and write it; return its record and the ``.bit`` file."""
    from dataclasses import replace

    from dovetail.bitstreams import flow
    from dovetail.bitstreams.record import make_record, portable_report
    from dovetail.runtime.files import write_whole

    if config is not None:
        # A floorplan is drawn for one array.
        board = replace(board, config=config, floorplan=False)
    first = board.seed if first is None else first
    seeds = range(first, first + count)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        with progress(f"generating {board.name}"):
            flow.write_sources(board, folder)
        with progress("synthesising"):
            flow.synthesize(folder, board)
        with progress(f"placing and routing, {jobs} at a time"):
            placement = flow.place(board, folder, seeds, jobs, human.print)
        with progress("packing"):
            bits = flow.pack(placement, folder)
        record = make_record(board, placement, folder, bits)
        output.mkdir(parents=True, exist_ok=True)
        for suffix in (".bit", ".svf"):
            write_whole(output / f"{board.name}{suffix}", bits.with_suffix(suffix).read_bytes())
        write_whole(output / "report.json", portable_report(placement.report))
        write_whole(output / "manifest.json", record.to_json().encode())
    return record, output / f"{board.name}.bit"


def _program(path: Path) -> None:
    """Load a ``.bit`` file into the board."""
    done = subprocess.run([LOADER, "--board", "ulx3s", str(path)], check=False)
    if done.returncode:
        raise click.ClickException(
            f"{LOADER} failed with status {done.returncode}; is the board plugged in?"
        )
