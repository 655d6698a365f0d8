"""Counting the areas of ``area_plan`` again, where the gateware's netlists have changed.

``python -m dovetail.compiler.explore.area_records`` writes ``area_records.json`` after each count
(minutes each, one Yosys at a time), then the table of docs/explore.md.
"""

import hashlib
import json
import sys
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dovetail.isa.config import HardwareConfig

from .area import (
    FIGURES,
    RECORDS,
    AreaModel,
    AreaRecord,
    Family,
    area_config,
    hardware_text,
    load_area_model,
    read_records,
)
from .area_cache import count_area, record_values
from .area_plan import PLAN
from .gateware import gateware_hash
from .page import renew_page

__all__ = ["area_table", "configuration_text", "renew", "write_records"]


def renew(most: int | None = None) -> None:
    """Give every record the gateware as it is; count those whose netlist differs, ``most`` of them
    at most.  0 does nothing.

    Raises HardwareError when Yosys is missing or fails.
    """
    if most == 0:
        return
    from dovetail.vta_hw.verilog import emit_verilog

    families, old = read_records()
    records = {(hardware_text(each.config), each.family): each for each in old}
    for config in PLAN:
        for family in families:
            key = hardware_text(config), family.name
            known = records.get(key)
            text = emit_verilog(area_config(config, family.name))
            same = known and known.netlist == hashlib.sha256(text.encode()).hexdigest()
            if known and same:
                records[key] = replace(known, gateware=gateware_hash())
            elif most is None or most > 0:
                print(f"{family.name}: {hardware_text(config)} ...", file=sys.stderr, flush=True)
                records[key] = count_area(config, family.name)
                most = most - 1 if most is not None else None
            write_records(families, list(records.values()))


def write_records(families: Sequence[Family], records: Sequence[AreaRecord]) -> None:
    """Write ``area_records.json``, one line a record."""
    heads = [
        {"name": each.name, "part": each.part, "capacity": list(each.capacity)} for each in families
    ]
    lines = ",\n".join(json.dumps(record_values(each)) for each in records)
    RECORDS.write_text(f'{{"families": {json.dumps(heads)},\n"records": [\n{lines}\n]}}\n')


def area_table(models: Sequence[AreaModel]) -> str:
    """Each record against what all others say of it, and the errors over all; Markdown."""
    heads = ("configuration", "family", "LUT", "predicted", "FF", "predicted", "multipliers")
    lines = [
        f"| {' | '.join((*heads, 'predicted', 'block RAM', 'predicted'))} |",
        f"|{'---|' * 10}",
    ]
    rows = []
    for model in models:
        for place, record in enumerate(model.records):
            cells = []
            for figure in FIGURES:
                count = record.counts[figure]
                error = model.errors[figure][place] if figure in model.errors else None
                if error is None:
                    said = f"{model.estimate(record.config)[figure]:g}"
                else:
                    said = f"{count * (1 + error):,.0f} ({100 * error:+.1f} %)"
                cells += [f"{count:,g}", said]
            rows.append((configuration_text(record.config), model.family.name, *cells))
    lines += [f"| {' | '.join(row)} |" for row in rows]
    lines += ["", "| family | LUT: mean, largest | FF | multipliers |", "|---|---|---|---|"]
    for model in models:
        errors = [
            f"{100 * np.abs(model.errors[figure]).mean():.1f} %, "
            f"{100 * np.abs(model.errors[figure]).max():.1f} %"
            for figure in FIGURES[:3]
        ]
        lines.append(f"| {model.family.name} | {' | '.join(errors)} |")
    return "\n".join(lines)


def configuration_text(c: HardwareConfig) -> str:
    """The parameters of a configuration that change areas and clocks, in a line."""
    rest = f", queues {c.queue_depth}" if c.queue_depth != 16 else ""
    rest += f", {c.tile_cycles} cycles a tile" if c.tile_cycles > 1 else ""
    rest += f", {c.lane_groups} groups" if c.lane_groups > 1 else ""
    rest += f", {c.vector_cycles} cycles a word" if c.vector_cycles > 1 else ""
    rest += ", deep" if c.deep_pipelines else ""
    return (
        f"{c.block}x{c.block}, bus {c.bus_bytes}, {c.act_depth}/{c.wgt_depth}/{c.acc_depth} words, "
        f"{c.act_banks}/{c.acc_banks} banks{rest}"
    )


def _table() -> str:
    return area_table(list(load_area_model().values()))


if __name__ == "__main__":
    renew_page(str(__doc__), "areas", renew, _table)
