"""Loop functions, and programs of them, to machine code in this process."""

from collections.abc import Sequence

from ...errors import GraphError
from ...loops.ir import Function
from .build import LlvmOptions, build_functions
from .functions import Signature
from .jit import LoadedCode
from .module import CompiledModule, CompiledProgram
from .optimize import Effort, to_object
from .pool import RUN, run_address
from .program import Program, main_text, memory_bytes
from .target import CpuTarget

__all__ = ["LlvmOptions", "compile_functions", "compile_program"]

_MAIN = "dovetail_main"


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
    names = [function.name for function in functions]
    if len(set(names)) < len(names):
        raise GraphError(f"two functions are called {max(names, key=names.count)}")
    built = build_functions(functions, target, options)
    signatures = {
        function.name: Signature(each.symbol, function, each.workspace_bytes, Effort.FULL)
        for function, each in zip(functions, built, strict=True)
    }
    objects = {each.symbol: each.code for each in built}
    imports = {RUN: run_address()} if options.threads > 1 else {}
    code = LoadedCode(list(objects.values()), list(objects), imports)
    return CompiledModule(signatures, code, options.threads)


def compile_program(program: Program, options: LlvmOptions | None = None) -> CompiledProgram:
    """Machine code of all calls of ``program`` in order, in this process.

    Raises GraphError and TargetError as ``compile_functions``.
    """
    options = options or LlvmOptions()
    target = CpuTarget.at_level(options.level)
    target.require_host()
    built = build_functions(program.functions, target, options)
    objects = {each.symbol: each.code for each in built}
    objects[_MAIN] = to_object(main_text(program, built, target, _MAIN), target, Effort.LIGHT)
    imports = {RUN: run_address()} if options.threads > 1 else {}
    code = LoadedCode(list(objects.values()), [_MAIN], imports)
    return CompiledProgram(program, code, _MAIN, memory_bytes(program, built), options.threads)
