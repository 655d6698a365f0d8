"""Dovetail: compile a network, and run it on an accelerator or a CPU.

    import dovetail

    module = dovetail.compile("model_int8.onnx", "vta:zynq7020")
    with dovetail.Session(module, device="sim") as session:
        logits, = session.run(None, {"image": image})

Names are imported when they are first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dovetail.compiler.driver import compile_model as compile
    from dovetail.compiler.options import CompileOptions, CpuOptions
    from dovetail.isa.config import HardwareConfig
    from dovetail.isa.configs import find_config
    from dovetail.isa.errors import DovetailError
    from dovetail.runtime.generate.generator import Generator
    from dovetail.runtime.module import Module
    from dovetail.runtime.session import Session, run

    __version__: str

__all__ = [
    "CompileOptions",
    "CpuOptions",
    "DovetailError",
    "Generator",
    "HardwareConfig",
    "Module",
    "Session",
    "__version__",
    "compile",
    "find_config",
    "run",
]

_PLACES = {
    "CompileOptions": "compiler.options",
    "CpuOptions": "compiler.options",
    "DovetailError": "isa.errors",
    "Generator": "runtime.generate.generator",
    "HardwareConfig": "isa.config",
    "Module": "runtime.module",
    "Session": "runtime.session",
    "compile": "compiler",
    "find_config": "isa.configs",
    "run": "runtime.session",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("dovetail")
    if name not in _PLACES:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return getattr(import_module(f".{_PLACES[name]}", __name__), name)


def __dir__() -> list[str]:
    return __all__
