"""The configurations whose areas are counted, for the area model to be fitted to.

From small to large.  All parameters that choose hardware vary, each in several combinations.
"""

from dataclasses import replace

from dovetail.isa.config import HardwareConfig
from dovetail.isa.configs import ECP5_25, ECP5_85, ECP5_85_8X8, TINY, ZYNQ7020

__all__ = ["PLAN"]


def _config(
    core: tuple[int, int], depths: tuple[int, int, int], banks: tuple[int, int], **rest: int | bool
) -> HardwareConfig:
    """core: block, bus_bytes.  depths: of ACT, WGT, ACC.  banks: of ACT, ACC."""
    values = dict(zip(("block", "bus_bytes"), core, strict=True))
    values |= dict(zip(("act_depth", "wgt_depth", "acc_depth"), depths, strict=True))
    values |= dict(zip(("act_banks", "acc_banks"), banks, strict=True))
    return replace(_plain(ZYNQ7020), **(values | rest))  # type: ignore[arg-type]


def _plain(config: HardwareConfig) -> HardwareConfig:
    """The configuration without options, which estimates do not count."""
    return replace(
        config,
        fixed_rounding=False,
        row_parameters=False,
        nibble_weights=False,
        short_constants=False,
        load_ahead=False,
    )


PLAN = (
    _plain(TINY),
    _config((4, 4), (8192, 1024, 1024), (8, 2)),
    _config((8, 8), (8192, 1024, 512), (8, 4)),
    _config((16, 8), (8192, 1024, 1024), (8, 2)),
    _config((8, 4), (4096, 1024, 1024), (8, 2)),
    _config((4, 4), (4096, 512, 512), (4, 2), queue_depth=8),
    _config((8, 8), (16384, 2048, 2048), (4, 2)),
    _config((16, 16), (8192, 1024, 1024), (8, 2)),
    _config((4, 4), (16384, 4096, 512), (4, 4), store_slots=8, fetch_ahead=8, burst_beats=64),
    _config((8, 4), (2048, 512, 256), (4, 4), tap_depth=64),
    _config((8, 8), (8192, 1024, 1024), (2, 2)),
    _config((4, 4), (2048, 256, 256), (1, 1)),
    _config((16, 4), (4096, 512, 512), (8, 2)),
    _config((8, 8), (8192, 512, 1024), (8, 2), queue_depth=32, store_slots=16, burst_beats=32),
    _config((4, 4), (32768, 1024, 2048), (8, 4)),
    _config((16, 8), (16384, 2048, 2048), (4, 4)),
    _config((8, 8), (32768, 4096, 4096), (8, 4), par_depth=512, tap_depth=512),
    _config((16, 16), (4096, 256, 512), (4, 2)),
    _config((16, 4), (8192, 1024, 1024), (2, 2)),
    _config((8, 8), (8192, 1024, 512), (8, 4), lane_groups=2, deep_pipelines=True),
    _config((8, 8), (8192, 1024, 512), (8, 2), tile_cycles=2, deep_pipelines=True),
    _config((8, 8), (8192, 1024, 1024), (8, 2), vector_cycles=2),
    ECP5_85,
    ECP5_85_8X8,
    ECP5_25,
    _config((32, 8), (8192, 512, 1024), (8, 2)),
)
