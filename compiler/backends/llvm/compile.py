"""Loop functions to a module that runs."""

from collections.abc import Sequence
from dataclasses import dataclass

from ...errors import GraphError
from ...loops.ir import Function
from .emitter import ModuleText
from .functions import Signature, write_function
from .jit import LoadedCode
from .module import CompiledModule
from .optimize import Effort, to_object
from .pool import RUN, run_address
from .target import CpuTarget

__all__ = ["LlvmOptions", "compile_functions"]


@dataclass(frozen=True, slots=True)
class LlvmOptions:
    """level: the CPU that code is for, ``native`` or one of ``target.LEVELS``.

    threads: that parallel loops run on.
    """

    level: str = "native"
    threads: int = 1


def compile_functions(
    functions: Sequence[Function], options: LlvmOptions | None = None
) -> CompiledModule:
    """Machine code of ``functions``, in this process.

    Raises GraphError for what a CPU cannot run and for two functions of one name, TargetError for
    a level this CPU does not have.
    """
    options = options or LlvmOptions()
    target = CpuTarget.at_level(options.level)
    target.require_host()
    signatures: dict[str, Signature] = {}
    objects = []
    for number, function in enumerate(functions):
        if function.name in signatures:
            raise GraphError(f"two functions are called {function.name}")
        module = ModuleText(target)
        signatures[function.name] = write_function(
            module, function, f"kernel{number}", options.threads
        )
        objects.append(to_object(module.text(), target, Effort.FULL))
    imports = {RUN: run_address()} if options.threads > 1 else {}
    symbols = [signature.symbol for signature in signatures.values()]
    return CompiledModule(signatures, LoadedCode(objects, symbols, imports), options.threads)
