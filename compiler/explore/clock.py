"""An estimate of the clock that a family reaches, from what place and route has found."""

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import dovetail.isa

__all__ = ["ASSUMED_HZ", "Clock", "estimate_clock"]

RECORDS = Path(__file__).with_name("clocks.toml")
ASSUMED_HZ = 100e6
FAMILY_OF_PART = {"LFE5U": "ECP5", "XC7": "Xilinx 7"}


@dataclass(frozen=True, slots=True)
class Clock:
    """Hz; basis: what it follows from.

    error: the largest relative distance of a record; None where there is nothing to tell.
    """

    hz: float
    basis: str
    error: float | None


def estimate_clock(family: str, folder: Path | None = None) -> Clock:
    """The clock of an accelerator in ``family``: the geometric mean of whole bitstreams' records
    (``*/manifest.json`` below ``folder``; default: the folder bitstreams/), else of parts' records,
    else an assumption.  It is the same for all configurations: no record shows how it depends on
    them.
    """
    folder = folder or Path(str(dovetail.isa.__file__)).parents[1] / "bitstreams"
    whole = [
        _slowest_hz(each)
        for each in (json.loads(p.read_text()) for p in sorted(folder.glob("*/manifest.json")))
        if _family(each["part"]) == family
    ]
    if whole:
        return _mean(whole, f"place and route of {len(whole)} bitstreams")
    parts = [
        each["mhz"] * 1e6
        for each in tomllib.loads(RECORDS.read_text())["record"]
        if each["family"] == family
    ]
    if parts:
        return _mean(parts, f"place and route of the matrix core alone, {len(parts)} sizes")
    return Clock(ASSUMED_HZ, "assumed: nothing was placed and routed", None)


def _mean(found: list[float], basis: str) -> Clock:
    mean = geometric_mean(found)
    spread = max(abs(each / mean - 1) for each in found)
    return Clock(mean, basis, spread if len(found) > 1 else None)


def _family(part: str) -> str | None:
    return next((f for start, f in FAMILY_OF_PART.items() if part.upper().startswith(start)), None)


def _slowest_hz(record: dict[str, Any]) -> float:
    """As ``dovetail.bitstreams.record.Record.slowest_hz``."""
    clock = record["clock_hz"]
    return float(min(found for found, required in record["clocks"].values() if required >= clock))
