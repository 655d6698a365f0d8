"""A Vivado project of the accelerator on a Zynq-7000 board."""

import io
import json
import zipfile

from dovetail.isa.config import HardwareConfig
from dovetail.isa.registers import REGISTERS

from .axi3 import MEMORY_BASE
from .boards import ZynqBoard
from .platforms import platform_files
from .zynq_top import CONTROL, MEMORY, ZynqTop

__all__ = ["address_map", "make_archive"]

NAME = "dovetail"
GENERAL_PURPOSE_0 = 0x4000_0000
"""Physical address of general-purpose port 0 (UG585, table 4-1)."""


def address_map(config: HardwareConfig) -> dict[str, object]:
    """Facts that the processors' software needs."""
    return {
        "configuration": config.name,
        "fingerprint": config.fingerprint,
        "control": {"port": CONTROL, "address": GENERAL_PURPOSE_0, "size": 2 * MEMORY_BASE},
        "memory": {"port": MEMORY, "base_register": MEMORY_BASE},
        "clock": {"source": "FCLK0", "hz": config.clock_hz},
        "interrupt": "IRQF2P[0]",
        "registers": {register.name: register.offset for register in REGISTERS},
    }


def make_archive(board: ZynqBoard) -> bytes:
    """A zip file: Verilog, constraints, ``build_dovetail.sh`` and its Tcl, ``address_map.json``.

    Raises HardwareError when Yosys or the table of boards is not installed.
    """
    files = platform_files(board.platform, ZynqTop(board.config), NAME)
    described = json.dumps(address_map(board.config), indent=2) + "\n"
    files["address_map.json"] = described.encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(files):
            archive.writestr(zipfile.ZipInfo(path), files[path], zipfile.ZIP_DEFLATED)
    return buffer.getvalue()
