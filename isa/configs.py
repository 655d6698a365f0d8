"""The named configurations, and how one is found by its name or its file."""

import difflib
from pathlib import Path

from .config import DramTiming, HardwareConfig
from .config_file import SUFFIX, read_config
from .errors import ConfigError
from .frozen import replace
from .sdram import MT48LC16M16A2_75, sdram_timing

__all__ = ["CONFIGS", "find_config"]


def ulx3s_dram(clock_hz: int, beat_interval_cycles: int) -> DramTiming:
    """The memory of a ULX3S: its SDRAM behind the controller, both at ``clock_hz``."""
    return DramTiming(
        latency_cycles=12,
        beat_interval_cycles=beat_interval_cycles,
        queue_bursts=8,
        turnaround_cycles=2,
        response_cycles=1,
        sdram=sdram_timing(MT48LC16M16A2_75, clock_hz, io_delay=2),
    )


TINY = HardwareConfig(
    name="tiny",
    block=4,
    bus_bytes=4,
    act_depth=2048,
    wgt_depth=128,
    acc_depth=128,
    par_depth=32,
    tap_depth=64,
    tab_depth=512,
    act_banks=4,
    acc_banks=4,
    queue_depth=4,
    token_max=3,
    fixed_rounding=True,
    row_parameters=True,
    nibble_weights=True,
    short_constants=True,
    load_ahead=True,
    dram=DramTiming(latency_cycles=12, queue_bursts=4),
)
"""4x4: small enough for every test."""

SIXTEEN = HardwareConfig(
    name="sixteen",
    block=16,
    bus_bytes=8,
    act_depth=8192,
    wgt_depth=1024,
    acc_depth=1024,
    par_depth=256,
    tap_depth=256,
    tab_depth=512,
)
"""16x16 with memories of a middle size; those below say what is different in them."""

ZYNQ7020 = replace(
    SIXTEEN,
    name="zynq7020",
    acc_banks=2,
    multiplier_bits=25,
    fixed_rounding=True,
    row_parameters=True,
    nibble_weights=True,
    short_constants=True,
    load_ahead=True,
)
"""16x16 with a 64-bit AXI port at 100 MHz: the setting of VTA on Pynq, and the benchmark
configuration.
"""

ECP5_85 = replace(
    SIXTEEN,
    name="ecp5_85",
    act_depth=4096,
    wgt_depth=512,
    act_banks=4,
    acc_banks=2,
    tile_cycles=2,
    lane_groups=4,
    vector_cycles=4,
    deep_pipelines=True,
    clock_hz=50_000_000,
    dram=ulx3s_dram(50_000_000, beat_interval_cycles=4),
)
"""16x16 in two cycles, for a ULX3S-85F: 128 multipliers for the matrix core leave 28 of 156."""

ECP5_85_FAST = replace(ECP5_85, name="ecp5_85_fast", tile_cycles=1, core_clock_ratio=2)
"""16x16 in a cycle by the same 128 multipliers, whose clock has twice the rate."""

ECP5_85_8X8 = replace(ECP5_85, name="ecp5_85_8x8", block=8, tile_cycles=1, vector_cycles=2)
"""8x8 in a cycle, for a ULX3S-85F: half the multipliers, more room for wires."""

ECP5_25 = replace(
    SIXTEEN,
    name="ecp5_25",
    block=4,
    bus_bytes=4,
    act_banks=2,
    acc_banks=1,
    queue_depth=8,
    fetch_ahead=2,
    store_slots=2,
    vector_cycles=4,
    clock_hz=40_000_000,
    dram=ulx3s_dram(40_000_000, beat_interval_cycles=2),
)
"""4x4 in a cycle, for a ULX3S-25F: one lane of the vector unit, so that its 28 multipliers do."""

LARGE = replace(
    SIXTEEN,
    name="large",
    block=32,
    bus_bytes=16,
    act_depth=16384,
    acc_depth=2048,
    load_ahead=True,
    dram=DramTiming(latency_cycles=32, queue_bursts=16),
)
"""32x32 with a 128-bit AXI port."""

NAMED = (TINY, ZYNQ7020, ECP5_85, ECP5_85_FAST, ECP5_85_8X8, ECP5_25, LARGE)
CONFIGS = {config.name: config for config in NAMED}


def find_config(name: str) -> HardwareConfig:
    """Return the configuration called ``name``, or the one in a file when it ends in ``.toml``.

    Raises ConfigError when there is none, or the file holds none.
    """
    if name.endswith(SUFFIX):
        return read_config(Path(name).expanduser(), CONFIGS)
    if name not in CONFIGS:
        close = difflib.get_close_matches(name, CONFIGS, 1)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise ConfigError(
            f"no configuration is called {name!r}; there are: {', '.join(CONFIGS)}, and files of "
            f"your own, FILE{SUFFIX}{hint}"
        )
    return CONFIGS[name]
