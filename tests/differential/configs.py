"""The configurations that random programs run on: the named ones, and some at the limits."""

from dataclasses import replace

from dovetail.isa.config import HardwareConfig
from dovetail.isa.config_file import SUFFIX
from dovetail.isa.configs import CONFIGS, find_config
from dovetail.isa.errors import ConfigError

__all__ = ["VARIANTS", "differential_config"]

NARROW = replace(
    find_config("tiny"),
    name="narrow",
    queue_depth=2,
    fetch_ahead=2,
    store_slots=2,
    token_max=1,
    act_banks=1,
    acc_banks=1,
)
"""Queues of two, one bank, one token: everything waits for everything."""

MIXED = replace(
    find_config("tiny"),
    name="mixed",
    block=8,
    act_depth=256,
    wgt_depth=16,
    acc_depth=32,
    par_depth=8,
    tap_depth=16,
    tab_depth=256,
    act_banks=8,
    acc_banks=2,
    queue_depth=8,
    fetch_ahead=16,
    burst_beats=64,
    store_slots=8,
    token_max=2,
)
"""Two beats a word, long bursts, small memories of many banks: every address wraps."""

DEEP = replace(
    find_config("tiny"),
    name="deep",
    block=8,
    tile_cycles=2,
    lane_groups=2,
    vector_cycles=4,
    deep_pipelines=True,
)
"""Tiles in two cycles, words of VECTOR in four, groups of lanes, deep pipelines."""

FAST_CORE = replace(
    find_config("tiny"), name="fast_core", lane_groups=2, core_clock_ratio=2, deep_pipelines=True
)
"""Tiles in one cycle, by multipliers with a clock of their own; a row a group."""

FAST_CORE_TURNS = replace(
    DEEP, name="fast_core_turns", lane_groups=1, core_clock_ratio=2, multiplier_bits=25
)
"""Tiles in two cycles and four of the multipliers' own, in pairs of rows."""

VARIANTS = {config.name: config for config in (NARROW, MIXED, DEEP, FAST_CORE, FAST_CORE_TURNS)}


def differential_config(name: str) -> HardwareConfig:
    """The variant or the named configuration called ``name``, or the one in a file.

    Raises ConfigError when there is none.
    """
    if name.endswith(SUFFIX):
        return find_config(name)
    if name in VARIANTS:
        return VARIANTS[name]
    if name in CONFIGS:
        return CONFIGS[name]
    listed = ", ".join((*CONFIGS, *VARIANTS))
    raise ConfigError(f"no configuration is called {name!r}; there are: {listed}")
