"""An estimate of the clock of a configuration, from what place and route has found for others.

A period is a sum of features of the configuration, fitted to the records of whole accelerators:
``clock_records.json`` and the manifests of the bitstreams.  docs/explore.md states how far it is
off for a configuration that is left out of the fit.
"""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import dovetail.isa
from dovetail.isa.config import HardwareConfig
from dovetail.isa.configs import CONFIGS
from dovetail.isa.frozen import frozen

from .least_squares import fit, leave_one_out

__all__ = ["ASSUMED_HZ", "CLOCK_RECORDS", "Clock", "ClockModel", "ClockRecord", "load_clock_model"]

CLOCK_RECORDS = Path(__file__).with_name("clock_records.json")
ASSUMED_HZ = 100e6
FAMILY_OF_PART = {"LFE5U": "ECP5", "XC7": "Xilinx 7"}


@frozen
class ClockRecord:
    """Fmax in Hz, by place and route, of a whole accelerator with its board's logic.

    source: SHA-256 of the netlist and the pins; empty for a recorded bitstream.
    """

    config: HardwareConfig
    part: str
    hz: float
    seed: int
    source: str = ""


@frozen
class Clock:
    """Hz; error: the largest relative error that leaving a record out has shown; None where there
    is nothing to tell.
    """

    hz: float
    error: float | None


class ClockModel:
    """The clock of any configuration in one family.

    errors: of each record, when it is predicted from the others.
    """

    def __init__(self, records: Sequence[ClockRecord]) -> None:
        self.records = tuple(records)
        rows = np.array([_features(each.config) for each in records], float)
        periods = np.array([1e9 / each.hz for each in records], float)
        self._weights = fit(rows, periods) if self.records else None
        few = len(self.records) < 2
        self.errors = () if few else tuple(1 / (1 + leave_one_out(rows, periods)) - 1)

    @property
    def basis(self) -> str:
        """Where the clocks come from."""
        if not self.records:
            return f"assumed to be {ASSUMED_HZ / 1e6:g} MHz: nothing was placed and routed"
        return f"estimated from {len(self.records)} placed and routed accelerators"

    @property
    def error(self) -> float | None:
        """The largest of ``errors``."""
        return max(map(abs, self.errors)) if self.errors else None

    def clock(self, config: HardwareConfig) -> Clock:
        """The clock estimated for a configuration."""
        if self._weights is None:
            return Clock(ASSUMED_HZ, None)
        return Clock(1e9 / float(self._weights @ _features(config)), self.error)


def load_clock_model(family: str, folder: Path | None = None) -> ClockModel:
    """From the records whose part is of ``family``, and the manifests (``*/manifest.json``) below
    ``folder``; default: the folder bitstreams/.
    """
    folder = folder or Path(str(dovetail.isa.__file__)).parents[1] / "bitstreams"
    manifests = [json.loads(path.read_text()) for path in sorted(folder.glob("*/manifest.json"))]
    records = [*read_clock_records(), *(_of_manifest(m) for m in manifests if _is_known(m))]
    return ClockModel([each for each in records if _family(each.part) == family])


def read_clock_records(path: Path = CLOCK_RECORDS) -> list[ClockRecord]:
    """The records in a file."""
    return [
        ClockRecord(HardwareConfig(name="point", **each["config"]), **each["about"])
        for each in json.loads(path.read_text())["records"]
    ]


def _features(config: HardwareConfig) -> list[float]:
    """Features that a period is a weighted sum of: a constant, paths that deep pipelines would cut,
    and the doublings of the block and of the lanes, which make wires longer.
    """
    lanes = config.block // config.vector_cycles
    return [1.0, 0.0 if config.deep_pipelines else 1.0, math.log2(config.block), math.log2(lanes)]


def _is_known(manifest: dict[str, Any]) -> bool:
    """True if it was placed, and its configuration is still the one of that name."""
    config = CONFIGS.get(manifest["config"])
    same = config is not None and config.fingerprint == manifest["fingerprint"]
    return same and bool(manifest["clocks"])


def _of_manifest(manifest: dict[str, Any]) -> ClockRecord:
    """As ``dovetail.bitstreams.record.Record.slowest_hz``."""
    clock = manifest["clock_hz"]
    clocks = [each for each in manifest["clocks"].values() if each[1] >= clock]
    hz = min(found * clock / required for found, required in clocks)
    return ClockRecord(CONFIGS[manifest["config"]], manifest["part"], float(hz), manifest["seed"])


def _family(part: str) -> str | None:
    return next((f for start, f in FAMILY_OF_PART.items() if part.upper().startswith(start)), None)
