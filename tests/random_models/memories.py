"""Accelerators with small memories, drawn: constants, rows and sums take turns there."""

from dataclasses import replace
from random import Random

from dovetail.isa.config import HardwareConfig
from dovetail.isa.configs import CONFIGS

__all__ = ["DRAWN", "drawn_config"]

DRAWN = "vta:drawn"
"""The target of such an accelerator, another one for each seed."""

SIZES = {
    "act_depth": (256, 512, 1024, 2048),
    "wgt_depth": (32, 64, 128),
    "acc_depth": (32, 64, 128),
    "par_depth": (4, 8, 16, 32),
    "tap_depth": (16, 32, 64),
    "tab_depth": (256, 512),
    "act_banks": (2, 4),
    "acc_banks": (1, 2, 4),
}


def drawn_config(seed: int) -> HardwareConfig:
    """``tiny`` with memories of other sizes."""
    random = Random(seed)
    sizes = {name: random.choice(some) for name, some in SIZES.items()}
    return replace(CONFIGS["tiny"], name=f"drawn{seed}", **sizes)  # type: ignore[arg-type]
