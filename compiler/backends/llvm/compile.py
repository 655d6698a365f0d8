"""Loop functions, and programs of them, to machine code in this process."""

from collections.abc import Sequence
from dataclasses import dataclass

from ...errors import GraphError
from ...loops.ir import Function
from .build import LlvmOptions, build_functions
from .functions import Signature
from .jit import LoadedCode
from .main import main_text
from .module import CompiledModule, CompiledProgram
from .optimize import Effort, to_object
from .pool import run_address
from .pool_text import RUN
from .program import Program, memory_bytes
from .target import CpuTarget

__all__ = [
    "LlvmOptions",
    "ProgramCode",
    "build_program_code",
    "compile_functions",
    "compile_program",
    "load_program",
]

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


@dataclass(frozen=True, slots=True)
class ProgramCode:
    """Machine code of a program that is not loaded yet.

    cpu, features: of the CPU it is for.  memory_bytes: that a call needs.
    """

    objects: tuple[bytes, ...]
    memory_bytes: int
    threads: int
    cpu: str
    features: tuple[str, ...]


def compile_program(program: Program, options: LlvmOptions | None = None) -> CompiledProgram:
    """Machine code of all calls of ``program`` in order, in this process.

    Raises GraphError and TargetError as ``compile_functions``.
    """
    return load_program(program, build_program_code(program, options))


def build_program_code(program: Program, options: LlvmOptions | None = None) -> ProgramCode:
    """Machine code of all calls of ``program`` in order, for any CPU.

    Raises GraphError for what a CPU cannot run, TargetError for no such level.
    """
    options = options or LlvmOptions()
    target = CpuTarget.at_level(options.level)
    built = build_functions(program.functions, target, options)
    objects = {each.symbol: each.code for each in built}
    objects[_MAIN] = to_object(main_text(program, built, target, _MAIN), target, Effort.LIGHT)
    return ProgramCode(
        tuple(objects.values()),
        memory_bytes(program, built),
        options.threads,
        target.cpu,
        tuple(sorted(target.features)),
    )


def load_program(program: Program, code: ProgramCode) -> CompiledProgram:
    """The program, ready to run; of ``program`` only parameters and constants are used.

    Raises TargetError when this CPU lacks what the code needs.
    """
    CpuTarget(code.cpu, frozenset(code.features)).require_host()
    imports = {RUN: run_address()} if code.threads > 1 else {}
    loaded = LoadedCode(list(code.objects), [_MAIN], imports)
    return CompiledProgram(program, loaded, _MAIN, code.memory_bytes, code.threads)
