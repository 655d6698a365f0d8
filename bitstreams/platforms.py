"""Output of Amaranth's table of boards for a design: netlist, pins, build scripts."""

import os
from importlib import import_module

from amaranth.hdl import Elaboratable

from dovetail.vta_hw.verilog import HardwareError, find_yosys

__all__ = ["platform_files"]

TOOLS = {"OPENFPGALOADER": "true", "VIVADO": "vivado"}
"""Programs that platforms look for even when nothing is built or programmed, by the variables that
name them.
"""


def platform_files(platform: tuple[str, str], top: Elaboratable, name: str) -> dict[str, bytes]:
    """The files of ``top``, called ``name``, by their paths.

    platform: module and class of the board's pins.
    Raises HardwareError when Yosys or the table of boards is not installed.
    """
    find_yosys()
    for variable, tool in TOOLS.items():
        os.environ.setdefault(variable, tool)
    module, kind = platform
    try:
        board = getattr(import_module(module), kind)()
    except ImportError as error:
        raise HardwareError(
            f"{error.name} is not installed; install the extra: pip install 'dovetail[board]'"
        ) from None
    return {
        path: content.encode() if isinstance(content, str) else content
        for path, content in board.build(top, name=name, do_build=False).files.items()
    }
