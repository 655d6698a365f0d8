"""Placing and routing accelerators for records of their clocks.

``python -m dovetail.compiler.explore.clock_records`` places what has changed (10 minutes and more
each), writes ``clock_records.json`` after each, then the table of docs/explore.md.
"""

import hashlib
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from dovetail.bitstreams.boards import Board, find_board
from dovetail.isa.configs import ECP5_25, ECP5_85_8X8
from dovetail.runtime.files import write_whole

from .area import hardware_text
from .area_records import configuration_text
from .clock import CLOCK_RECORDS, ClockModel, ClockRecord, load_clock_model, read_clock_records
from .page import renew_page
from .space import HARDWARE

__all__ = ["clock_table", "renew"]

BOARD = "ulx3s-85f-8x8"
SEED = 1
BUS_4 = replace(ECP5_85_8X8.dram, beat_interval_cycles=2)
SMALL = replace(ECP5_25, clock_hz=ECP5_85_8X8.clock_hz, dram=BUS_4)
PLAN = (
    SMALL,
    replace(SMALL, deep_pipelines=True),
    replace(SMALL, vector_cycles=1),
    replace(ECP5_85_8X8, lane_groups=1, deep_pipelines=False),
    replace(SMALL, vector_cycles=1, deep_pipelines=True),
    replace(ECP5_85_8X8, vector_cycles=4),
    replace(ECP5_85_8X8, vector_cycles=1, lane_groups=2),
)
"""Configurations that are placed on an LFE5U-85F, the most informative first."""


def renew(most: int | None = None) -> None:
    """Place and route what has no record of its netlist; ``most`` configurations at most.

    Raises HardwareError when a tool is missing or fails.
    """
    from dovetail.bitstreams import flow

    records = {hardware_text(each.config): each for each in read_clock_records()}
    for config in PLAN:
        if most is not None and most <= 0:
            break
        named = replace(config, name="point")
        board = replace(find_board(BOARD), config=named, seed=SEED)
        with TemporaryDirectory() as name:
            folder = Path(name)
            flow.write_sources(board, folder)
            source = _source(folder)
            known = records.get(hardware_text(config))
            if known and known.source == source:
                continue
            print(configuration_text(config), "...", file=sys.stderr, flush=True)
            records[hardware_text(config)] = _place(board, folder, source)
        _write(list(records.values()))
        most = most - 1 if most is not None else None


def _place(board: Board, folder: Path, source: str) -> ClockRecord:
    from dovetail.bitstreams import flow

    flow.synthesize(folder)
    placement = flow.place_once(board, folder, board.seed)
    required = board.config.clock_hz
    own = [each for each in placement.clocks.values() if each[1] >= required]
    hz = min(found * required / wanted for found, wanted in own)
    return ClockRecord(board.config, board.part, hz, board.seed, source)


def _source(folder: Path) -> str:
    found = hashlib.sha256()
    for name in ("top.il", "top.lpf"):
        found.update((folder / name).read_bytes())
    return found.hexdigest()


def _write(records: Sequence[ClockRecord]) -> None:
    """``clock_records.json``, one line a record."""
    lines = []
    for each in records:
        config = {name: getattr(each.config, name) for name in HARDWARE}
        about = {name: getattr(each, name) for name in ("part", "hz", "seed", "source")}
        lines.append(json.dumps({"config": config, "about": about}))
    text = '{"records": [\n' + ",\n".join(lines) + "\n]}\n"
    write_whole(CLOCK_RECORDS, text.encode())


def clock_table(model: ClockModel) -> str:
    """Each record against what all others say of it, and the errors over all; Markdown."""
    lines = ["| configuration | part | Fmax, MHz | predicted |", "|---|---|---|---|"]
    for record, error in zip(model.records, model.errors, strict=True):
        predicted = f"{record.hz * (1 + error) / 1e6:.1f} ({100 * error:+.1f} %)"
        cells = (configuration_text(record.config), record.part.split("-6")[0])
        lines.append(f"| {' | '.join(cells)} | {record.hz / 1e6:.1f} | {predicted} |")
    errors = 100 * np.abs(model.errors)
    lines += ["", f"Mean error {errors.mean():.1f} %, largest {errors.max():.1f} %."]
    return "\n".join(lines)


def _table() -> str:
    return clock_table(load_clock_model("ECP5"))


if __name__ == "__main__":
    renew_page(str(__doc__), "clocks", renew, _table)
