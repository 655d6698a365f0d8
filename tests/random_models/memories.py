"""Accelerators of rare sizes, drawn: constants and sums take turns in their small memories."""

from dataclasses import replace
from random import Random
from typing import Any

from dovetail.isa.config import DramTiming, HardwareConfig
from dovetail.isa.configs import CONFIGS
from dovetail.isa.errors import ConfigError

__all__ = ["DRAWN", "drawn_config"]

DRAWN = "vta:drawn"
"""The target of such an accelerator, another one for each seed."""

DEPTHS = {
    "act_depth": (256, 512, 1024, 2048),
    "wgt_depth": (32, 64, 128),
    "acc_depth": (32, 64, 128),
    "par_depth": (4, 8, 16, 32),
    "tap_depth": (16, 32, 64),
    "tab_depth": (256, 512),
    "act_banks": (2, 4),
    "acc_banks": (1, 2, 4),
}

UNITS: dict[str, tuple[Any, ...]] = {
    "block": (4, 4, 8),
    "bus_bytes": (4, 4, 8),
    "queue_depth": (2, 4, 16),
    "burst_beats": (4, 16, 64),
    "store_slots": (2, 4),
    "token_max": (1, 3, 15),
    "tile_cycles": (1, 1, 2),
    "vector_cycles": (1, 1, 2, 4),
    "fixed_rounding": (True, True, False),
    "row_parameters": (True, True, False),
    "nibble_weights": (True, True, False),
    "short_constants": (True, True, False),
    "load_ahead": (True, False),
}

MEMORIES = {
    "latency_cycles": (1, 12, 200),
    "beat_interval_cycles": (1, 1, 4),
    "queue_bursts": (1, 4),
    "turnaround_cycles": (0, 4, 40),
    "response_cycles": (1, 4, 40),
}


def drawn_config(seed: int) -> HardwareConfig:
    """``tiny`` with other memories, units and timing of DRAM."""
    random = Random(seed)

    def some(choices: dict[str, tuple[Any, ...]]) -> dict[str, Any]:
        return {name: random.choice(values) for name, values in choices.items()}

    depths: dict[str, Any] = some(DEPTHS)
    while True:
        try:
            dram = DramTiming(**some(MEMORIES))
            return replace(CONFIGS["tiny"], name=f"drawn{seed}", dram=dram, **depths, **some(UNITS))
        except ConfigError:
            continue
