"""The designs of a front as configurations of their own, in files that every command takes."""

from dataclasses import replace

from dovetail.isa.config import HardwareConfig
from dovetail.isa.config_file import config_to_toml

from .area import MULTIPLIER_BITS
from .exploration import Exploration
from .figures import DesignResult
from .front import fitting_front

__all__ = ["front_configuration", "front_files"]


def front_configuration(result: DesignResult, family: str, number: int) -> HardwareConfig:
    """The accelerator of a design, called ``front_NUMBER``: with the multipliers of ``family``, and
    the clock estimated there, unless its memory is an SDRAM, whose time depends on the clock.
    """
    config = result.design.config
    fixed = config.clock_hz if config.dram.sdram else int(result.families[family].clock.hz)
    name, bits = f"front_{number}", MULTIPLIER_BITS[family]
    return replace(config, name=name, clock_hz=fixed, multiplier_bits=bits)


def front_files(found: Exploration, family: str) -> dict[str, str]:
    """The content of ``front_1.toml`` and those after it, fastest first.

    Each begins with the figures of its design.
    """
    files = {}
    for number, result in enumerate(fitting_front(found.results, family), 1):
        config, mine = front_configuration(result, family, number), result.families[family]
        notes = (
            f"Design {number} of the front for {family}, from an exploration with "
            f"{', '.join(found.models)}:",
            f"{1e3 * mine.latency:.3f} ms, {mine.area.share:.0%} of the part "
            f"({mine.area.said}), {result.energy:.1f} uJ; overlap {result.design.overlap.value}.",
        )
        files[f"{config.name}.toml"] = config_to_toml(config, notes)
    return files
