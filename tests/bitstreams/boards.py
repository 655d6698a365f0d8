"""A small board for the tests: the configuration ``tiny``'s arrays behind a fast line."""

from dataclasses import replace

from dovetail.bitstreams.boards import ULX3S_85F
from dovetail.isa.configs import find_config

__all__ = ["SMALL_BOARD", "device_name"]

SMALL_BOARD = replace(
    ULX3S_85F,
    name="small",
    config=replace(
        find_config("tiny"),
        block=8,
        bus_bytes=8,
        vector_cycles=4,
        fixed_rounding=False,
        row_parameters=False,
        nibble_weights=False,
        short_constants=False,
        clock_hz=50_000_000,
        dram=ULX3S_85F.config.dram,
    ),
    baud=6_250_000,
)
"""Eight cycles a bit.  What is around an accelerator is the same for one that computes little."""


def device_name(port: str) -> str:
    return f"small@{port},{SMALL_BOARD.baud}"
