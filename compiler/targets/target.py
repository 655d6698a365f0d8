"""Targets: what a module is compiled for."""

from dataclasses import dataclass

from dovetail.isa.config import HardwareConfig
from dovetail.isa.configs import CONFIGS, find_config
from dovetail.isa.errors import ConfigError

from ..errors import TargetError

__all__ = ["DEFAULT_CONFIG", "Target", "parse_target"]

DEFAULT_CONFIG = "zynq7020"


@dataclass(frozen=True, slots=True)
class Target:
    """An accelerator configuration, or the CPU (None)."""

    name: str
    config: HardwareConfig | None


def parse_target(text: str | HardwareConfig) -> Target:
    """The target called ``vta``, ``vta:CONFIG`` or ``cpu``, or that of a configuration.

    Raises TargetError when there is none.
    """
    if isinstance(text, HardwareConfig):
        return Target(f"vta:{text.name}", text)
    if text == "cpu":
        return Target("cpu", None)
    kind, _, name = text.partition(":")
    if kind != "vta":
        raise TargetError(
            f"no target is called {text!r}; there are: cpu, vta, "
            + ", ".join(f"vta:{config}" for config in CONFIGS)
        )
    try:
        config = find_config(name or DEFAULT_CONFIG)
    except ConfigError as error:
        raise TargetError(f"target {text!r}: {error}") from None
    return Target(f"vta:{config.name}", config)
