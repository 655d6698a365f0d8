"""The command ``dovetail devices``."""

import importlib.util
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from .output import clear_errors, human, json_option, print_json, progress, table

if TYPE_CHECKING:
    from dovetail.runtime.board.find import FoundBoard

__all__ = ["devices"]


@click.command()
@click.option(
    "--port",
    "ports",
    multiple=True,
    metavar="PORT[,BAUD]",
    help="Also ask this serial port, whatever is plugged in there; may be repeated.",
)
@json_option
@clear_errors
def devices(ports: tuple[str, ...], as_json: bool) -> None:
    """List devices, configurations, GPUs, and the boards that are plugged in."""
    from dovetail.isa.configs import CONFIGS
    from dovetail.runtime.devices import DEVICES
    from dovetail.runtime.gpu.find import find_gpus

    listed = {name: each.text for name, each in DEVICES.items()}
    configs = {
        name: {
            "macs_per_cycle": config.macs_per_cycle,
            "bus_bits": 8 * config.bus_bytes,
            "clock_mhz": config.clock_hz / 1e6,
            "act_words": config.act_depth,
            "wgt_tiles": config.wgt_depth,
            "acc_words": config.acc_depth,
        }
        for name, config in CONFIGS.items()
    }
    gpus = find_gpus()
    boards = _boards(ports)
    if as_json:
        found = [asdict(board) for board in boards]
        machine = [asdict(gpu) for gpu in gpus]
        print_json({"devices": listed, "configs": configs, "boards": found, "gpus": machine})
        return
    human.print(table("Devices", {"name": "left", "what": "left"}, list(listed.items())))
    if gpus:
        pairs: list[tuple[object, ...]] = [(each.device, each.hardware) for each in gpus]
        human.print(table("Found here", {"device": "left", "hardware": "left"}, pairs))
    headings = {"configuration": "left"} | dict.fromkeys(next(iter(configs.values())), "right")
    human.print(
        table("Configurations", headings, [(n, *values.values()) for n, values in configs.items()])
    )
    if boards:
        rows: list[tuple[object, ...]] = [(board.device, board.state) for board in boards]
        human.print(table("Boards", {"device": "left", "state": "left"}, rows))
    elif importlib.util.find_spec("serial"):
        human.print("No board with a known USB port is plugged in; --port asks any serial port.")
    else:
        human.print("Did not look for boards; install the extra: pip install 'dovetail[board]'")


def _boards(ports: tuple[str, ...]) -> "list[FoundBoard]":
    """Boards that answer at the known ports, and at ``ports``.

    Raises ClickException for a rate that is not a number, or when ports are named and the extra is
    missing.
    """
    if not importlib.util.find_spec("serial"):
        if ports:
            raise click.ClickException(
                "--port needs serial, which is not installed; install the extra: "
                "pip install 'dovetail[board]'"
            )
        return []
    from dovetail.runtime.board.device import BAUD
    from dovetail.runtime.board.find import find_boards, plugged_ports

    with progress("looking for boards"):
        found = find_boards(plugged_ports())
        for text in ports:
            port, _, baud = text.partition(",")
            if not (baud or "1").isdecimal() or baud == "0":
                raise click.ClickException(
                    f"--port {text}: {baud!r} is not a rate; required PORT or PORT,BAUD"
                )
            found += find_boards([("board", port)], int(baud or BAUD))
    return found
