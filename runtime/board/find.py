"""Finding the boards that are plugged in."""

from collections.abc import Iterable

from serial.tools import list_ports

from dovetail.isa.configs import CONFIGS
from dovetail.isa.frozen import frozen
from dovetail.isa.registers import IDENTITY, REGISTERS, VERSION

from ..errors import DeviceError
from .device import BAUD
from .link import Link

__all__ = ["FoundBoard", "find_boards", "plugged_ports"]

USB = {(0x0403, 0x6015): "ulx3s"}
"""Vendor and product of a board's USB serial port, and the board's model."""
PATIENCE, TRIES = 0.1, 2
"""Seconds until a request is sent again, and how often: of a board that may not be one of ours."""
IDENTITY_OFFSET = next(register.offset for register in REGISTERS if register.name == "ID")


@frozen
class FoundBoard:
    """A serial port, and what answers there.

    device: its name for ``--device``.  config: the named configuration of the board's bitstream;
    None when nothing of this version of the project answers, or its configuration has no name.
    """

    device: str
    config: str | None
    state: str


def plugged_ports() -> list[tuple[str, str]]:
    """Model and serial port of every board whose USB identity is known."""
    return sorted(
        (USB[port.vid, port.pid], port.device)
        for port in list_ports.comports()
        if (port.vid, port.pid) in USB
    )


def find_boards(ports: Iterable[tuple[str, str]], baud: int = BAUD) -> list[FoundBoard]:
    """Ask what is at each of ``ports`` (model, port) who it is."""
    return [_ask(model, port, baud) for model, port in ports]


def _ask(model: str, port: str, baud: int) -> FoundBoard:
    name = f"board:{model}@{port}" + (f",{baud}" if baud != BAUD else "")
    try:
        with Link(port, baud, patience=PATIENCE, tries=TRIES) as link:
            identity, version, fingerprint = link.read_registers(IDENTITY_OFFSET, 3)
    except DeviceError as error:
        return FoundBoard(name, None, str(error))
    if identity != IDENTITY or version != VERSION:
        return FoundBoard(
            name, None, f"another bitstream: identity {identity:#010x}, version {version}"
        )
    names = [config.name for config in CONFIGS.values() if config.fingerprint == fingerprint]
    if names:
        targets = ", ".join(f"vta:{each}" for each in names)
        return FoundBoard(name, names[0], f"ready, for modules of {targets}")
    return FoundBoard(name, None, f"of a configuration without a name, {fingerprint:#010x}")
