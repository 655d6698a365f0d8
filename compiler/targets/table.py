"""All targets, by the first word of their names."""

from collections.abc import Callable
from importlib import import_module

from dovetail.isa.config import HardwareConfig
from dovetail.isa.configs import CONFIGS

from ..errors import TargetError
from .target import Target

__all__ = ["HOST", "TARGETS", "find_target"]

HOST = "cpu"
"""The target of what others leave."""

TARGETS = {
    "cpu": ("cpu.target", "find_cpu"),
    "cuda": ("gpu.cuda", "find_cuda"),
    "opencl": ("gpu.target", "find_opencl"),
    "webgpu": ("gpu.target", "find_webgpu"),
    "vta": ("vta.target", "find_vta"),
}
"""Module and function; the function takes what follows the first word's colon."""


def find_target(target: str | HardwareConfig | Target) -> Target:
    """The target called ``cpu``, ``vta`` or ``vta:CONFIG``, that of a configuration, or ``target``.

    Raises TargetError when there is none.
    """
    if isinstance(target, HardwareConfig):
        return _find("vta")(target)
    if not isinstance(target, str):
        if not hasattr(target, "compile"):
            raise TargetError(
                f"{type(target).__name__} is not a target; required a name such as 'vta:zynq7020', "
                "a configuration, or an object that satisfies Target"
            )
        return target
    kind, _, rest = target.partition(":")
    if kind not in TARGETS:
        if target in CONFIGS or target.endswith(".toml"):
            raise TargetError(f"no target is called {target!r}; did you mean vta:{target}?")
        configurations = ", ".join(f"vta:{config}" for config in (*CONFIGS, "FILE.toml"))
        raise TargetError(
            f"no target is called {target!r}; there are: {', '.join(TARGETS)}, {configurations}"
        )
    return _find(kind)(rest)


def _find(kind: str) -> Callable[[object], Target]:
    """Raises TargetError when what it needs is not installed."""
    module, name = TARGETS[kind]
    try:
        found: Callable[[object], Target] = getattr(import_module(f".{module}", __package__), name)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "llvmlite":
            raise
        raise TargetError(
            "llvmlite, which makes code for this CPU and PTX, is not installed; a model for an "
            "accelerator needs it where some operators run on the CPU: pip install 'dovetail[cpu]'"
        ) from None
    return found
